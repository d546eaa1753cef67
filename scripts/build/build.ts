import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { compile } from "./compile.ts";
import { sourcePackages } from "./packages.ts";
import { stage } from "./stage.ts";

/** Builds every package, each in a folder of its own below an empty directory; gives the folders. */
export async function build(directory: string): Promise<string[]> {
  const packages = sourcePackages();
  const versions = new Map(packages.map(({ manifest }) => [manifest.name, manifest.version]));

  const intermediate = join(directory, ".compiled");
  const folders = (await compile(packages, intermediate)).map((one) => {
    const folder = join(directory, one.folder);
    mkdirSync(folder, { recursive: true });
    stage(one, folder, versions);
    return folder;
  });
  rmSync(intermediate, { recursive: true });
  return folders;
}
