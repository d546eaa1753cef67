import { createHash } from "node:crypto";
import { syscalls } from "@agentfense/fuse";
import { walkDirectory } from "./directory-reader.ts";
import { PATH_LIMIT } from "./names.ts";
import { turn, type Walk } from "./walks.ts";

const { FileType, Open } = syscalls;

// How a deletion is written down in the delta, so that the delta is a valid OCI image layer:
//
//   .wh.<name>              an empty file: <name> of the layers below does not exist
//   .wh..wh.long.<digest>   a file whose content is the name, for names that do not fit behind the prefix (over 251
//                           bytes) or begin with it themselves; <digest> is the SHA-256 of the name in hexadecimal
//   .wh..wh..opq            an empty file in a directory: nothing of the layers below shows in this directory
//
// What remains when the prefix is taken away must be a proper name: `.wh.`, `.wh..` and `.wh...` mean nothing.
// An entry of the delta always outranks a whiteout of the same name beside it. Every change relies on that to be atomic:
// the whiteout is laid down first and takes effect when the entry goes.

const WHITEOUT_PREFIX = ".wh.";
export const OPAQUE_MARKER = ".wh..wh..opq";
const LONG_PREFIX = ".wh..wh.long.";
const NAME_MAX = 255;

/** Names of this form belong to the delta's bookkeeping and cannot be created through the mount. */
export function isReserved(name: string): boolean {
  return name.startsWith(WHITEOUT_PREFIX);
}

export interface WhiteoutFile {
  readonly name: string;
  readonly content: string;
}

/** The file that stands for the deletion of a name. */
export function whiteoutFor(name: string): WhiteoutFile {
  if (!isReserved(name) && name.length + WHITEOUT_PREFIX.length <= NAME_MAX) {
    return { name: WHITEOUT_PREFIX + name, content: "" };
  }
  const digest = createHash("sha256").update(name, "latin1").digest("hex");
  return { name: LONG_PREFIX + digest, content: name };
}

/** What a reserved name in a delta directory stands for. */
export type Marker = { kind: "whiteout"; name: string } | { kind: "long-whiteout" } | { kind: "opaque" } | undefined;

function readMarker(fileName: string): Marker {
  if (fileName === OPAQUE_MARKER) return { kind: "opaque" };
  if (fileName.startsWith(LONG_PREFIX)) return { kind: "long-whiteout" };
  const name = fileName.slice(WHITEOUT_PREFIX.length);
  return name === "" || name === "." || name === ".." ? undefined : { kind: "whiteout", name };
}

/** One directory of a delta's tree, read with suspicion: the format is in whiteouts.ts. */
export interface DeltaDirectory {
  readonly names: ReadonlySet<string>;
  /** Deleted names, with the file that says so. A name can be here and in `names`, which then decides. */
  readonly whiteouts: ReadonlyMap<string, string>;
  /** Nothing of the codebase's directory shows here. */
  readonly opaque: boolean;
  /** Files with a reserved name that mean nothing, `.wh..` and `.wh...` among them. */
  readonly meaningless: readonly string[];
}

/** What a rmdir or a rename put aside because the rules hide it; see EntryChanges. */
export const KEPT_PREFIX = ".wh..wh.kept.";

/** Reads a directory of the delta, or returns a negated errno. */
export function* readDeltaDirectory(directory: number): Walk<DeltaDirectory | number> {
  const names = new Set<string>();
  const reserved: string[] = [];
  const code = yield* walkDirectory(directory, (name) => {
    if (isReserved(name)) reserved.push(name);
    else names.add(name);
  });
  if (code < 0) return code;
  const whiteouts = new Map<string, string>();
  const meaningless: string[] = [];
  const stat = new syscalls.Stat();
  for (const file of reserved) {
    turn.entries += 1;
    yield;
    if (file === OPAQUE_MARKER || file.startsWith(KEPT_PREFIX)) continue;
    const isFile = syscalls.statat(directory, file, stat) === 0 && stat.type === FileType.REGULAR;
    const name = isFile ? deletedName(directory, file) : undefined;
    if (name === undefined) meaningless.push(file);
    else whiteouts.set(name, file);
  }
  return { names, whiteouts, opaque: reserved.includes(OPAQUE_MARKER), meaningless };
}

const whiteoutStat = new syscalls.Stat();

/** A name of the layers below is deleted in a directory of a delta. */
export function hasWhiteout(directory: number, name: string): boolean {
  const file = whiteoutFor(name);
  if (syscalls.statat(directory, file.name, whiteoutStat) < 0) return false;
  return file.content === "" || readSmallFile(directory, file.name) === name;
}

/** The name a whiteout deletes. Only the one way to write it counts, and only what can be a name. */
export function deletedName(directory: number, file: string): string | undefined {
  const marker = readMarker(file);
  if (marker === undefined || marker.kind === "opaque") return undefined;
  const name = marker.kind === "whiteout" ? marker.name : readSmallFile(directory, file);
  if (name === undefined || name === "" || name === "." || name === ".." || name.length > LONGEST_NAME)
    return undefined;
  if (name.includes("/") || name.includes("\0") || whiteoutFor(name).name !== file) return undefined;
  return name;
}

const LONGEST_NAME = 255;

/** What the delta writes down in a file is an inode number and a path at most. */
export function readSmallFile(directory: number, name: string): string | undefined {
  const fd = syscalls.openat(directory, name, Open.RDONLY | Open.NONBLOCK);
  if (fd < 0) return undefined;
  const content = Buffer.allocUnsafe(2 * PATH_LIMIT);
  const length = syscalls.pread(fd, content, content.length, 0);
  syscalls.close(fd);
  return length < 0 ? undefined : content.toString("latin1", 0, length);
}
