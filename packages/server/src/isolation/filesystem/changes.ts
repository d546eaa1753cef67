import { check, SystemError, syscalls } from "@agentfense/fuse";
import { readDeltaDirectory } from "./delta-directory.ts";
import { readDirectory } from "./directory-reader.ts";
import { textOf } from "./names.ts";
import { ownRights } from "./own-rights.ts";

const { FileType, Open, Stat } = syscalls;

export interface Change {
  readonly kind: "added" | "modified" | "deleted";
  /** "/src/a.ts"; bytes that are not UTF-8 appear as lone surrogates U+DC80 to U+DCFF. */
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  /** Of the new content; of what was there, for a deletion. */
  readonly size: number;
}

const COMPARE_SIZE = 64 * 1024;

/**
 * What a delta changes, in path order, directory by directory. Entries that were only copied up and are still equal to the
 * codebase, content and mode, are no changes. No symlink is followed on either side.
 */
export async function* listChanges(spec: { delta: string; lowers: readonly string[] }): AsyncIterable<Change> {
  const open = (path: string): number =>
    check(`open ${path}`, syscalls.open(Buffer.from(path, "utf8").toString("latin1"), Open.PATH | Open.DIRECTORY));
  const opened: number[] = [];
  try {
    for (const path of [`${spec.delta}/tree`, ...spec.lowers]) opened.push(open(path));
    const [tree = -1, ...lowers] = opened;
    yield* changesIn(tree, lowers, "", { opaque: false });
  } finally {
    for (const fd of opened) syscalls.close(fd);
  }
}

/** `opaque`: a directory above is shut against the codebase, so nothing of it shows here either. */
async function* changesIn(
  delta: number,
  lowers: readonly number[],
  path: string,
  above: { opaque: boolean },
): AsyncGenerator<Change> {
  // Between directories others get their turn: a delta can be large.
  await new Promise((resolve) => setImmediate(resolve));
  using _rights = ownRights(delta);
  const entries = readDeltaDirectory(delta);
  if (typeof entries === "number") throw new SystemError(`list ${path}/ in the delta`, -entries);
  const opaque = above.opaque || entries.opaque;
  const names = new Set([...entries.names, ...entries.whiteouts.keys(), ...(opaque ? namesOf(lowers) : [])]);
  for (const name of [...names].sort()) {
    const childPath = `${path}/${textOf(name)}`;
    const old = statIn(lowers, name);
    if (entries.names.has(name)) yield* changesAt(delta, lowers, name, childPath, old, { opaque });
    else if (old) yield { kind: "deleted", path: childPath, ...describe(old) };
  }
}

async function* changesAt(
  delta: number,
  lowers: readonly number[],
  name: string,
  path: string,
  old: syscalls.Stat | undefined,
  above: { opaque: boolean },
): AsyncGenerator<Change> {
  const stat = new Stat();
  if (syscalls.statat(delta, name, stat) < 0) return;
  if (stat.type !== FileType.DIRECTORY) {
    if (old === undefined) yield { kind: "added", path, ...describe(stat) };
    else if (!(await isUnchanged(delta, lowers, name, stat, old))) yield { kind: "modified", path, ...describe(stat) };
    return;
  }
  const merged = old?.type === FileType.DIRECTORY;
  const sameMode = merged && (old.mode & 0o1777) === (stat.mode & 0o1777);
  if (!sameMode) yield { kind: old ? "modified" : "added", path, ...describe(stat) };
  const opened = [delta, ...(merged ? lowers : [])]
    .map((parent) => syscalls.openat(parent, name, Open.PATH | Open.DIRECTORY))
    .filter((fd) => fd >= 0);
  const [directory, ...beneath] = opened;
  try {
    if (directory !== undefined) yield* changesIn(directory, beneath, path, above);
  } finally {
    for (const fd of opened) syscalls.close(fd);
  }
}

function namesOf(directories: readonly number[]): string[] {
  const names: string[] = [];
  for (const directory of directories) readDirectory(directory, (name) => names.push(name));
  return names;
}

function statIn(lowers: readonly number[], name: string): syscalls.Stat | undefined {
  const stat = new Stat();
  return lowers.some((lower) => syscalls.statat(lower, name, stat) === 0) ? stat : undefined;
}

async function isUnchanged(
  delta: number,
  lowers: readonly number[],
  name: string,
  now: syscalls.Stat,
  old: syscalls.Stat,
): Promise<boolean> {
  if (now.type !== old.type || now.size !== old.size) return false;
  const lower = lowers.find((each) => syscalls.statat(each, name, new Stat()) === 0) ?? -1;
  if (now.type === FileType.SYMLINK) return target(delta, name) === target(lower, name);
  if (now.type !== FileType.REGULAR) return true;
  if ((now.mode & 0o777) !== (old.mode & 0o777)) return false;
  return sameContent(delta, lower, name);
}

function target(directory: number, name: string): string {
  const bytes = Buffer.alloc(4096);
  const length = syscalls.readlinkat(directory, name, bytes);
  return length < 0 ? "" : bytes.toString("latin1", 0, length);
}

async function sameContent(delta: number, lower: number, name: string): Promise<boolean> {
  const a = syscalls.openat(delta, name, Open.RDONLY | Open.NONBLOCK);
  const b = syscalls.openat(lower, name, Open.RDONLY | Open.NONBLOCK);
  try {
    if (a < 0 || b < 0) return false;
    const left = Buffer.alloc(COMPARE_SIZE);
    const right = Buffer.alloc(COMPARE_SIZE);
    for (let offset = 0; ; ) {
      const n = syscalls.pread(a, left, COMPARE_SIZE, offset);
      const m = syscalls.pread(b, right, COMPARE_SIZE, offset);
      if (n !== m || n < 0 || left.compare(right, 0, n, 0, n) !== 0) return false;
      if (n === 0) return true;
      offset += n;
      if (offset % (COMPARE_SIZE * 64) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    for (const fd of [a, b]) if (fd >= 0) syscalls.close(fd);
  }
}

function describe(stat: syscalls.Stat): { type: Change["type"]; size: number } {
  switch (stat.type) {
    case FileType.REGULAR:
      return { type: "file", size: stat.size };
    case FileType.DIRECTORY:
      return { type: "directory", size: 0 };
    case FileType.SYMLINK:
      return { type: "symlink", size: stat.size };
    default:
      return { type: "other", size: 0 };
  }
}
