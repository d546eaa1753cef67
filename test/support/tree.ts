import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import {
  chmodSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { AT, S } from "./constants.ts";
import { decodeName, encodeName, joinBytes } from "./names.ts";
import { cString, syscall } from "./syscall.ts";

/** A directory as a value: text or bytes are files, objects are directories, the rest is made by the helpers below. */
export interface Tree {
  readonly [name: string]: Entry;
}

export type Entry = string | Uint8Array | Special | Tree;

const SPECIAL: unique symbol = Symbol("special entry");

interface Special {
  readonly [SPECIAL]: "file" | "directory" | "link" | "hardlink" | "fifo" | "socket";
  readonly content?: string | Uint8Array;
  readonly entries?: Tree;
  readonly target?: string;
  readonly mode?: number;
  readonly mtime?: number;
}

export function file(options: { content?: string | Uint8Array; mode?: number; mtime?: number }): Special {
  return { [SPECIAL]: "file", content: "", ...options };
}

export function directory(entries: Tree, options: { mode?: number; mtime?: number } = {}): Special {
  return { [SPECIAL]: "directory", entries, ...options };
}

/** A symbolic link with exactly this target. */
export function link(target: string): Special {
  return { [SPECIAL]: "link", target };
}

/** Another name of the file at this path of the same tree; made after all other entries. */
export function hardlink(path: string): Special {
  return { [SPECIAL]: "hardlink", target: path };
}

export function fifo(): Special {
  return { [SPECIAL]: "fifo" };
}

/** A socket file that nobody listens on. */
export function socket(): Special {
  return { [SPECIAL]: "socket" };
}

/** Every entry gets this time unless it asks for another, so that two trees with equal entries are equal. */
const DEFAULT_MTIME = 1_600_000_000;

export function writeTree(root: string, tree: Tree): void {
  const links: [existing: Buffer, path: Buffer][] = [];
  writeDirectory(Buffer.from(root), tree, Buffer.from(root), links);
  for (const [existing, path] of links) linkSync(existing, path);
  setTimes(Buffer.from(root), tree);
  utimesSync(root, DEFAULT_MTIME, DEFAULT_MTIME);
}

function writeDirectory(directory: Buffer, tree: Tree, root: Buffer, links: [Buffer, Buffer][]): void {
  for (const [name, entry] of Object.entries(tree)) {
    const path = joinBytes(directory, encodeName(name));
    if (typeof entry === "string" || entry instanceof Uint8Array) {
      writeFileSync(path, entry);
      chmodSync(path, 0o644);
    } else if (!isSpecial(entry)) {
      mkdirSync(path, { mode: 0o755 });
      writeDirectory(path, entry, root, links);
    } else writeSpecial(path, entry, root, links);
  }
}

function writeSpecial(path: Buffer, entry: Special, root: Buffer, links: [Buffer, Buffer][]): void {
  switch (entry[SPECIAL]) {
    case "file":
      writeFileSync(path, entry.content ?? "");
      chmodSync(path, entry.mode ?? 0o644);
      return;
    case "directory":
      mkdirSync(path, { mode: 0o755 });
      writeDirectory(path, entry.entries ?? {}, root, links);
      chmodSync(path, entry.mode ?? 0o755);
      return;
    case "link":
      symlinkSync(encodeName(entry.target ?? ""), path);
      return;
    case "hardlink":
      links.push([joinBytes(root, encodeName((entry.target ?? "").replace(/^\//, ""))), path]);
      return;
    case "fifo":
      makeNode(path, S.IFIFO);
      return;
    case "socket":
      makeNode(path, S.IFSOCK);
  }
}

function makeNode(path: Buffer, type: number): void {
  const { errno } = syscall("mknodat", AT.FDCWD, cString(path), type | 0o644, 0);
  if (errno !== "OK") throw new Error(`mknod ${path}: ${errno}`);
}

function setTimes(directory: Buffer, tree: Tree): void {
  for (const [name, entry] of Object.entries(tree)) {
    const path = joinBytes(directory, encodeName(name));
    const below = typeof entry === "string" || entry instanceof Uint8Array ? undefined : entriesOf(entry);
    if (below !== undefined) setTimes(path, below);
    const mtime = isSpecial(entry) ? (entry.mtime ?? DEFAULT_MTIME) : DEFAULT_MTIME;
    lutimesSync(path, mtime, mtime);
  }
}

function entriesOf(entry: Special | Tree): Tree | undefined {
  return isSpecial(entry) ? entry.entries : entry;
}

function isSpecial(entry: Entry): entry is Special {
  return typeof entry === "object" && SPECIAL in entry;
}

/**
 * Everything that must stay as it is in a directory, by path: type, permission bits, owner, size, modification time
 * and a checksum of the content. Times of access are left out: reading is allowed.
 */
export function treeState(root: string): Record<string, string> {
  const state: Record<string, string> = {};
  const visit = (path: Buffer, shown: string): void => {
    const status = lstatSync(path, { bigint: true });
    const facts = [status.mode.toString(8), `${status.uid}:${status.gid}`, `mtime ${status.mtimeNs}`];
    if (status.isFile()) {
      const checksum = createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 16);
      facts.push(`${status.size} bytes`, `sha256 ${checksum}`, `links ${status.nlink}`);
    }
    if (status.isSymbolicLink()) facts.push(`-> ${decodeName(readlinkSync(path, { encoding: "buffer" }))}`);
    state[shown] = facts.join(", ");
    if (!status.isDirectory()) return;
    for (const name of readdirSync(path, { encoding: "buffer" }).sort(Buffer.compare)) {
      visit(joinBytes(path, name), `${shown === "/" ? "" : shown}/${decodeName(name)}`);
    }
  };
  visit(Buffer.from(root), "/");
  return state;
}
