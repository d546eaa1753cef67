import { Errno, syscalls } from "@agentfense/fuse";
import { isSensitive, LEVEL } from "@agentfense/permission";
import type { DeltaStamp, SettledEntry } from "../filesystem/settlement.ts";
import { stampOf } from "../filesystem/settlement.ts";
import type { DeltaDirectory } from "../filesystem/whiteouts.ts";
import { Application, type ApplicationOptions, HOLDS_PROTECTED } from "./application.ts";
import type { Keep, NamelessFile } from "./batch.ts";
import { type EntryHandle, MODE_BITS, readTarget, statOf } from "./comparison.ts";
import type { Candidate, ChangeReport, Departure, Pair } from "./destination.ts";
import { CodebaseWriter, type Destination } from "./destination.ts";
import { typeOf } from "./diff.ts";
import type { Change } from "./list.ts";
import { LockedCodebase, OpenLayers } from "./places.ts";
import { StagingArea } from "./staging.ts";
import { pathText } from "./walk.ts";

const { FileType } = syscalls;

export interface CollectSpec extends Omit<ApplicationOptions, "destination" | "onProgress"> {
  readonly delta: string;
  /** What it lies on: deltas that snapshots froze, top first. */
  readonly beneath?: readonly string[] | undefined;
  readonly lower: string;
  /** Where the content goes; absent: only told what would be collected, without size limits. */
  readonly staging?: string | undefined;
  /** Of all files together; what does not fit is not ready. Default 16 GiB. */
  readonly maxBytes?: number | undefined;
}

/** What stands at a path in the sandbox's version. */
export interface CollectedEntry {
  readonly kind: "file" | "directory" | "symlink" | "absent";
  readonly mode: number;
  /** Of a symlink, else "". */
  readonly target: string;
  readonly size: number;
  /** Of a file, in hexadecimal; "" when nothing was staged. */
  readonly sha256: string;
  /** The name of a file's content in the staging directory, else "". */
  readonly staged: string;
  /** When the sandbox made this version, by the clock of the host; nothing in the sandbox can set it. */
  readonly madeAtMs: number;
}

export interface CollectedChange {
  readonly change: Change;
  /** The codebase may have it: `entry` says what. Otherwise `reason` says why not. */
  readonly ready: boolean;
  readonly reason: string;
  readonly entry?: CollectedEntry;
  /** To settle it by; absent for deletions. */
  readonly stamp?: DeltaStamp;
  /** The rules hide the path: it is not for the eyes of whoever acts for the sandbox. */
  readonly hidden?: true;
}

export interface Collection {
  /** In an order in which they can be carried out one by one: what is in a directory goes before it, and comes after it. */
  readonly changes: readonly CollectedChange[];
  /** What may leave the delta once the codebase has the ready ones; entries that change nothing are among them. */
  readonly settled: readonly SettledEntry[];
}

const DEFAULT_MAX_BYTES = 16 * 1024 ** 3;

/**
 * Gets the changes of a delta ready for a codebase that others may be writing to: decides about each as applyChanges does,
 * and copies what may go. The delta may be in use; what changes under the copy is not ready.
 */
export async function collectChanges(spec: CollectSpec): Promise<Collection> {
  const { staging, maxBytes = DEFAULT_MAX_BYTES, signal } = spec;
  using layers = new OpenLayers(spec.delta, [spec.lower], spec.beneath);
  using area = staging === undefined ? undefined : new StagingArea(staging, { maxBytes, signal });
  const collecting = new Collecting({ area });
  await new Application({ ...spec, keepsNewer: isOnSnapshot(spec), destination: collecting }).run(layers);
  area?.settle();
  return { changes: collecting.changes, settled: collecting.settled };
}

export interface WriteSpec extends Omit<CollectSpec, "staging" | "maxBytes"> {
  /** Tell what would happen and touch nothing. */
  readonly dryRun?: boolean | undefined;
}

export interface WrittenChanges extends Collection {
  /** Where the codebase's file had changed after the sandbox made its own version of it. */
  readonly overwritten: readonly string[];
}

/**
 * Writes the changes of a delta that may be in use into its codebase, deciding about each as applyChanges does. The delta
 * keeps them: what may leave it is told, each with the stamp of what was written, and leaves when it is settled, unless it
 * changed again meanwhile. When it is interrupted, every file is the old or the new one, and writing again does the rest.
 */
export async function writeChanges(spec: WriteSpec): Promise<WrittenChanges> {
  using layers = new OpenLayers(spec.delta, [spec.lower], spec.beneath);
  using codebase = spec.dryRun ? undefined : new LockedCodebase(spec.lower);
  const collecting = new Collecting({ codebase: codebase && new CodebaseWriter(spec.signal) });
  const application = new Application({ ...spec, keepsNewer: isOnSnapshot(spec), destination: collecting });
  await application.run(layers);
  const overwritten = application.changes.filter(({ overwroteNewer }) => overwroteNewer).map(({ path }) => path);
  return { changes: collecting.changes, settled: collecting.settled, overwritten };
}

function isOnSnapshot({ beneath = [] }: Pick<CollectSpec, "beneath">): boolean {
  return beneath.length > 0;
}

/** Writes down what is done to the codebase: nothing yet when the content is staged, or not wanted at all. */
class Collecting implements Destination {
  /** In the order of the walk, whenever each is known. */
  readonly #changes: CollectedChange[][] = [];
  readonly #slots = new Map<Candidate, CollectedChange[]>();
  readonly settled: SettledEntry[] = [];
  readonly writesCodebase: boolean;
  readonly keep: Keep | undefined;
  readonly #area: StagingArea | undefined;
  readonly #codebase: CodebaseWriter | undefined;
  /** Of the files that were staged: what they were at that moment. */
  readonly #stamps = new Map<string, DeltaStamp>();
  /** Directories with a change of their own, or with nothing in them; others leave by themselves when they are empty. */
  readonly #directories = new Set<string>();

  /** `area`: where the content waits. `codebase`: carries everything out at once. */
  constructor({ area, codebase }: { area?: StagingArea | undefined; codebase?: CodebaseWriter | undefined }) {
    this.#area = area;
    this.#codebase = codebase;
    this.writesCodebase = codebase !== undefined;
    this.keep = codebase?.keep;
  }

  get changes(): readonly CollectedChange[] {
    return this.#changes.flat();
  }

  begin(pair: Pair, read: DeltaDirectory): number {
    if (read.names.size === 0 && read.whiteouts.size === 0) this.#directories.add(pathText(pair.names));
    return this.#codebase?.begin(pair, read) ?? 0;
  }

  async file(candidate: Candidate): Promise<number | NamelessFile> {
    const path = pathText(candidate.names);
    if (!isText(path)) return Errno.EILSEQ;
    if (this.#area === undefined) return await this.#fileAtOnce(candidate);
    const copy = await this.#area.copy(candidate.source);
    if (typeof copy === "number") return copy;
    const { mode, size, sha256, name: staged, stamp } = copy;
    this.#stamps.set(path, stamp);
    this.#add(candidate, { kind: "file", mode: mode & MODE_BITS, size, sha256, staged }, stamp);
    return 0;
  }

  async #fileAtOnce(candidate: Candidate): Promise<number | NamelessFile> {
    const { now } = candidate;
    const add = (): void =>
      this.#add(candidate, { kind: "file", mode: now.mode & MODE_BITS, size: now.size }, stampOf(now));
    const file = (await this.#codebase?.file(candidate)) ?? 0;
    if (file === 0) add();
    if (typeof file === "number") return file;
    this.#slots.set(candidate, this.#slot());
    return {
      fd: file.fd,
      size: file.size,
      place: () => {
        const errno = file.place();
        if (errno === 0) add();
        return errno;
      },
      [Symbol.dispose]: () => file[Symbol.dispose](),
    };
  }

  link(candidate: Candidate): number {
    const target = readTarget(candidate.source);
    if (target === undefined) return Errno.ESTALE;
    const text = Buffer.from(target, "latin1").toString("utf8");
    const isUtf8 = Buffer.from(text, "utf8").toString("latin1") === target;
    if (!isUtf8 || !isText(pathText(candidate.names))) return Errno.EILSEQ;
    const errno = this.#codebase?.link(candidate) ?? 0;
    if (errno !== 0) return errno;
    this.#add(candidate, { kind: "symlink", mode: 0o777, target: text }, stampOf(candidate.now));
    return 0;
  }

  makeDirectory(candidate: Candidate): number {
    return this.#directory(candidate, () => this.#codebase?.makeDirectory(candidate));
  }

  finishDirectory(candidate: Candidate): void {
    this.#codebase?.finishDirectory(candidate);
  }

  setMode(candidate: Candidate, mode: number): number {
    return this.#directory(candidate, () => this.#codebase?.setMode(candidate, mode));
  }

  remove(place: EntryHandle, names: readonly string[], type: number, candidate: Candidate): number {
    const path = pathText(names);
    if (!isText(path)) return Errno.EILSEQ;
    const old = statOf(place);
    const errno = this.#codebase?.remove(place, names, type) ?? 0;
    if (errno !== 0) return errno;
    this.#slot().push({
      change: {
        kind: "deleted",
        path,
        type: old === undefined ? "other" : typeOf(old),
        size: type === DIRECTORY ? 0 : (old?.size ?? 0),
        sensitive: false,
      },
      ready: true,
      reason: "",
      entry: { ...NOTHING, kind: "absent", madeAtMs: madeAtMs(candidate.now) },
    });
    return 0;
  }

  settle(pair: Pair, departures: readonly Departure[]): number {
    for (const { name, isDirectory, entry } of departures) {
      const path = pathText([...pair.names, name]);
      if (!isText(path) || (isDirectory && !this.#directories.has(path))) continue;
      const stamp = this.#stamps.get(path) ?? (entry && stampOf(entry));
      this.settled.push({ path, stamp });
    }
    return 0;
  }

  kept(report: ChangeReport, candidate: Candidate | undefined): void {
    const { kind, path, type, sensitive, reason = report.outcome } = report;
    const size = candidate === undefined ? 0 : sizeOf(candidate);
    const hidden = candidate?.scope.level === LEVEL.none && { hidden: true as const };
    // What is protected below may be hidden.
    const told = reason.startsWith(HOLDS_PROTECTED) ? HOLDS_PROTECTED : reason;
    this.#slot(candidate).push({
      change: { kind, path, type, size, sensitive },
      ready: false,
      reason: told,
      ...hidden,
    });
  }

  /** A place for changes among the others: that of a file that waited, else the next one. */
  #slot(candidate?: Candidate): CollectedChange[] {
    const kept = candidate && this.#slots.get(candidate);
    if (kept !== undefined) return kept;
    const slot: CollectedChange[] = [];
    this.#changes.push(slot);
    return slot;
  }

  #directory(candidate: Candidate, carryOut: () => number | undefined): number {
    const path = pathText(candidate.names);
    if (!isText(path)) return Errno.EILSEQ;
    const errno = carryOut() ?? 0;
    if (errno !== 0) return errno;
    this.#directories.add(path);
    this.#add(candidate, { kind: "directory", mode: candidate.now.mode & MODE_BITS }, stampOf(candidate.now));
    return 0;
  }

  #add(candidate: Candidate, entry: Partial<CollectedEntry> & Pick<CollectedEntry, "kind">, stamp: DeltaStamp): void {
    const path = pathText(candidate.names);
    const { now, old } = candidate;
    const target = entry.kind === "symlink" ? entry.target : undefined;
    this.#slot(candidate).push({
      change: {
        kind: old === undefined ? "added" : "modified",
        path,
        type: typeOf(now),
        size: entry.size ?? 0,
        sensitive: isSensitive(path, target),
      },
      ready: true,
      reason: "",
      entry: { ...NOTHING, ...entry, madeAtMs: madeAtMs(now) },
      stamp,
    });
  }
}

const DIRECTORY = FileType.DIRECTORY >> 12;
const NOTHING = { mode: 0, target: "", size: 0, sha256: "", staged: "" } as const;

function sizeOf({ now, old, isDeletion }: Candidate): number {
  const stat = isDeletion ? old : now;
  return stat?.type === FileType.REGULAR ? stat.size : 0;
}

/** The birth of the delta's inode, which nobody can set; its last change where file systems know no births. */
function madeAtMs(stat: syscalls.Stat): number {
  const [seconds, nanoseconds] = stat.btime === 0 ? [stat.ctime, stat.ctimeNs] : [stat.btime, stat.btimeNs];
  return seconds * 1000 + Math.floor(nanoseconds / 1_000_000);
}

/** The codebase's paths are text; bytes that are none appear as lone surrogates. */
function isText(path: string): boolean {
  return path.isWellFormed();
}
