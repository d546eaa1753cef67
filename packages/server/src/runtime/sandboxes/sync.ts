import { LEVEL } from "@agentfense/permission";
import { HOLDS_PROTECTED } from "../../isolation/changes/application.ts";
import type { SettledEntry } from "../../isolation/filesystem/settlement.ts";
import { type Caller, SERVER } from "../caller.ts";
import type { DirectCodebase, SyncResult } from "../codebases/api.ts";
import { RuntimeError } from "../errors.ts";
import type { ConflictRecord } from "../store/store.ts";
import type { CollectedChange, Collection, DeltaPlace, DirectCollection } from "./delta-work.ts";
import { toRuntimeError } from "./errors.ts";
import type { Parts, Unsettled } from "./parts.ts";
import type { Resident } from "./resident.ts";
import { inside } from "./witness.ts";

interface SyncParts extends Pick<Parts, "codebases" | "deltas" | "observe" | "witness" | "log" | "deltaOf"> {
  readonly unsettled: Unsettled;
}

/** What a sync after a command has to say. */
export interface SyncReport {
  /** 0: nothing was written. */
  readonly version: number;
  readonly problems: readonly string[];
}

/** What became of a delta's changes. */
export interface Written {
  readonly version: number;
  readonly collection: Collection;
  readonly conflicts: readonly ConflictRecord[];
  /** The codebase has something new; one that is a directory of the host has no version to tell it by. */
  readonly wrote: boolean;
}

const NOTHING_SYNCED: SyncReport = { version: 0, problems: [] };
const NOTHING_WRITTEN: Written = {
  version: 0,
  collection: { changes: [], settled: [] },
  conflicts: [],
  wrote: false,
};

/** A report is read by people and travels with every answer. */
const MOST_PROBLEMS = 100;
const MOST_EVENTS = 100;
const KEPT = "the codebase keeps what is there";
const UNSTORABLE = "the codebase cannot take it: its name, or what is at or below it there";
const SUPERSEDED = "the sandbox changed nothing there, and somebody else did";

/**
 * Carries what sandboxes changed into their codebases. The codebase's lock is held from the look at the delta until the new
 * version is there, so that the last one to write wins as a whole; then the delta lets go of what it wrote, unless that
 * changed again meanwhile, so that an old delta never overwrites newer work.
 */
export class Sync {
  readonly #parts: SyncParts;
  /** Syncs that wait for their turn: whoever comes meanwhile is served by the same one. */
  readonly #waiting = new Map<Resident, Promise<SyncReport>>();

  constructor(parts: SyncParts) {
    this.#parts = parts;
  }

  /** After each command of a sandbox that syncs by itself. Never fails: what went wrong is in the report. */
  afterCommand(resident: Resident, caller: Caller): Promise<SyncReport> {
    if (resident.record.sync !== "on-exec" || !resident.mayWriteCodebase) return Promise.resolve(NOTHING_SYNCED);
    const waiting = this.#waiting.get(resident);
    if (waiting !== undefined) return waiting;
    const sync = resident.syncs.run(() => {
      this.#waiting.delete(resident);
      return this.#afterCommand(resident, caller);
    });
    this.#waiting.set(resident, sync);
    return sync;
  }

  /** Writes what was asked for, on demand. The caller holds the sandbox's turn. */
  apply(
    resident: Resident,
    caller: Caller,
    place: Pick<DeltaPlace, "lower" | "paths" | "holdsSensitive">,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    return resident.syncs.run(async () => {
      const written = await this.#write(resident, place, signal);
      this.#tell(resident, caller, "changes_applied", written);
      return written;
    });
  }

  /** What `apply` would do. */
  async rehearse(resident: Resident, place: DeltaPlace, signal: AbortSignal | undefined): Promise<Written> {
    const { codebases, deltas } = this.#parts;
    if (codebases.direct(resident.record.codebaseId) === undefined) {
      return { ...NOTHING_WRITTEN, collection: await deltas.collect(place, signal) };
    }
    const collection = await deltas.write({ ...place, dryRun: true });
    return { ...NOTHING_WRITTEN, collection, conflicts: overwrittenIn(collection) };
  }

  /** After a crash: what the codebase has already leaves the delta, before anybody can write something newer there. */
  async recover(resident: Resident): Promise<void> {
    const { codebases, deltas, unsettled } = this.#parts;
    const delta = this.#parts.deltaOf(resident);
    const { codebaseId, id, rules } = resident.record;
    if (!(await deltas.isEmpty(delta))) {
      const layer = await codebases.open(codebaseId, 0);
      try {
        const { settled } = await deltas.collect({ delta, lower: layer.directory, rules });
        await this.#settle(resident, delta, layer.directory, settled);
      } finally {
        await layer.release();
      }
    }
    await unsettled.clear(id);
  }

  async #afterCommand(resident: Resident, caller: Caller): Promise<SyncReport> {
    const { running, departure } = resident;
    // What is destroyed takes what it did not sync along.
    if (running === undefined || departure !== undefined) return NOTHING_SYNCED;
    try {
      const written = await this.#write(resident, { lower: running.lower }, undefined);
      this.#tell(resident, caller, "sync_completed", written);
      return { version: written.version, problems: problemsOf(resident, written.collection) };
    } catch (error) {
      return this.#failed(resident, caller, error);
    }
  }

  async #write(
    resident: Resident,
    place: Pick<DeltaPlace, "lower" | "paths" | "holdsSensitive">,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    const { codebases, deltas, unsettled } = this.#parts;
    const delta = this.#parts.deltaOf(resident);
    if (place.paths === undefined && (await deltas.isEmpty(delta))) return NOTHING_WRITTEN;
    const { codebaseId, id } = resident.record;
    const direct = codebases.direct(codebaseId);
    if (direct !== undefined) {
      signal?.throwIfAborted();
      return await this.#writeDirectly(resident, direct, { ...place, delta, rules: resident.record.rules });
    }
    let { collection } = NOTHING_WRITTEN;
    const synced = await codebases.sync(codebaseId, id, async (staging) => {
      collection = await deltas.collect({ ...place, delta, rules: resident.record.rules, staging }, signal);
      const entries = collection.changes.flatMap(({ staged, change }) =>
        staged === undefined ? [] : [{ ...staged, madeAtMs: resident.ownSinceMs(change.path, staged.madeAtMs) }],
      );
      if (entries.length > 0) await unsettled.mark(id);
      return entries;
    });
    if (synced !== undefined) collection = withoutLeft(collection, synced);
    await this.#letGo(resident, delta, place.lower, collection.settled);
    await unsettled.clear(id);
    const { version, conflicts } = synced ?? NOTHING_WRITTEN;
    return { version, collection, conflicts, wrote: version > 0 };
  }

  /** A delta that was cut short on its way out of here goes with the process: there is nothing to mark. */
  async #writeDirectly(resident: Resident, direct: DirectCodebase, place: DeltaPlace): Promise<Written> {
    let collection: DirectCollection = { ...NOTHING_WRITTEN.collection, overwritten: [] };
    const written = (): readonly string[] => collection.changes.flatMap(({ staged }) => staged?.path ?? []);
    await direct.write(resident.id, async (lower) => {
      collection = await this.#parts.deltas.write({ ...place, lower, dryRun: false });
      return written();
    });
    await this.#letGo(resident, place.delta, place.lower, collection.settled);
    return { version: 0, collection, conflicts: overwrittenIn(collection), wrote: written().length > 0 };
  }

  async #letGo(resident: Resident, delta: string, lower: string, entries: Collection["settled"]): Promise<void> {
    await this.#settle(resident, delta, lower, entries);
    const settled = new Set(entries.map(({ path }) => path));
    resident.caughtUp((path) => settled.has(path));
  }

  async #settle(resident: Resident, delta: string, lower: string, entries: readonly SettledEntry[]): Promise<void> {
    if (entries.length === 0) return;
    if (resident.running === undefined) await this.#parts.deltas.settle({ delta, lower }, entries);
    else await resident.running.sandbox.settle(entries);
  }

  #tell(resident: Resident, caller: Caller, type: "sync_completed" | "changes_applied", written: Written): void {
    const { witness, observe } = this.#parts;
    const { version, collection, conflicts, wrote } = written;
    const refused = collection.changes.filter(isRefused);
    const writtenCount = collection.changes.filter(({ staged }) => staged !== undefined).length;
    observe?.sync?.(wrote ? "written" : "nothing", { conflicts: conflicts.length, refused: refused.length });
    if (wrote) {
      const sensitive = collection.changes.filter(
        ({ change, staged }) => staged !== undefined && change.sensitive,
      ).length;
      const counts = { changes: writtenCount, sensitive, refused: refused.length };
      witness.tell(type, resident, caller, { data: { version, ...counts, conflicts: conflicts.length } });
    }
    for (const { path, replacedVersion, replacedSandboxId } of conflicts.slice(0, MOST_EVENTS)) {
      const replaced = { replaced_version: replacedVersion, replaced_sandbox: replacedSandboxId };
      const data = { path: inside(`/${path}`), version, ...replaced };
      witness.tell("sync_conflict", resident, caller, { level: "warn", data });
    }
    this.#tellRefusals(resident, refused);
  }

  /** What is refused stays in the delta and is met by every sync; it is told once. */
  #tellRefusals(resident: Resident, refused: readonly CollectedChange[]): void {
    const told = resident.toldRefusals;
    resident.toldRefusals = new Set(refused.map(({ change, reason }) => `${change.path}: ${reason}`));
    const fresh = refused.filter(({ change, reason }) => !told.has(`${change.path}: ${reason}`));
    for (const { change, reason } of fresh.slice(0, MOST_EVENTS)) {
      this.#parts.witness.tell("sync_refused", resident, SERVER, {
        level: "warn",
        data: { path: inside(change.path), change: change.kind, reason },
      });
    }
  }

  #failed(resident: Resident, caller: Caller, error: unknown): SyncReport {
    const { witness, observe, log } = this.#parts;
    const { message } = toRuntimeError(error);
    log({ level: "error", message: "a sync failed", sandboxId: resident.id, error });
    observe?.sync?.("failed", { conflicts: 0, refused: 0 });
    witness.tell("sync_failed", resident, caller, { level: "error", data: { reason: message } });
    return { version: 0, problems: [`nothing was written to the codebase: ${message}`] };
  }
}

/**
 * What the codebase could not take is refused like the rest, and stays in the delta. Where the sandbox has nothing of its own
 * nothing is written either, and the delta lets go of it: newer work shows.
 */
function withoutLeft({ changes, settled }: Collection, left: Pick<SyncResult, "skipped" | "superseded">): Collection {
  const skipped = new Set(left.skipped.map((path) => `/${path}`));
  const superseded = new Set(left.superseded.map((path) => `/${path}`));
  return {
    changes: changes.map((one) => {
      const { staged: _staged, ...rest } = one;
      if (superseded.has(one.change.path)) return { ...rest, reason: SUPERSEDED, superseded: true };
      return skipped.has(one.change.path) ? { ...rest, reason: UNSTORABLE } : one;
    }),
    settled: settled.filter(({ path }) => !skipped.has(path)),
  };
}

function overwrittenIn({ overwritten }: DirectCollection): readonly ConflictRecord[] {
  return overwritten.map((path) => ({ path: path.slice(1), replacedVersion: 0, replacedSandboxId: "" }));
}

function isRefused({ staged, superseded }: CollectedChange): boolean {
  return staged === undefined && superseded === undefined;
}

export function refuseSync(resident: Resident): void {
  if (resident.mayWriteCodebase) return;
  const { codebaseVersion } = resident.record;
  throw new RuntimeError(
    "SYNC_REFUSED",
    codebaseVersion === 0
      ? "the sandbox was created with sync never: its changes cannot be applied"
      : `the sandbox is pinned to version ${codebaseVersion}: its changes cannot be applied`,
    { details: { sandbox_id: resident.id } },
  );
}

// The answer to a command may be read by the agent, from whom hidden paths are hidden: it has none of them, and does not
// tell a directory with something hidden in it from one without.
function problemsOf(resident: Resident, { changes }: Collection): readonly string[] {
  const problems = changes
    .filter((one) => {
      const { change, reason } = one;
      if (!isRefused(one) || resident.policy.decide(change.path).level === LEVEL.none) return false;
      return !(change.kind === "deleted" && reason === HOLDS_PROTECTED);
    })
    .map(({ change, reason }) => `${inside(change.path)}: ${reason === HOLDS_PROTECTED ? KEPT : reason}`);
  if (problems.length <= MOST_PROBLEMS) return problems;
  return [...problems.slice(0, MOST_PROBLEMS), `and ${problems.length - MOST_PROBLEMS} more`];
}
