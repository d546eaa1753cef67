import { syscalls } from "@agentfense/fuse";
import type { Delta } from "../filesystem/delta.ts";
import type { DeltaDirectory } from "../filesystem/delta-directory.ts";
import { dissolveOpaque } from "../filesystem/opaque.ts";
import { atOnce } from "../filesystem/walks.ts";
import type { Candidate, Pair } from "./candidate.ts";
import { MODE_BITS, type Place } from "./comparison.ts";
import { type Departure, leaveDelta } from "./departure.ts";
import { installDirectory, installFile, installLink, removeUnfinished } from "./installation.ts";
import type { ChangeReport } from "./report.ts";

/** Where the changes of a delta go. Application decides about each, this carries it out; results are errnos, 0 for success. */
export interface Destination {
  /** The codebase's directories are made as the walk goes down; otherwise those that it lacks are missing. */
  readonly writesCodebase: boolean;
  begin(pair: Pair, read: DeltaDirectory): number;
  file(candidate: Candidate): Promise<number>;
  link(candidate: Candidate): number;
  makeDirectory(candidate: Candidate): number;
  /** All that is in a new directory is in place. */
  finishDirectory(candidate: Candidate): void;
  setMode(candidate: Candidate, mode: number): number;
  /** An entry of the codebase, which the candidate deletes or replaces; a directory when nothing is left in it. */
  remove(place: Place, names: readonly string[], type: number, candidate: Candidate): number;
  /** These need not be in the delta any longer. */
  settle(pair: Pair, departures: readonly Departure[]): number;
  /** Not carried out, and why. */
  kept?(report: ChangeReport, candidate: Candidate | undefined): void;
}

const DIRECTORY = syscalls.FileType.DIRECTORY >> 12;

/** Touches nothing. */
export class Rehearsal implements Destination {
  readonly writesCodebase: boolean = false;
  begin(_pair: Pair, _read: DeltaDirectory): number {
    return 0;
  }
  async file(_candidate: Candidate): Promise<number> {
    return 0;
  }
  link(_candidate: Candidate): number {
    return 0;
  }
  makeDirectory(_candidate: Candidate): number {
    return 0;
  }
  finishDirectory(_candidate: Candidate): void {}
  setMode(_candidate: Candidate, _mode: number): number {
    return 0;
  }
  remove(_place: Place, _names: readonly string[], _type: number, _candidate: Candidate): number {
    return 0;
  }
  settle(_pair: Pair, _departures: readonly Departure[]): number {
    return 0;
  }
}

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
