import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The repository's own directory. */
export const repository = join(import.meta.dirname, "../..");

/** What the build reads of a package.json; the rest goes into the published one as it is. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly exports: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly [other: string]: unknown;
}

/** A package of the workspace, as its source has it. */
export interface SourcePackage {
  /** The name of its folder below packages/. */
  readonly folder: string;
  readonly directory: string;
  readonly manifest: Manifest;
}

/** Every package of the workspace. */
export function sourcePackages(): SourcePackage[] {
  const root = readManifest(repository) as unknown as { workspaces: string[] };
  return root.workspaces.map((path) => {
    const directory = join(repository, path);
    return { folder: path.replace(/^packages\//, ""), directory, manifest: readManifest(directory) };
  });
}

/** The package.json of a directory. */
export function readManifest(directory: string): Manifest {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Manifest;
}
