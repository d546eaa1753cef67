import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../../../support/proto.ts";

/** What is at a path of a codebase. */
export type Entry =
  | { readonly kind: "file"; readonly mode: number; readonly size: number; readonly sha256: string }
  | { readonly kind: "directory"; readonly mode: number }
  | { readonly kind: "symlink"; readonly target: string };

/** Everything in a codebase, by path: "src/a.ts". */
export type Manifest = ReadonlyMap<string, Entry>;

export const NOTHING: Manifest = new Map();

export function fileOf(content: string | Uint8Array, mode = 0o644): Entry & { readonly kind: "file" } {
  const data = Buffer.from(content);
  return { kind: "file", mode, size: data.length, sha256: sha256(data) };
}

export function sha256(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** With the entry at the path, and the directories on the way to it. */
export function withEntry(manifest: Manifest, path: string, entry: Entry): Manifest {
  const changed = new Map(manifest);
  for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
    const above = path.slice(0, slash);
    if (!changed.has(above)) changed.set(above, { kind: "directory", mode: 0o755 });
  }
  changed.set(path, entry);
  return changed;
}

/** Without the path and all below it. */
export function without(manifest: Manifest, path: string): Manifest {
  return new Map([...manifest].filter(([each]) => !isWithin(each, path)));
}

export function moved(manifest: Manifest, from: string, to: string): Manifest {
  let changed = without(manifest, from);
  for (const [path, entry] of manifest) {
    if (isWithin(path, from)) changed = withEntry(changed, to + path.slice(from.length), entry);
  }
  return changed;
}

function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}

/** For comparing and reading: a line a path. */
export function shown(manifest: Manifest): Record<string, string> {
  return Object.fromEntries(
    [...manifest].sort(([a], [b]) => (a < b ? -1 : 1)).map(([path, entry]) => [path, lineOf(entry)]),
  );
}

export function isSame(one: Manifest, other: Manifest): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([path, entry]) => {
    const there = other.get(path);
    return there !== undefined && lineOf(there) === lineOf(entry);
  });
}

export function lineOf(entry: Entry): string {
  switch (entry.kind) {
    case "file":
      return `file ${entry.mode.toString(8)} ${entry.size} ${entry.sha256}`;
    case "directory":
      return `directory ${entry.mode.toString(8)}`;
    case "symlink":
      return `link to ${entry.target}`;
  }
}

/** What the server counts: bytes in files, and files and links. */
export function totals(manifest: Manifest): { readonly size: string; readonly file_count: number } {
  const entries = [...manifest.values()];
  const size = entries.reduce((sum, entry) => sum + (entry.kind === "file" ? entry.size : 0), 0);
  return { size: String(size), file_count: entries.filter(({ kind }) => kind !== "directory").length };
}

/** From the answer of ListFiles. */
export function listedManifest(files: readonly Message[]): Manifest {
  return new Map(
    files.map((file) => {
      const { path, is_dir: isDirectory, symlink_target: target } = file as Record<string, string>;
      const mode = Number(file.mode);
      const entry: Entry = isDirectory
        ? { kind: "directory", mode }
        : target
          ? { kind: "symlink", target }
          : { kind: "file", mode, size: Number(file.size), sha256: String(file.checksum) };
      return [String(path), entry];
    }),
  );
}

/** What a directory of this machine really holds. */
export function manifestOnDisk(root: string): Manifest {
  const found = new Map<string, Entry>();
  const visit = (directory: string, above: string): void => {
    for (const name of readdirSync(directory)) {
      const place = join(directory, name);
      const path = `${above}${name}`;
      const status = lstatSync(place);
      const mode = status.mode & 0o7777;
      if (status.isSymbolicLink()) found.set(path, { kind: "symlink", target: readlinkSync(place) });
      else if (status.isFile()) found.set(path, fileOf(readFileSync(place), mode));
      else {
        found.set(path, { kind: "directory", mode });
        visit(place, `${path}/`);
      }
    }
  };
  visit(root, "");
  return found;
}
