import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { readManifest } from "./packages.ts";

/** A package as npm publishes and installs it. */
export interface Tarball {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
}

/** Makes a tarball of each built package in a directory, and below `optional` of those that the others work without. */
export function pack(folders: readonly string[], directory: string): Tarball[] {
  const optional = join(directory, "optional");
  mkdirSync(optional, { recursive: true });
  const answer = execFileSync(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", directory, ...folders],
    { cwd: directory, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  );
  const peers = folders.flatMap((folder) => Object.keys(readManifest(folder).peerDependencies ?? {}));
  return (JSON.parse(answer) as { name: string; filename: string; size: number }[]).map(({ name, filename, size }) => {
    const path = join(peers.includes(name) ? optional : directory, filename);
    renameSync(join(directory, filename), path);
    return { name, path, bytes: size };
  });
}
