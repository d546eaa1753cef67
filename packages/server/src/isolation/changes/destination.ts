import { randomBytes } from "node:crypto";
import { Errno, syscalls } from "@agentfense/fuse";
import type { Scope } from "@agentfense/permission";
import type { Delta } from "../filesystem/delta.ts";
import { closing } from "../filesystem/descriptors.ts";
import { readDirectory } from "../filesystem/directory-reader.ts";
import type { Owner } from "../filesystem/presentation.ts";
import { dissolveOpaque, removeName } from "../filesystem/settlement.ts";
import { copyData } from "../filesystem/transfer.ts";
import { atOnce } from "../filesystem/walks.ts";
import { type DeltaDirectory, whiteoutFor } from "../filesystem/whiteouts.ts";
import { copyUserXattrs } from "../filesystem/xattrs.ts";
import type { Keep, NamelessFile } from "./batch.ts";
import { type EntryHandle, MODE_BITS, openRegular, readTarget, statOf } from "./comparison.ts";
import type { EntryType } from "./diff.ts";
import { keep } from "./durability.ts";
import type { Selection } from "./selection.ts";
import type { ChangeKind } from "./walk.ts";

const { AT_REMOVEDIR, FileType, Open, Rename, Stat } = syscalls;

/**
 * Where the changes of a delta go. Application decides about each, this carries it out; results are errnos, 0 for success.
 * What it has no method for is only decided: one without any is a rehearsal.
 */
export interface Destination {
  /** The codebase's directories are made as the walk goes down; otherwise those that it lacks are missing. */
  readonly writesCodebase?: boolean;
  begin?(pair: Pair, read: DeltaDirectory): number;
  /** An errno, 0, or the file that is to have the name. */
  file?(candidate: Candidate): Promise<number | NamelessFile>;
  link?(candidate: Candidate): number;
  makeDirectory?(candidate: Candidate): number;
  /** All that is in a new directory is in place. */
  finishDirectory?(candidate: Candidate): void;
  setMode?(candidate: Candidate, mode: number): number;
  /** An entry of the codebase, which the candidate deletes or replaces; a directory when nothing is left in it. */
  remove?(place: EntryHandle, names: readonly string[], type: number, candidate: Candidate): number;
  /** These need not be in the delta any longer: the codebase has them, safely on the disk. */
  settle?(pair: Pair, departures: readonly Departure[]): number;
  /** Not carried out, and why. */
  kept?(report: ChangeReport, candidate: Candidate | undefined): void;
  /** Absent: there is nothing to wait for. */
  readonly keep?: Keep | undefined;
}

const DIRECTORY = syscalls.FileType.DIRECTORY >> 12;

/** Writes the codebase and leaves the delta alone, which may be in use. */
export class CodebaseWriter implements Destination {
  readonly writesCodebase = true;
  readonly keep: Keep = keep;
  readonly #signal: AbortSignal | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  begin(pair: Pair, _read: DeltaDirectory): number {
    removeUnfinished(pair.lower);
    return 0;
  }

  /** A copy of the delta's file, which takes the place of whatever has the target's name but a filled directory. */
  async file({ source, target }: Pick<Candidate, "source" | "target">): Promise<number | NamelessFile> {
    const before = new Stat();
    const from = openDeltaFile(source, before);
    if (from < 0) return -from;
    using open = new DisposableStack();
    open.use(closing(from));
    const copy = UnfinishedFile.in(target.directory);
    if (typeof copy === "number") return copy;
    open.use(copy);
    let code = await copyData(from, copy.fd, before.size, this.#signal);
    if (code === 0) code = dress(from, copy.fd, before, target);
    if (code === 0 && hasChanged(from, before)) code = -Errno.ESTALE;
    if (code < 0) return -code;
    const all = open.move();
    return {
      fd: copy.fd,
      size: before.size,
      place: () => (hasChanged(from, before) ? Errno.ESTALE : -copy.place(target)),
      [Symbol.dispose]: () => all.dispose(),
    };
  }

  /** Recreates the delta's symlink; where it leads is nobody's business here. 0 or an errno. */
  link({ source, target }: Candidate): number {
    const stat = statOf(source);
    const leadsTo = readTarget(source);
    return stat === undefined || leadsTo === undefined ? Errno.ESTALE : placeLink(target, leadsTo, stat);
  }

  /** Makes a directory, in place of a file or link if one has the name; its mode comes when it is filled. 0 or an errno. */
  makeDirectory({ target }: Pick<Candidate, "target">): number {
    const old = statOf(target);
    const owner = ownerFor(target);
    const name = old === undefined ? target.name : unfinishedName();
    let code = syscalls.mkdirat(target.directory, name, 0o700);
    if (code < 0) return -code;
    giveTo(owner, target.directory, name);
    if (old !== undefined) {
      code = putInPlace(target, name);
      if (code < 0) syscalls.unlinkat(target.directory, name, AT_REMOVEDIR);
    }
    return -code;
  }

  // A mode that shuts out its owner comes when all is in place; so do the times.
  finishDirectory({ target: { directory, name }, now }: Candidate): void {
    syscalls.chmodat(directory, name, now.mode & MODE_BITS);
    syscalls.utimensat(directory, name, now.mtime, now.mtimeNs, now.mtime, now.mtimeNs);
  }

  setMode({ target }: Candidate, mode: number): number {
    return -syscalls.chmodat(target.directory, target.name, mode);
  }

  remove({ directory, name }: EntryHandle, _names: readonly string[], type: number): number {
    return -syscalls.unlinkat(directory, name, type === DIRECTORY ? syscalls.AT_REMOVEDIR : 0);
  }
}

/** Writes the codebase, and takes what is there out of the delta, which nobody else has open. */
export class CodebaseMover extends CodebaseWriter {
  readonly #delta: Delta;

  constructor(options: { delta: Delta; signal: AbortSignal | undefined }) {
    super(options.signal);
    this.#delta = options.delta;
  }

  override begin(pair: Pair, read: DeltaDirectory): number {
    const errno = super.begin(pair, read);
    if (errno !== 0 || !read.opaque) return errno;
    return -atOnce(dissolveOpaque(this.#delta, pair.deltas[0]!, [pair.lower], read.names));
  }

  settle(pair: Pair, departures: readonly Departure[]): number {
    return leaveDelta(pair.deltas[0]!, departures);
  }
}

/** A directory of the delta and the one of the codebase that it changes. */
export interface Pair {
  /** The delta's directory, and those of what it lies on. */
  readonly deltas: readonly number[];
  /** -1 where the codebase lacks it: when nothing is written there. */
  readonly lower: number;
  readonly names: readonly string[];
  readonly scope: Scope;
  readonly selection: Selection;
  /** The mark that shuts this directory, or one above, against the codebase: nothing of the codebase's shows here. */
  readonly opaque: syscalls.Stat | undefined;
}

/** One entry of the delta, on its way into the codebase. */
export interface Candidate {
  readonly names: readonly string[];
  readonly scope: Scope;
  readonly selection: Selection;
  readonly source: EntryHandle;
  readonly target: EntryHandle;
  readonly isDeletion: boolean;
  /** In the delta: the entry, the whiteout, or the mark that deletes everything in its directory. */
  readonly now: syscalls.Stat;
  readonly old: syscalls.Stat | undefined;
}

/** A name that the delta no longer needs to hold, as an entry or as a whiteout. */
export interface Departure {
  readonly name: string;
  /** Goes only if nothing is left in it. */
  readonly isDirectory: boolean;
  /** What it was when it was looked at; undefined for a deletion. */
  readonly entry: syscalls.Stat | undefined;
}

/** Takes names out of a directory of the delta: the codebase shows there again. 0, or the last errno. */
function leaveDelta(directory: number, departures: readonly Departure[]): number {
  let errno = 0;
  for (const { name, isDirectory } of departures) {
    // First the whiteout, which has no effect while the entry is there; the other way round the name would be gone.
    const code =
      removeName(directory, whiteoutFor(name).name) || removeName(directory, name, isDirectory ? AT_REMOVEDIR : 0);
    if (code < 0 && -code !== Errno.ENOTEMPTY) errno = -code;
  }
  return errno;
}

/**
 * What became of one change.
 *
 *   applied   the codebase has it (in a dry run: would have it), and the delta no longer does
 *   refused   the rules forbid it, or it is nothing that is ever carried over; it stays in the delta
 *   held      the host may run or trust it unasked, and such was to be held back; it stays in the delta
 *   failed    the host said no: disk full, permissions, a file that changed meanwhile; it stays in the delta
 */
export type Outcome = "applied" | "refused" | "held" | "failed";

export interface ChangeReport {
  readonly outcome: Outcome;
  readonly kind: ChangeKind;
  /** "/src/a.ts"; bytes that are not UTF-8 are lone surrogates U+DC80 to U+DCFF. */
  readonly path: string;
  readonly type: EntryType;
  /** Why it was not applied, or what else there is to know. */
  readonly reason?: string;
  /** The host may run or trust it without being asked to, or it is a link out of the workspace. */
  readonly sensitive: boolean;
  /** The codebase's file had changed after the sandbox made its own version of it. */
  readonly overwroteNewer: boolean;
}

export interface ApplyReport {
  readonly dryRun: boolean;
  /** In the order of their paths; that of a directory's mode comes after what is in it. */
  readonly changes: readonly ChangeReport[];
}

// Every entry is complete before it takes its name in the codebase, by one rename: a crash leaves the old or the new one.
// Until then it has no name at all where the file system can do that (O_TMPFILE), else a name of this form in the directory
// it is meant for. The codebase is locked by whoever makes such names, so those that are found are a dead process's.
const UNFINISHED = /^\.agentfense-apply-[0-9a-f]{16}$/;

export function isUnfinishedName(name: string): boolean {
  return UNFINISHED.test(name);
}

/** A new file, without a name where the disk can do that. Disposed of, it goes, unless it was put in its place. */
class UnfinishedFile implements Disposable {
  readonly fd: number;
  readonly #directory: number;
  #name: string;

  private constructor(fd: number, directory: number, name: string) {
    this.fd = fd;
    this.#directory = directory;
    this.#name = name;
  }

  /** An errno where none can be made. */
  static in(directory: number): UnfinishedFile | number {
    const nameless = syscalls.openat(directory, ".", Open.TMPFILE | Open.RDWR, 0o600);
    if (nameless >= 0) return new UnfinishedFile(nameless, directory, "");
    const name = unfinishedName();
    const fd = syscalls.openat(directory, name, Open.RDWR | Open.CREAT | Open.EXCL, 0o600);
    return fd < 0 ? -fd : new UnfinishedFile(fd, directory, name);
  }

  /** 0, or an errno below it. */
  place(target: EntryHandle): number {
    if (this.#name === "") {
      // Where nothing is, one step does; a link replaces nothing.
      const linked = syscalls.linkDescriptor(this.fd, target.directory, target.name);
      if (-linked !== Errno.EEXIST) return linked;
      const name = unfinishedName();
      const code = syscalls.linkDescriptor(this.fd, this.#directory, name);
      if (code < 0) return code;
      this.#name = name;
    }
    const code = putInPlace(target, this.#name);
    if (code === 0) this.#name = "";
    return code;
  }

  [Symbol.dispose](): void {
    if (this.#name !== "") syscalls.unlinkat(this.#directory, this.#name);
    syscalls.close(this.fd);
  }
}

function unfinishedName(): string {
  return `.agentfense-apply-${randomBytes(8).toString("hex")}`;
}

/** Removes what a killed apply left in a directory of the codebase; it never leaves a directory with content. */
export function removeUnfinished(directory: number): void {
  const found: string[] = [];
  readDirectory(directory, (name) => {
    if (isUnfinishedName(name)) found.push(name);
  });
  for (const name of found) {
    if (syscalls.unlinkat(directory, name) < 0) syscalls.unlinkat(directory, name, AT_REMOVEDIR);
  }
}

/** Makes a symlink, in place of whatever has the name but a filled directory. 0 or an errno. */
export function placeLink(target: EntryHandle, leadsTo: string, stat?: syscalls.Stat): number {
  const name = unfinishedName();
  let code = syscalls.symlinkat(leadsTo, target.directory, name);
  if (code < 0) return -code;
  giveTo(ownerFor(target), target.directory, name);
  if (stat !== undefined) {
    syscalls.utimensat(target.directory, name, stat.mtime, stat.mtimeNs, stat.mtime, stat.mtimeNs);
  }
  code = putInPlace(target, name);
  if (code < 0) syscalls.unlinkat(target.directory, name);
  return -code;
}

/** Gives what is complete its name. What had it goes; a directory only if it is empty. */
function putInPlace({ directory, name }: EntryHandle, unfinished: string): number {
  const [old, now] = [statOf({ directory, name }), statOf({ directory, name: unfinished })];
  const oldIsDirectory = old?.type === FileType.DIRECTORY;
  const replaces = old === undefined || oldIsDirectory === (now?.type === FileType.DIRECTORY);
  if (replaces) return syscalls.renameat2(directory, unfinished, directory, name);
  // rename(2) does not put a file in place of a directory, nor the other way round; the two change names instead.
  const code = syscalls.renameat2(directory, unfinished, directory, name, Rename.EXCHANGE);
  if (code < 0) return code;
  const removed = syscalls.unlinkat(directory, unfinished, oldIsDirectory ? AT_REMOVEDIR : 0);
  if (removed < 0) syscalls.renameat2(directory, unfinished, directory, name, Rename.EXCHANGE);
  return removed;
}

/** Opens a file of the delta, and says what it is then. The agent may have made it unreadable to a server that is not root. */
export function openDeltaFile(source: EntryHandle, stat: syscalls.Stat): number {
  const fd = openRegular(source, stat);
  const own = statOf(source);
  if (-fd !== Errno.EACCES || own?.type !== FileType.REGULAR) return fd;
  if (syscalls.chmodat(source.directory, source.name, 0o600) < 0) return fd;
  const again = openRegular(source, stat);
  syscalls.chmodat(source.directory, source.name, own.mode & MODE_BITS);
  if (again >= 0) syscalls.fstat(again, stat);
  return again;
}

/** The open file is not what it was. */
export function hasChanged(fd: number, before: syscalls.Stat): boolean {
  const now = new Stat();
  if (syscalls.fstat(fd, now) < 0) return true;
  const same = now.size === before.size && now.mtime === before.mtime && now.mtimeNs === before.mtimeNs;
  return !(same && now.ctime === before.ctime && now.ctimeNs === before.ctimeNs);
}

// Mode and times are the delta's; setuid, setgid, sticky, owner and all attributes but user.* are not carried over.
function dress(from: number, to: number, stat: syscalls.Stat, target: EntryHandle): number {
  copyUserXattrs(from, to);
  let code = giveTo(ownerFor(target), to, "");
  if (code === 0) code = syscalls.fchmod(to, stat.mode & MODE_BITS);
  return code < 0 ? code : syscalls.utimensat(to, "", stat.atime, stat.atimeNs, stat.mtime, stat.mtimeNs);
}

/** The owner of the file that stands there now, else that of the directory. Only root can give anything away. */
function ownerFor(target: EntryHandle): Owner | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const old = statOf(target);
  if (old !== undefined && old.type !== FileType.DIRECTORY) return old;
  const directory = new Stat();
  return syscalls.fstat(target.directory, directory) < 0 ? undefined : directory;
}

function giveTo(owner: Owner | undefined, directory: number, name: string): number {
  return owner === undefined ? 0 : syscalls.fchownat(directory, name, owner.uid, owner.gid);
}
