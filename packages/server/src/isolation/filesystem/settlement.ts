import { Errno, syscalls } from "@agentfense/fuse";
import type { Delta } from "./delta.ts";
import { closing } from "./descriptors.ts";
import { readDirectory, walkDirectory } from "./directory-reader.ts";
import { keepTimes, withOwnRights } from "./own-rights.ts";
import { turn, type Walk } from "./walks.ts";
import { OPAQUE_MARKER, readDeltaDirectory, whiteoutFor } from "./whiteouts.ts";

const { AT_REMOVEDIR, FileType, Open, Stat } = syscalls;

const MODE_BITS = 0o777;
const OWNER_BITS = 0o700;

/** A delta entry at the moment it was read, to recognise it by. */
export interface DeltaStamp {
  readonly inode: number;
  readonly size: number;
  readonly changedAtNs: string;
}

export interface SettledEntry {
  /** "/src/a.ts" */
  readonly path: string;
  /** Absent for a deletion: what settles is then the whiteout. */
  readonly stamp: DeltaStamp | undefined;
}

export function stampOf(stat: syscalls.Stat): DeltaStamp {
  const changedAtNs = (BigInt(stat.ctime) * 1_000_000_000n + BigInt(stat.ctimeNs)).toString();
  return { inode: stat.ino, size: stat.size, changedAtNs };
}

/** A name in a directory of the delta, with the codebase's directories of the same path, top first. */
export interface SettlingPlace {
  readonly delta: Delta;
  readonly directory: number;
  readonly lowers: readonly number[];
  readonly name: string;
}

/**
 * What became of an entry that the codebase has too.
 *
 *   left     it is out of the delta; `entry` describes what it was, `lower` what shows now
 *   stays    it is another one by now, or cannot leave
 *   nothing  the delta says nothing about the name
 */
export type Settled =
  | { readonly outcome: "left"; readonly entry?: syscalls.Stat; readonly lower: syscalls.Stat | undefined }
  | { readonly outcome: "stays" | "nothing" };

const STAYS: Settled = { outcome: "stays" };

/**
 * Takes an entry out of the delta so that the codebase shows through; without a stamp, a whiteout. The times of the
 * directory stay what they were: to the sandbox nothing happens.
 */
export function* letGo(place: SettlingPlace, stamp: DeltaStamp | undefined): Walk<Settled> {
  const { directory, name } = place;
  const entry = statIn([directory], name);
  const whiteout = statIn([directory], whiteoutFor(name).name);
  if (entry === undefined && whiteout === undefined) return { outcome: "nothing" };
  // Made where something was deleted, or deleted where something was: that is news.
  if ((entry === undefined) !== (stamp === undefined)) return STAYS;
  const lower = statIn(place.lowers, name);
  if (entry === undefined) return liftWhiteout(place, whiteout, lower);
  if (entry.type === FileType.DIRECTORY) return stamp?.inode === entry.ino ? yield* letGoDirectory(place) : STAYS;
  const now = stampOf(entry);
  const isSame = now.inode === stamp?.inode && now.size === stamp.size && now.changedAtNs === stamp.changedAtNs;
  if (!isSame || entry.nlink > 1) return STAYS;
  return removeBoth(directory, name) < 0 ? STAYS : { outcome: "left", entry, lower };
}

/** A directory that holds nothing and says nothing that the codebase's does not. */
export function* letGoDirectory(place: SettlingPlace): Walk<Settled> {
  const { directory, name } = place;
  const entry = statIn([directory], name);
  const lower = statIn(place.lowers, name);
  if (entry?.type !== FileType.DIRECTORY || lower?.type !== FileType.DIRECTORY) return STAYS;
  if (!isSameMode(entry.mode, lower.mode)) return STAYS;
  if (!(yield* isBare(place))) return { outcome: "nothing" }; // of its own it has nothing to say
  return removeBoth(directory, name, AT_REMOVEDIR) < 0 ? STAYS : { outcome: "left", entry, lower };
}

/** Names can leave a directory one by one only when it is not shut against the codebase as a whole. 0 or a negated errno. */
export function* openToCodebase(delta: Delta, directory: number, lowers: readonly number[]): Walk<number> {
  if (statIn([directory], OPAQUE_MARKER) === undefined) return 0;
  const read = yield* readDeltaDirectory(directory);
  if (typeof read === "number") return read;
  using _times = keepTimes(directory);
  return yield* dissolveOpaque(delta, directory, lowers, read.names);
}

/** Opens a directory of this name in each of some directories that has one, until something else has the name. */
export function openDirectories(directories: readonly number[], name: string): number[] {
  const opened: number[] = [];
  for (const directory of directories) {
    const stat = statIn([directory], name);
    if (stat === undefined) continue;
    const fd = stat.type === FileType.DIRECTORY ? syscalls.openat(directory, name, Open.RDONLY | Open.DIRECTORY) : -1;
    if (fd < 0) break;
    opened.push(fd);
  }
  return opened;
}

// What the codebase has there now came after the deletion: newer work, which an old whiteout must not delete again. If it
// was there before, the deletion has not happened yet.
function liftWhiteout(
  { directory, name }: SettlingPlace,
  whiteout: syscalls.Stat | undefined,
  lower: syscalls.Stat | undefined,
): Settled {
  if (lower !== undefined && whiteout !== undefined && !isLater(bornAt(lower), bornAt(whiteout))) return STAYS;
  using _times = keepTimes(directory);
  return removeName(directory, whiteoutFor(name).name) < 0 ? STAYS : { outcome: "left", lower };
}

type Moment = readonly [seconds: number, nanoseconds: number];

function isLater([a, aNs]: Moment, [b, bNs]: Moment): boolean {
  return a > b || (a === b && aNs > bNs);
}

/**
 * Of the content: a file is never written in place, a directory is what was last put into it. The last change, where there are
 * no births, can only be later.
 */
function bornAt(stat: syscalls.Stat): Moment {
  return stat.btime === 0 || stat.type === FileType.DIRECTORY ? [stat.ctime, stat.ctimeNs] : [stat.btime, stat.btimeNs];
}

// An ordinary user's codebase keeps its owner's bits on disk, whatever the mode says.
function isSameMode(mode: number, lower: number): boolean {
  const wanted = process.geteuid?.() === 0 ? mode : mode | (lower & OWNER_BITS);
  return (wanted & MODE_BITS) === (lower & MODE_BITS);
}

function* isBare({ delta, directory, lowers, name }: SettlingPlace): Walk<boolean> {
  const fd = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
  if (fd < 0) return false;
  const below = openDirectories(lowers, name);
  using _open = closing(fd, ...below);
  if ((yield* openToCodebase(delta, fd, below)) < 0) return false;
  const read = yield* readDeltaDirectory(fd);
  return typeof read !== "number" && read.names.size === 0 && read.whiteouts.size === 0;
}

/** The whiteout first: beside nothing it would delete the name. */
function removeBoth(directory: number, name: string, flags = 0): number {
  using _times = keepTimes(directory);
  return removeName(directory, whiteoutFor(name).name) || removeName(directory, name, flags);
}

function statIn(directories: readonly number[], name: string): syscalls.Stat | undefined {
  const stat = new Stat();
  return directories.some((directory) => syscalls.statat(directory, name, stat) === 0) ? stat : undefined;
}

/** Removes a name from a directory of the delta, whatever mode its owner gave it. 0 also when there is none, or a negated errno. */
export function removeName(directory: number, name: string, flags = 0): number {
  let code = syscalls.unlinkat(directory, name, flags);
  if (-code === Errno.EACCES) code = withOwnRights(directory, () => syscalls.unlinkat(directory, name, flags));
  return -code === Errno.ENOENT ? 0 : code;
}

/** Every name in some directories; one that several have comes several times. */
export function namesIn(directories: readonly number[]): string[] {
  const names: string[] = [];
  for (const directory of directories) readDirectory(directory, (name) => names.push(name));
  return names;
}

/**
 * Says the same as the mark that shuts a directory against the codebase, name by name, so that single names can leave: a
 * whiteout for each name of the codebase that the delta lacks, and the mark on each directory below that would begin to
 * merge. All of that has no effect until the mark is lifted. 0 or a negated errno.
 */
export function* dissolveOpaque(
  delta: Delta,
  directory: number,
  lowers: readonly number[],
  names: ReadonlySet<string>,
): Walk<number> {
  const below = new Set<string>();
  for (const lower of lowers) yield* walkDirectory(lower, (name) => void below.add(name));
  for (const name of below) {
    turn.entries += 1;
    yield;
    const code = names.has(name) ? shut(delta, directory, lowers, name) : delta.layWhiteout(directory, name);
    if (code < 0) return code;
  }
  return removeName(directory, OPAQUE_MARKER);
}

function shut(delta: Delta, directory: number, lowers: readonly number[], name: string): number {
  if (!isDirectory(directory, name) || !lowers.some((lower) => isDirectory(lower, name))) return 0;
  const fd = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
  if (fd < 0) return fd;
  const code = delta.markOpaque(fd);
  syscalls.close(fd);
  return code;
}

function isDirectory(directory: number, name: string): boolean {
  const stat = new Stat();
  return syscalls.statat(directory, name, stat) === 0 && stat.type === FileType.DIRECTORY;
}
