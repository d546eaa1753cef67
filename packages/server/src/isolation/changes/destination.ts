import { Errno, syscalls } from "@agentfense/fuse";
import type { Scope } from "@agentfense/permission";
import type { Delta } from "../filesystem/delta.ts";
import type { DeltaDirectory } from "../filesystem/delta-directory.ts";
import { dissolveOpaque, removeName } from "../filesystem/opaque.ts";
import { atOnce } from "../filesystem/walks.ts";
import { whiteoutFor } from "../filesystem/whiteouts.ts";
import { MODE_BITS, type Place } from "./comparison.ts";
import type { EntryType } from "./diff.ts";
import { installDirectory, installFile, installLink, removeUnfinished } from "./installation.ts";
import type { Selection } from "./selection.ts";
import type { ChangeKind } from "./walk.ts";

const { AT_REMOVEDIR } = syscalls;

/**
 * Where the changes of a delta go. Application decides about each, this carries it out; results are errnos, 0 for success.
 * What it has no method for is only decided: one without any is a rehearsal.
 */
export interface Destination {
  /** The codebase's directories are made as the walk goes down; otherwise those that it lacks are missing. */
  readonly writesCodebase?: boolean;
  begin?(pair: Pair, read: DeltaDirectory): number;
  file?(candidate: Candidate): Promise<number>;
  link?(candidate: Candidate): number;
  makeDirectory?(candidate: Candidate): number;
  /** All that is in a new directory is in place. */
  finishDirectory?(candidate: Candidate): void;
  setMode?(candidate: Candidate, mode: number): number;
  /** An entry of the codebase, which the candidate deletes or replaces; a directory when nothing is left in it. */
  remove?(place: Place, names: readonly string[], type: number, candidate: Candidate): number;
  /** These need not be in the delta any longer. */
  settle?(pair: Pair, departures: readonly Departure[]): number;
  /** Not carried out, and why. */
  kept?(report: ChangeReport, candidate: Candidate | undefined): void;
}

const DIRECTORY = syscalls.FileType.DIRECTORY >> 12;

/** Writes the codebase and leaves the delta alone, which may be in use. */
export class CodebaseWriter implements Destination {
  readonly writesCodebase = true;
  readonly #signal: AbortSignal | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
  }

  begin(pair: Pair, _read: DeltaDirectory): number {
    removeUnfinished(pair.lower);
    return 0;
  }

  file({ source, target }: Candidate): Promise<number> {
    return installFile(source, target, this.#signal);
  }

  link({ source, target }: Candidate): number {
    return installLink(source, target);
  }

  makeDirectory({ target }: Candidate): number {
    return installDirectory(target);
  }

  // A mode that shuts out its owner comes when all is in place; so do the times.
  finishDirectory({ target: { directory, name }, now }: Candidate): void {
    syscalls.chmodat(directory, name, now.mode & MODE_BITS);
    syscalls.utimensat(directory, name, now.mtime, now.mtimeNs, now.mtime, now.mtimeNs);
  }

  setMode({ target }: Candidate, mode: number): number {
    return -syscalls.chmodat(target.directory, target.name, mode);
  }

  remove({ directory, name }: Place, _names: readonly string[], type: number): number {
    return -syscalls.unlinkat(directory, name, type === DIRECTORY ? syscalls.AT_REMOVEDIR : 0);
  }

  // Only what is safely on the disk leaves the delta.
  settle(pair: Pair, _departures: readonly Departure[]): number {
    return -syscalls.fsync(pair.lower);
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
    return -atOnce(dissolveOpaque(this.#delta, pair.delta, [pair.lower], read.names));
  }

  override settle(pair: Pair, departures: readonly Departure[]): number {
    return super.settle(pair, departures) || leaveDelta(pair.delta, departures);
  }
}

/** A directory of the delta and the one of the codebase that it changes. */
export interface Pair {
  readonly delta: number;
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
  readonly source: Place;
  readonly target: Place;
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
 *   failed    the host said no: disk full, permissions, a file that changed meanwhile; it stays in the delta
 */
export type Outcome = "applied" | "refused" | "failed";

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
