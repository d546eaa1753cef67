import { check, Errno, errnoName, syscalls } from "@agentfense/fuse";
import { compileRules, isSensitive, LEVEL, levelName, type Rule, type Scope } from "@agentfense/permission";
import { closing } from "../filesystem/descriptors.ts";
import { LEVELS_LIMIT, textOf } from "../filesystem/names.ts";
import { namesIn } from "../filesystem/settlement.ts";
import type { DeltaDirectory } from "../filesystem/whiteouts.ts";
import { copyState } from "../filesystem/xattrs.ts";
import { Batch } from "./batch.ts";
import { ChainDirectory, ownRightsOf } from "./chain.ts";
import { type EntryHandle, isBornLater, isUnchanged, MODE_BITS, readTarget, statOf } from "./comparison.ts";
import {
  type ApplyReport,
  type Candidate,
  type ChangeReport,
  CodebaseMover,
  type Departure,
  type Destination,
  isUnfinishedName,
  type Outcome,
  type Pair,
} from "./destination.ts";
import { requireChanges, typeOf } from "./diff.ts";
import { type Layers, LockedCodebase, LockedDelta } from "./places.ts";
import { emptyTree, type RemovalResult, removeTree } from "./removal.ts";
import { Selection } from "./selection.ts";
import { pathText } from "./walk.ts";

const { FileType, Open } = syscalls;

export const HOLDS_PROTECTED = "the directory holds what the rules protect";
const HELD = "held back: the host may run or trust it unasked";

export interface ApplicationOptions {
  readonly destination: Destination;
  /** Those of the sandbox as they are now, whatever they were when the delta was made. */
  readonly rules: readonly Rule[];
  /** Only these, each with all that is below it. One without a change is an error, and nothing is done. */
  readonly paths?: readonly string[] | undefined;
  /** What the host may run or trust without being asked to stays in the delta. */
  readonly holdsSensitive?: boolean | undefined;
  /**
   * What the codebase got after the sandbox made its version stays. For a delta on a snapshot: what was applied cannot leave that, and
   * would undo what came later.
   */
  readonly keepsNewer?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told how many changes were dealt with, after each. */
  readonly onProgress?: ((done: number) => void) | undefined;
}

/** Carries a delta into a codebase, directory by directory, and writes down what became of each entry. */
export class Application {
  /** In the order of the walk, whenever each is known. */
  readonly #reports: ChangeReport[][] = [];
  #dealtWith = 0;
  readonly #destination: Destination;
  readonly #options: ApplicationOptions;
  readonly #batch: Batch;

  constructor(options: ApplicationOptions) {
    this.#destination = options.destination;
    this.#options = options;
    this.#batch = new Batch(options.destination.keep);
  }

  get changes(): readonly ChangeReport[] {
    return this.#reports.flat();
  }

  /** Goes through the layers of a delta and its one codebase. */
  async run(layers: Layers): Promise<void> {
    const selection = Selection.of(this.#options.paths);
    const scope = leavingRules(this.#options.rules);
    await requireChanges(layers, selection);
    // Through the layers' own, for the name may lead elsewhere by now.
    const lower = check(
      "open the codebase",
      syscalls.openat(layers.lowers[0] ?? -1, ".", Open.RDONLY | Open.DIRECTORY),
    );
    using _open = closing(lower);
    using batch = this.#batch;
    using held = new DisposableStack();
    await this.#directory({ deltas: layers.trees, lower, names: [], scope, selection, opaque: undefined }, held);
    batch.flush();
  }

  /** Walks through a directory. What comes `after`, and what it holds until then, waits for the files in it. */
  async #directory(pair: Pair, held: DisposableStack, after = (_slot: ChangeReport[]): void => {}): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#options.signal?.throwIfAborted();
    held.use(ownRightsOf(pair.deltas));
    const departures = await this.#entries(pair).catch((error: unknown) => {
      this.#batch[Symbol.dispose](); // while the directories of its files are open
      throw error;
    });
    const slot = this.#slot();
    const run = (errno: number): void => {
      const settled = departures.length === 0 ? 0 : errno || (this.#destination.settle?.(pair, departures) ?? 0);
      if (settled !== 0) {
        this.#failedDirectory(pair, settled, slot, "its changes are applied but could not leave the delta");
      }
      after(slot);
    };
    this.#batch.end({ directory: pair.lower, held: held.move(), run });
  }

  /** Returns what leaves the delta; some of it joins when the batch does what waits. */
  async #entries(pair: Pair): Promise<readonly Departure[]> {
    const read = ChainDirectory.read(pair.deltas);
    if (typeof read === "number") return this.#unreadable(pair, -read);
    const mark = read.mark && statOf(read.mark);
    const opaque = mark ?? pair.opaque;
    const hidden = opaque !== undefined && pair.lower >= 0 ? namesIn([pair.lower]) : [];
    const deleted = new Set([...read.whiteouts.keys(), ...hidden]);
    const errno = this.#destination.begin?.(pair, read) ?? 0;
    if (errno !== 0) return this.#unreadable(pair, errno);
    this.#reportMeaningless(pair, read);
    const departures: Departure[] = [];
    for (const name of [...new Set([...read.names, ...deleted])].sort()) {
      this.#options.signal?.throwIfAborted();
      if (pair.selection.child(name).standing === "outside") continue;
      await this.#entry({ ...pair, opaque }, read, name, (left) => departures.push(left));
    }
    return departures;
  }

  /** Says how the entry leaves the delta, if it does, as soon as that is certain. */
  async #entry(pair: Pair, read: ChainDirectory, name: string, leave: (left: Departure) => void): Promise<void> {
    const isEntry = read.names.has(name);
    const place = read.placeOf(name);
    const now = isEntry || read.whiteouts.has(name) ? statOf(place) : undefined;
    const candidate: Candidate = {
      names: [...pair.names, name],
      scope: pair.scope.child(textOf(name)),
      selection: pair.selection.child(name),
      source: { directory: place.directory, name },
      target: { directory: pair.lower, name },
      isDeletion: !isEntry,
      now: now ?? pair.opaque ?? new syscalls.Stat(),
      old: statOf({ directory: pair.lower, name }),
    };
    if (isEntry && now === undefined) return; // gone meanwhile
    if (isEntry && candidate.now.type === FileType.DIRECTORY)
      return await this.#subdirectory(candidate, { ...pair, read }, leave);
    if (candidate.selection.standing !== "within") return await this.#partOfRemoval(candidate);
    const applied = (): void => leave({ name, isDirectory: false, entry: isEntry ? now : undefined });
    const isApplied = isEntry ? await this.#replacement(candidate, applied) : await this.#deletion(candidate);
    if (isApplied) applied();
  }

  /** Whether it is applied; what has to wait says that later. */
  async #replacement(candidate: Candidate, applied: () => void): Promise<boolean> {
    const { names, now, old, source, target, scope } = candidate;
    if (old !== undefined && (await isUnchanged(source, target))) return true;
    const state = copyState(source.directory, source.name, names.join("/"), now);
    const isOvertaken = old === undefined || isBornLater(old, now);
    if (this.#options.keepsNewer && old !== undefined && isChangedLater(old, now)) {
      return this.#report(candidate, "refused", "the codebase's content is newer");
    }
    if (state === "untouched" && isOvertaken) return true; // the codebase has changed, the sandbox's copy has not
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", refusal);
    if (now.type !== FileType.REGULAR && now.type !== FileType.SYMLINK) {
      return this.#report(candidate, "refused", "a fifo, socket or device is never carried over");
    }
    if (state === "unwritten" && old !== undefined && isOvertaken) {
      return this.#report(candidate, "refused", "only its mode was changed, and the codebase's content is newer");
    }
    if (this.#isHeld(candidate)) return this.#report(candidate, "held", HELD);
    if (old?.type === FileType.DIRECTORY) {
      // All or nothing: what is protected below keeps the whole directory.
      let removal = await emptyTree(target, scope, candidate.names, () => 0);
      if (removal.gone) removal = await emptyTree(target, scope, candidate.names, this.#remover(candidate));
      if (!removal.gone) return this.#reportRemains(candidate, removal);
    }
    if (now.type === FileType.SYMLINK) return this.#done(candidate, this.#destination.link?.(candidate));
    const file = await this.#destination.file?.(candidate);
    if (typeof file !== "object") return this.#done(candidate, file);
    const slot = this.#slot();
    this.#batch.add(file, (errno) => {
      if (this.#done(candidate, errno, slot)) applied();
    });
    return false;
  }

  async #deletion(candidate: Candidate): Promise<boolean> {
    const { names, old, scope, target } = candidate;
    if (old === undefined) return true; // the codebase lost it too
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", refusal);
    const removal = await removeTree(target, old.type >> 12, scope, names, this.#remover(candidate));
    return removal.gone ? this.#report(candidate, "applied") : this.#reportRemains(candidate, removal);
  }

  /** Entries of a directory that is gone, or is none any more, were named: they go, and the delta goes on hiding the rest. */
  async #partOfRemoval(candidate: Candidate): Promise<void> {
    const { names, scope, selection, source, target, now, old } = candidate;
    if (old?.type !== FileType.DIRECTORY) return;
    const directory = syscalls.openat(target.directory, target.name, Open.RDONLY | Open.DIRECTORY);
    if (directory < 0) {
      this.#report(candidate, "failed", reasonFor(-directory));
      return;
    }
    using _open = closing(directory);
    for (const name of selection.childNames()) {
      const part: Candidate = {
        names: [...names, name],
        scope: scope.child(textOf(name)),
        selection: selection.child(name),
        source,
        target: { directory, name },
        isDeletion: true,
        now,
        old: statOf({ directory, name }),
      };
      if (part.selection.standing === "within") await this.#deletion(part);
      else await this.#partOfRemoval(part);
    }
  }

  #remover(candidate: Candidate): (place: EntryHandle, names: readonly string[], type: number) => number {
    return (place, names, type) => this.#destination.remove?.(place, names, type, candidate) ?? 0;
  }

  async #subdirectory(
    candidate: Candidate,
    { read, ...pair }: Pair & { readonly read: ChainDirectory },
    leave: (left: Departure) => void,
  ): Promise<void> {
    const { names, scope, selection, now, old, source, target } = candidate;
    const merges = old?.type === FileType.DIRECTORY;
    if (names.length > LEVELS_LIMIT) {
      this.#report(candidate, "failed", `more than ${LEVELS_LIMIT} directories deep`);
      return;
    }
    if (!merges && !this.#makeDirectory(candidate)) return;
    const deltas = read.openBelow(source.name);
    const [delta = -1] = deltas;
    const lower = syscalls.openat(target.directory, target.name, Open.RDONLY | Open.DIRECTORY);
    using held = new DisposableStack();
    held.use(closing(...deltas, lower));
    const missing = lower < 0 && (this.#destination.writesCodebase || merges);
    if (delta < 0 || missing) {
      this.#report(candidate, "failed", reasonFor(-Math.min(delta, lower)));
      return;
    }
    await this.#directory({ deltas, lower, names, scope, selection, opaque: pair.opaque }, held, (slot) => {
      if (!merges) this.#destination.finishDirectory?.(candidate);
      const settled = !merges || this.#settleMode(candidate, old, slot);
      if (settled) leave({ name: source.name, isDirectory: true, entry: now });
    });
  }

  #makeDirectory(candidate: Candidate): boolean {
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", `${refusal}; so is all below`);
    if (this.#isHeld(candidate)) return this.#report(candidate, "held", `${HELD}; so is all below`);
    return this.#done(candidate, this.#destination.makeDirectory?.(candidate));
  }

  #settleMode(candidate: Candidate, old: syscalls.Stat, slot: ChangeReport[]): boolean {
    const mode = candidate.now.mode & MODE_BITS;
    if ((old.mode & MODE_BITS) === mode) return true;
    if (candidate.selection.standing !== "within") return false;
    const refusal = this.#refusal(candidate);
    if (refusal !== undefined) return this.#report(candidate, "refused", refusal, slot);
    if (this.#isHeld(candidate)) return this.#report(candidate, "held", HELD, slot);
    return this.#done(candidate, this.#destination.setMode?.(candidate, (old.mode & 0o7000) | mode), slot);
  }

  #refusal({ names, scope, old }: Candidate): string | undefined {
    const { level } = scope;
    if (level < LEVEL.write) return level === LEVEL.none ? "the rules hide this path" : `level ${levelName(level)}`;
    if (isUnfinishedName(names.at(-1)!)) return "the name is kept for files under construction";
    const isDevice = old?.type === FileType.CHARACTER || old?.type === FileType.BLOCK;
    return isDevice ? "a device is there" : undefined;
  }

  #isHeld(candidate: Candidate): boolean {
    return this.#options.holdsSensitive === true && isMarked(candidate);
  }

  /** Reports what came of carrying it out. */
  #done(candidate: Candidate, errno = 0, slot = this.#slot()): boolean {
    if (errno === 0) return this.#report(candidate, "applied", undefined, slot);
    return this.#report(candidate, "failed", reasonFor(errno), slot);
  }

  /** True for an applied change, so that a caller can return what it reports. */
  #report(candidate: Candidate, outcome: Outcome, reason?: string, slot = this.#slot()): boolean {
    const { names, now, old, isDeletion } = candidate;
    const path = pathText(names);
    const report: ChangeReport = {
      outcome,
      kind: isDeletion ? "deleted" : old === undefined ? "added" : "modified",
      path,
      type: typeOf(isDeletion ? (old ?? now) : now),
      ...(reason !== undefined && { reason }),
      sensitive: isMarked(candidate),
      overwroteNewer: outcome === "applied" && isNewer(old, now),
    };
    this.#note(report, slot, candidate);
    return outcome === "applied";
  }

  /** A place for reports among the others. */
  #slot(): ChangeReport[] {
    const slot: ChangeReport[] = [];
    this.#reports.push(slot);
    return slot;
  }

  #note(report: ChangeReport, slot: ChangeReport[], candidate?: Candidate): void {
    slot.push(report);
    this.#dealtWith += 1;
    this.#options.onProgress?.(this.#dealtWith);
    if (report.outcome !== "applied") this.#destination.kept?.(report, candidate);
  }

  #reportRemains(candidate: Candidate, { protectedPath, errno }: RemovalResult): boolean {
    if (protectedPath === undefined) return this.#report(candidate, "failed", reasonFor(errno ?? Errno.ENOTEMPTY));
    return this.#report(candidate, "refused", `${HOLDS_PROTECTED}: ${protectedPath}`);
  }

  #reportMeaningless(pair: Pair, { meaningless }: DeltaDirectory): void {
    if (pair.selection.standing !== "within") return;
    for (const name of meaningless) {
      const report: ChangeReport = {
        outcome: "refused",
        kind: "deleted",
        path: pathText([...pair.names, name]),
        type: "other",
        reason: "a name of the delta's bookkeeping that means nothing",
        sensitive: false,
        overwroteNewer: false,
      };
      this.#note(report, this.#slot());
    }
  }

  #unreadable(pair: Pair, errno: number): readonly Departure[] {
    this.#failedDirectory(pair, errno, this.#slot(), "the directory cannot be read");
    return [];
  }

  #failedDirectory({ names }: Pair, errno: number, slot: ChangeReport[], reason: string): void {
    const report: ChangeReport = {
      outcome: "failed",
      kind: "modified",
      path: pathText(names),
      type: "directory",
      reason: `${reason}: ${reasonFor(errno)}`,
      sensitive: false,
      overwroteNewer: false,
    };
    this.#note(report, slot);
  }
}

/**
 * The codebase's file changed (its ctime) after the inode came to be that holds the sandbox's version (its birth). Neither
 * time can be set by anybody. A sandbox that writes a new file over a copied one hides what happened in between; file
 * systems without birth times tell nothing.
 */
function isNewer(old: syscalls.Stat | undefined, now: syscalls.Stat): boolean {
  if (old === undefined || old.type === FileType.DIRECTORY || now.btime === 0) return false;
  return old.ctime > now.btime || (old.ctime === now.btime && old.ctimeNs > now.btimeNs);
}

/** Of an inode's last change. The sandbox can make its own later, but by that it has changed the file. */
function isChangedLater(old: syscalls.Stat, now: syscalls.Stat): boolean {
  return old.ctime > now.ctime || (old.ctime === now.ctime && old.ctimeNs > now.ctimeNs);
}

function isMarked({ names, now, source, isDeletion }: Candidate): boolean {
  const target = now.type === FileType.SYMLINK ? readTarget(source) : undefined;
  return !isDeletion && isSensitive(pathText(names), target);
}

export function reasonFor(errno: number): string {
  if (errno === Errno.EBUSY) return "busy: it kept changing while it was being copied";
  if (errno === Errno.EFBIG) return "it is too large";
  if (errno === Errno.EILSEQ) return "a name or a link that is not UTF-8";
  if (errno === Errno.ESTALE) return "it changed while it was being copied";
  if (errno === Errno.ENOSPC || errno === Errno.EDQUOT) return "the disk is full";
  if (errno === Errno.EROFS) return "its file system is read-only";
  if (errno === Errno.ENOTEMPTY) return "the directory is not empty";
  return errnoName(errno);
}

/** What a project's policy is called. The next run in its directory, wherever that is in this codebase, goes by it. */
const POLICY_FILE = ".agentfense.yaml";

/**
 * The rules by which changes leave a delta: those of the sandbox, but no policy is ever written, replaced or removed, at any
 * depth. What the rules hide stays hidden. Inside, an agent may do with its own copy what its rules let it.
 */
export function leavingRules(rules: readonly Rule[]): Scope {
  return withoutPolicies(compileRules(rules).root);
}

function withoutPolicies(scope: Scope, isPolicy = false): Scope {
  return {
    level: isPolicy && scope.level > LEVEL.read ? LEVEL.read : scope.level,
    rule: scope.rule,
    mayShowBelow: scope.mayShowBelow,
    mayHideBelow: scope.mayHideBelow,
    uniform: scope.uniform && scope.level <= LEVEL.read,
    child: (name) => withoutPolicies(scope.child(name), name === POLICY_FILE),
  };
}

/** Only what the rules give level `write` is changed. */
export interface ApplySpec extends Omit<ApplicationOptions, "destination"> {
  readonly delta: string;
  /** The codebase directory itself, not a symlink to it. */
  readonly lower: string;
  /** Report what would happen and touch nothing. */
  readonly dryRun?: boolean;
}

/**
 * Writes a delta's changes into the codebase. Each entry is decided on its own: one that is refused or fails does not stop
 * the rest. What was applied leaves the delta, so that an old delta never overwrites newer work; the rest stays. When it is
 * interrupted, every file is the old or the new one, and applying again does what is left.
 */
export async function applyChanges(spec: ApplySpec): Promise<ApplyReport> {
  const { signal, dryRun = false } = spec;
  using locked = new LockedDelta(spec.delta);
  using codebase = new LockedCodebase(spec.lower);
  const destination = dryRun ? {} : new CodebaseMover({ delta: locked.delta, signal });
  const application = new Application({ ...spec, destination });
  await application.run({ trees: [locked.delta.tree], lowers: [codebase.root] });
  return { dryRun, changes: application.changes };
}
