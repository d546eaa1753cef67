import { Errno, syscalls } from "@agentfense/fuse";
import { isSensitive, LEVEL, levelName, type Rule, type Scope } from "@agentfense/permission";
import { leavingRules, reasonFor } from "../changes/application.ts";
import { ChangesError } from "../changes/changes-error.ts";
import { isUnfinishedName } from "../changes/destination.ts";
import { type EntryType, typeOf } from "../changes/diff.ts";
import { discardFrom } from "../changes/discard.ts";
import { LockedCodebase, LockedDelta } from "../changes/places.ts";
import { Selection } from "../changes/selection.ts";
import { type ChangeKind, type FoundChange, pathText, walkChanges } from "../changes/walk.ts";
import { closing } from "../filesystem/descriptors.ts";
import { bytesOf, textOf } from "../filesystem/names.ts";
import { atOnce } from "../filesystem/walks.ts";
import { wasCopied } from "../filesystem/xattrs.ts";
import { carryOut } from "./carrying.ts";
import { type DriverRule, driversFor } from "./drivers.ts";
import { DirectoryTarget, entryAt, type FileOnDisk, ON_DISK } from "./files.ts";
import {
  type Conflict,
  directoriesAbove,
  type MergedEntry,
  type MergePlan,
  planMerge,
  type SideChange,
  type Step,
} from "./plan.ts";
import type { Favour, Hunk } from "./text.ts";

const { FileType, Open } = syscalls;

export interface MergeDelta {
  /** What reports and markers call it. */
  readonly name: string;
  readonly delta: string;
  /** The codebase that it was made over, itself and not a symlink to it: what is there is what the delta started from. */
  readonly lower: string;
  /** Only what these give level `write` is taken from it. */
  readonly rules: readonly Rule[];
}

export interface MergeSpec {
  /** One or more; each is merged into what came of those before. */
  readonly deltas: readonly MergeDelta[];
  /** The directory itself, not a symlink to it; it may be the one that the deltas were made over. */
  readonly into: string;
  readonly intoName: string;
  /** How conflicts are settled where that can be done so. */
  readonly favour?: Favour | undefined;
  /** Lay conflicts of text out with markers. */
  readonly markers?: boolean;
  /** Besides the usual ones. */
  readonly drivers?: readonly DriverRule[];
  /** Say what would happen and touch nothing. */
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What became of a path.
 *
 *   merged   the directory has it (in a dry run, or with conflicts left: would have it)
 *   refused  the rules of the delta forbid it, or it is nothing that is ever carried over; it stays in the delta
 *   failed   the host said no, or somebody changed the path meanwhile; it stays in the deltas
 */
export interface MergedChange {
  readonly outcome: "merged" | "refused" | "failed";
  readonly kind: ChangeKind;
  /** "/src/a.ts"; bytes that are not UTF-8 are lone surrogates U+DC80 to U+DCFF. */
  readonly path: string;
  readonly type: EntryType;
  /** The deltas that it comes from, by their names. */
  readonly from: readonly string[];
  readonly reason?: string;
  /** The host may run or trust it without being asked to. */
  readonly sensitive: boolean;
}

export interface ConflictSide {
  readonly type: EntryType;
  readonly size: number;
  /** Permission bits; links have none. */
  readonly mode?: number;
}

export interface MergeConflict extends Pick<Conflict<unknown>, "kind" | "sides" | "settled"> {
  readonly path: string;
  /** Null where there was nothing, and where it is not kept (of the kind `outdated`). */
  readonly base: ConflictSide | null;
  readonly ours: ConflictSide | null;
  readonly theirs: ConflictSide | null;
  /** The first thousand. */
  readonly hunks: readonly Hunk[];
}

/** A text can be made to have a million, which nobody reads. */
const MOST_HUNKS = 1000;

export interface MergeReport {
  readonly dryRun: boolean;
  /** False where a conflict was left: then nothing at all was written. */
  readonly written: boolean;
  readonly changes: readonly MergedChange[];
  readonly conflicts: readonly MergeConflict[];
}

/**
 * Merges deltas, three-way and path by path, into a directory. Nothing is written while a conflict is left. What the directory has
 * then leaves the deltas; the rest stays. When it is interrupted every file is the old or the new one, and merging again does
 * what is left.
 */
export async function mergeDeltas(spec: MergeSpec): Promise<MergeReport> {
  const { dryRun = false, signal } = spec;
  using stack = new DisposableStack();
  const target = new DirectoryTarget(spec.intoName, stack.use(new LockedCodebase(spec.into)).root);
  const sides: DeltaSide[] = [];
  for (const delta of spec.deltas) {
    const { delta: locked } = stack.use(new LockedDelta(delta.delta));
    const lower = delta.lower === spec.into ? target.root : openLower(delta.lower);
    if (lower !== target.root) stack.use(closing(lower));
    const side = new DeltaSide(delta.name, locked, lower);
    await side.read(delta.rules, signal);
    sides.push(side);
  }
  const { favour, markers, drivers = [] } = spec;
  const options = { favour, markers, driverFor: driversFor(drivers) };
  const plan = await planMerge({ target, sides, contents: ON_DISK, options, signal });
  const report = new Reporting(spec, sides, plan);
  if (dryRun || !report.isSettled) return report.asPlanned(dryRun);
  const failures = await carryOut(plan.steps, { root: target.root, staging: sides[0]!.delta, signal });
  for (const side of sides) side.leave(failures);
  return report.asCarriedOut(failures);
}

function openLower(path: string): number {
  const fd = syscalls.open(bytesOf(path), Open.RDONLY | Open.DIRECTORY | Open.NOFOLLOW);
  if (fd < 0) throw new ChangesError("CODEBASE_UNUSABLE", `${path} cannot be used: ${reasonFor(-fd)}`);
  return fd;
}

/** What one delta brings. */
class DeltaSide {
  readonly name: string;
  readonly delta: LockedDelta["delta"];
  readonly changes: SideChange<FileOnDisk>[] = [];
  readonly refused: MergedChange[] = [];
  readonly #kept: string[] = [];
  readonly #lower: number;

  constructor(name: string, delta: LockedDelta["delta"], lower: number) {
    this.name = name;
    this.delta = delta;
    this.#lower = lower;
  }

  async read(rules: readonly Rule[], signal: AbortSignal | undefined): Promise<void> {
    const root = leavingRules(rules);
    let refusedAbove: string | undefined;
    const layers = { trees: [this.delta.tree], lowers: [this.#lower] };
    for await (const change of walkChanges(layers, Selection.of(undefined))) {
      signal?.throwIfAborted();
      const path = change.names.join("/");
      if (refusedAbove !== undefined && path.startsWith(refusedAbove)) continue;
      const reason = refusal(
        change,
        change.names.reduce((scope: Scope, name) => scope.child(textOf(name)), root),
      );
      if (reason === undefined) this.changes.push(this.#changeAt(path, change));
      else {
        const isMaking = change.now?.stat.type === FileType.DIRECTORY && change.old?.stat.type !== FileType.DIRECTORY;
        if (isMaking) refusedAbove = `${path}/`;
        this.#kept.push(path);
        this.refused.push({
          outcome: change.unread ? "failed" : "refused",
          kind: change.kind,
          path: pathText(change.names),
          type: typeOf((change.now ?? change.old!).stat),
          from: [this.name],
          reason: isMaking ? `${reason}; so is all below` : reason,
          sensitive: false,
        });
      }
    }
  }

  #changeAt(path: string, { names, old, now, mark }: FoundChange): SideChange<FileOnDisk> {
    const made = now?.stat ?? mark;
    const isOutdated =
      old === undefined
        ? now !== undefined && wasCopied(now.place.directory, now.place.name, path)
        : made !== undefined && !isOlder(old.stat, made);
    return {
      path,
      base: isOutdated ? "unknown" : old && entryAt(old.place, old.stat, { root: this.#lower, isDelta: false, names }),
      now: now && entryAt(now.place, now.stat, { root: this.delta.tree, isDelta: true, names }),
    };
  }

  /** What the directory has now leaves the delta: the codebase shows there again. */
  leave(failures: ReadonlyMap<string, string>): void {
    const stays = new Set([...failures.keys(), ...this.#kept].flatMap((path) => [path, ...directoriesAbove(path)]));
    if (stays.size === 0) {
      atOnce(discardFrom(this.delta, undefined));
      return;
    }
    let gone: string | undefined;
    for (const { path } of this.changes) {
      if (gone !== undefined && path.startsWith(gone)) continue;
      if (stays.has(path)) continue;
      try {
        atOnce(discardFrom(this.delta, [pathText(path.split("/"))]));
        gone = `${path}/`;
      } catch (error) {
        // Part of a directory that is gone or was replaced as a whole: it leaves with that.
        if (!(error instanceof ChangesError)) throw error;
      }
    }
  }
}

/**
 * The file is as it was when the delta made its own version: its ctime is before the birth of that. Nobody can set either. What
 * happened within one tick of the clock counts as later; file systems without birth times tell nothing.
 */
function isOlder(old: syscalls.Stat, made: syscalls.Stat): boolean {
  if (old.type === FileType.DIRECTORY || made.btime === 0) return true;
  return old.ctime < made.btime || (old.ctime === made.btime && old.ctimeNs < made.btimeNs);
}

function refusal({ names, now, old, unread }: FoundChange, { level }: Scope): string | undefined {
  if (unread) return reasonFor(Errno.EACCES);
  if (level < LEVEL.write) return level === LEVEL.none ? "the rules hide this path" : `level ${levelName(level)}`;
  if (isUnfinishedName(names.at(-1)!)) return "the name is kept for files under construction";
  if (old?.stat.type === FileType.CHARACTER || old?.stat.type === FileType.BLOCK) return "a device is there";
  return now !== undefined && typeOf(now.stat) === "other"
    ? "a fifo, socket or device is never carried over"
    : undefined;
}

class Reporting {
  readonly #spec: MergeSpec;
  readonly #sides: readonly DeltaSide[];
  readonly #plan: MergePlan<FileOnDisk>;

  constructor(spec: MergeSpec, sides: readonly DeltaSide[], plan: MergePlan<FileOnDisk>) {
    this.#spec = spec;
    this.#sides = sides;
    this.#plan = plan;
  }

  /** No conflict is left. */
  get isSettled(): boolean {
    return this.#plan.conflicts.every(({ settled }) => settled !== undefined);
  }

  asPlanned(dryRun: boolean): MergeReport {
    return { ...this.#report(new Map()), dryRun, written: false };
  }

  asCarriedOut(failures: ReadonlyMap<string, string>): MergeReport {
    return { ...this.#report(failures), dryRun: false, written: true };
  }

  #report(failures: ReadonlyMap<string, string>): Pick<MergeReport, "changes" | "conflicts"> {
    const { steps, conflicts } = this.#plan;
    const made = new Set(steps.filter(({ kind }) => kind !== "remove").map(({ path }) => path));
    const changes = steps
      .filter(({ kind, path }) => kind !== "remove" || !made.has(path))
      .map((step) => this.#change(step, failures.get(step.path)));
    const refused = this.#sides.flatMap((side) => side.refused);
    return {
      changes: [...changes, ...refused].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)),
      conflicts: conflicts.map(conflictOf),
    };
  }

  #change(step: Step<FileOnDisk>, reason: string | undefined): MergedChange {
    const path = `/${textOf(step.path)}`;
    const type = step.kind === "remove" ? typeOfEntry(step.old!) : step.kind === "link" ? "symlink" : step.kind;
    return {
      outcome: reason === undefined ? "merged" : "failed",
      kind: step.kind === "remove" ? "deleted" : step.old === undefined ? "added" : "modified",
      path,
      type,
      from: step.sides.map((side) => this.#spec.deltas[side]!.name),
      ...(reason !== undefined && { reason }),
      sensitive: step.kind !== "remove" && isSensitive(path, step.kind === "link" ? step.target : undefined),
    };
  }
}

function conflictOf(conflict: Conflict<FileOnDisk>): MergeConflict {
  const { kind, sides, settled, path, base, ours, theirs, hunks } = conflict;
  return {
    path: `/${textOf(path)}`,
    kind,
    sides: [sides[0], sides[1]],
    settled,
    base: base === "unknown" ? null : sideOf(base),
    ours: sideOf(ours),
    theirs: sideOf(theirs),
    hunks: hunks.slice(0, MOST_HUNKS),
  };
}

function sideOf(entry: MergedEntry<FileOnDisk> | undefined): ConflictSide | null {
  if (entry === undefined) return null;
  const type = typeOfEntry(entry);
  if (entry.kind === "directory") return { type, size: 0, mode: entry.mode };
  if (entry.kind !== "file") return { type, size: entry.kind === "symlink" ? entry.target.length : 0 };
  const size = typeof entry.content === "string" ? entry.content.length : entry.content.stat.size;
  return { type, size, mode: entry.mode };
}

function typeOfEntry({ kind }: MergedEntry<FileOnDisk>): EntryType {
  return kind;
}
