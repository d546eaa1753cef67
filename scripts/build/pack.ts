import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

/** A package as npm publishes and installs it. */
export interface Tarball {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
}

/** Makes a tarball of each built package in a directory. */
export function pack(folders: readonly string[], directory: string): Tarball[] {
  mkdirSync(directory, { recursive: true });
  const answer = execFileSync(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", directory, ...folders],
    { cwd: directory, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  );
  return (JSON.parse(answer) as { name: string; filename: string; size: number }[]).map(({ name, filename, size }) => {
    return { name, path: join(directory, filename), bytes: size };
  });
}
