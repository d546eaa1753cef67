import { createHash } from "node:crypto";

/** What stands at a path. Never changed in place: a change puts another one there, so that versions may share them. */
export type Entry = FileEntry | DirectoryEntry | LinkEntry;

export interface FileEntry {
  readonly kind: "file";
  readonly content: Uint8Array;
  readonly mode: number;
  readonly modifiedAtMs: number;
}

export interface DirectoryEntry {
  readonly kind: "directory";
  readonly mode: number;
  readonly modifiedAtMs: number;
}

export interface LinkEntry {
  readonly kind: "symlink";
  readonly target: string;
  readonly modifiedAtMs: number;
}

const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

export function fileEntry(content: Uint8Array, mode = FILE_MODE, modifiedAtMs = Date.now()): FileEntry {
  return { kind: "file", content, mode, modifiedAtMs };
}

export function directoryEntry(mode = DIRECTORY_MODE, modifiedAtMs = Date.now()): DirectoryEntry {
  return { kind: "directory", mode, modifiedAtMs };
}

export function linkEntry(target: string, modifiedAtMs = Date.now()): LinkEntry {
  return { kind: "symlink", target, modifiedAtMs };
}

export function modeOf(entry: Entry): number {
  return entry.kind === "symlink" ? 0o777 : entry.mode;
}

/** Bytes of content; directories have none, a link has its target. */
export function sizeOf(entry: Entry): number {
  if (entry.kind === "file") return entry.content.length;
  return entry.kind === "symlink" ? Buffer.byteLength(entry.target) : 0;
}

/** In everything but the time. */
export function isSame(one: Entry, other: Entry): boolean {
  if (one.kind === "symlink") return other.kind === "symlink" && one.target === other.target;
  if (one.kind === "directory") return other.kind === "directory" && one.mode === other.mode;
  return other.kind === "file" && one.mode === other.mode && Buffer.compare(one.content, other.content) === 0;
}

const hashes = new WeakMap<Uint8Array, string>();

/** SHA-256 in hexadecimal of a file's content; "" for what has none. */
export function sha256Of(entry: Entry): string {
  if (entry.kind !== "file") return "";
  const known = hashes.get(entry.content) ?? createHash("sha256").update(entry.content).digest("hex");
  hashes.set(entry.content, known);
  return known;
}
