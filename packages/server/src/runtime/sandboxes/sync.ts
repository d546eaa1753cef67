import { LEVEL } from "@agentfense/permission";
import { HOLDS_PROTECTED } from "../../isolation/changes/application.ts";
import type { SettledEntry } from "../../isolation/filesystem/settlement.ts";
import { type Caller, SERVER } from "../caller.ts";
import type { DirectCodebase, SyncResult } from "../codebases/api.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { ConflictRecord } from "../store/store.ts";
import { inside } from "./audit-trail.ts";
import {
  type CollectedChange,
  type Collection,
  type DeltaPlace,
  type DirectCollection,
  layersBeneath,
} from "./delta-work.ts";
import type { Parts, Unsettled } from "./parts.ts";
import { toRuntimeError } from "./refusals.ts";
import type { RegisteredSandbox } from "./registered-sandbox.ts";

interface SyncParts extends Pick<Parts, "codebases" | "deltas" | "observe" | "auditTrail" | "log" | "deltaOf"> {
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
  readonly #waiting = new Map<RegisteredSandbox, Promise<SyncReport>>();

  constructor(parts: SyncParts) {
    this.#parts = parts;
  }

  /** After each command of a sandbox that syncs by itself. Never fails: what went wrong is in the report. */
  afterCommand(registered: RegisteredSandbox, caller: Caller): Promise<SyncReport> {
    if (registered.record.sync !== "on-exec" || !registered.mayWriteCodebase) return Promise.resolve(NOTHING_SYNCED);
    const waiting = this.#waiting.get(registered);
    if (waiting !== undefined) return waiting;
    const sync = registered.syncs.run(() => {
      this.#waiting.delete(registered);
      return this.#afterCommand(registered, caller);
    });
    this.#waiting.set(registered, sync);
    return sync;
  }

  /** Writes what was asked for, on demand. The caller holds the sandbox's turn. */
  apply(
    registered: RegisteredSandbox,
    caller: Caller,
    place: Pick<DeltaPlace, "lower" | "paths" | "holdsSensitive">,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    return registered.syncs.run(async () => {
      const written = await this.#write(registered, place, signal);
      this.#tell(registered, caller, "changes_applied", written);
      return written;
    });
  }

  /** What `apply` would do. */
  async rehearse(registered: RegisteredSandbox, place: DeltaPlace, signal: AbortSignal | undefined): Promise<Written> {
    const { codebases, deltas } = this.#parts;
    if (codebases.direct(registered.record.codebaseId) === undefined) {
      return { ...NOTHING_WRITTEN, collection: await deltas.collect(place, signal) };
    }
    const collection = await deltas.write({ ...place, dryRun: true });
    return { ...NOTHING_WRITTEN, collection, conflicts: overwrittenIn(collection) };
  }

  /** After a crash: what the codebase has already leaves the delta, before anybody can write something newer there. */
  async recover(registered: RegisteredSandbox): Promise<void> {
    const { codebases, deltas, unsettled } = this.#parts;
    const delta = this.#parts.deltaOf(registered);
    const { codebaseId, id, rules } = registered.record;
    if (!(await deltas.isEmpty(delta))) {
      const layer = await codebases.open(codebaseId, 0);
      try {
        const { settled } = await deltas.collect({ delta, lower: layer.directory, rules });
        await this.#settle(registered, delta, layer.directory, settled);
      } finally {
        await layer.release();
      }
    }
    await unsettled.clear(id);
  }

  async #afterCommand(registered: RegisteredSandbox, caller: Caller): Promise<SyncReport> {
    const { running, departure } = registered;
    // What is destroyed takes what it did not sync along.
    if (running === undefined || departure !== undefined) return NOTHING_SYNCED;
    try {
      const written = await this.#write(registered, { lower: running.lower }, undefined);
      this.#tell(registered, caller, "sync_completed", written);
      return { version: written.version, problems: problemsOf(registered, written.collection) };
    } catch (error) {
      return this.#failed(registered, caller, error);
    }
  }

  async #write(
    registered: RegisteredSandbox,
    place: Pick<DeltaPlace, "lower" | "paths" | "holdsSensitive">,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    const { codebases, deltas, unsettled } = this.#parts;
    const delta = this.#parts.deltaOf(registered);
    if (place.paths === undefined && (await deltas.isEmpty(delta))) return NOTHING_WRITTEN;
    const { codebaseId, id } = registered.record;
    const direct = codebases.direct(codebaseId);
    if (direct !== undefined) {
      signal?.throwIfAborted();
      return await this.#writeDirectly(registered, direct, { ...place, delta, rules: registered.record.rules });
    }
    let { collection } = NOTHING_WRITTEN;
    const synced = await codebases.sync(codebaseId, id, async (staging) => {
      collection = await deltas.collect({ ...place, delta, rules: registered.record.rules, staging }, signal);
      const entries = collection.changes.flatMap(({ staged, change }) =>
        staged === undefined ? [] : [{ ...staged, madeAtMs: registered.ownSinceMs(change.path, staged.madeAtMs) }],
      );
      if (entries.length > 0) await unsettled.mark(id);
      return entries;
    });
    if (synced !== undefined) collection = withoutLeft(collection, synced);
    await this.#letGo(registered, delta, place.lower, collection.settled);
    await unsettled.clear(id);
    const { version, conflicts } = synced ?? NOTHING_WRITTEN;
    return { version, collection, conflicts, wrote: version > 0 };
  }

  /** A delta that was cut short on its way out of here goes with the process: there is nothing to mark. */
  async #writeDirectly(registered: RegisteredSandbox, direct: DirectCodebase, place: DeltaPlace): Promise<Written> {
    let collection: DirectCollection = { ...NOTHING_WRITTEN.collection, overwritten: [] };
    const written = (): readonly string[] => collection.changes.flatMap(({ staged }) => staged?.path ?? []);
    await direct.write(registered.id, async (lower) => {
      collection = await this.#parts.deltas.write({ ...place, lower, dryRun: false });
      return written();
    });
    await this.#letGo(registered, place.delta, place.lower, collection.settled);
    return { version: 0, collection, conflicts: overwrittenIn(collection), wrote: written().length > 0 };
  }

  async #letGo(
    registered: RegisteredSandbox,
    delta: string,
    lower: string,
    entries: Collection["settled"],
  ): Promise<void> {
    await this.#settle(registered, delta, lower, entries);
    const settled = new Set(entries.map(({ path }) => path));
    registered.caughtUp((path) => settled.has(path));
  }

  async #settle(
    registered: RegisteredSandbox,
    delta: string,
    lower: string,
    entries: readonly SettledEntry[],
  ): Promise<void> {
    // What lies on a snapshot cannot let go of anything: what is beneath would show.
    if (entries.length === 0 || (await layersBeneath(delta)).length > 0) return;
    if (registered.running === undefined) await this.#parts.deltas.settle({ delta, lower }, entries);
    else await registered.running.sandbox.settle(entries);
  }

  #tell(
    registered: RegisteredSandbox,
    caller: Caller,
    type: "sync_completed" | "changes_applied",
    written: Written,
  ): void {
    const { auditTrail, observe } = this.#parts;
    const { version, collection, conflicts, wrote } = written;
    const refused = collection.changes.filter(isRefused);
    const writtenCount = collection.changes.filter(({ staged }) => staged !== undefined).length;
    observe?.sync?.(wrote ? "written" : "nothing", { conflicts: conflicts.length, refused: refused.length });
    if (wrote) {
      const sensitive = collection.changes.filter(
        ({ change, staged }) => staged !== undefined && change.sensitive,
      ).length;
      const counts = { changes: writtenCount, sensitive, refused: refused.length };
      auditTrail.tell(type, registered, caller, { data: { version, ...counts, conflicts: conflicts.length } });
    }
    for (const { path, replacedVersion, replacedSandboxId } of conflicts.slice(0, MOST_EVENTS)) {
      const replaced = { replaced_version: replacedVersion, replaced_sandbox: replacedSandboxId };
      const data = { path: inside(`/${path}`), version, ...replaced };
      auditTrail.tell("sync_conflict", registered, caller, { level: "warn", data });
    }
    this.#tellRefusals(registered, refused);
  }

  /** What is refused stays in the delta and is met by every sync; it is told once. */
  #tellRefusals(registered: RegisteredSandbox, refused: readonly CollectedChange[]): void {
    const told = registered.toldRefusals;
    registered.toldRefusals = new Set(refused.map(({ change, reason }) => `${change.path}: ${reason}`));
    const fresh = refused.filter(({ change, reason }) => !told.has(`${change.path}: ${reason}`));
    for (const { change, reason } of fresh.slice(0, MOST_EVENTS)) {
      this.#parts.auditTrail.tell("sync_refused", registered, SERVER, {
        level: "warn",
        data: { path: inside(change.path), change: change.kind, reason },
      });
    }
  }

  #failed(registered: RegisteredSandbox, caller: Caller, error: unknown): SyncReport {
    const { auditTrail, observe, log } = this.#parts;
    const { message } = toRuntimeError(error);
    log({ level: "error", message: "a sync failed", sandboxId: registered.id, error });
    observe?.sync?.("failed", { conflicts: 0, refused: 0 });
    auditTrail.tell("sync_failed", registered, caller, { level: "error", data: { reason: message } });
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

export function refuseSync(registered: RegisteredSandbox): void {
  if (registered.mayWriteCodebase) return;
  const { codebaseVersion } = registered.record;
  throw new RuntimeError(
    "SYNC_REFUSED",
    codebaseVersion === 0
      ? "the sandbox was created with sync never: its changes cannot be applied"
      : `the sandbox is pinned to version ${codebaseVersion}: its changes cannot be applied`,
    { details: { sandbox_id: registered.id } },
  );
}

// The answer to a command may be read by the agent, from whom hidden paths are hidden: it has none of them, and does not
// tell a directory with something hidden in it from one without.
function problemsOf(registered: RegisteredSandbox, { changes }: Collection): readonly string[] {
  const problems = changes
    .filter((one) => {
      const { change, reason } = one;
      if (!isRefused(one) || registered.policy.decide(change.path).level === LEVEL.none) return false;
      return !(change.kind === "deleted" && reason === HOLDS_PROTECTED);
    })
    .map(({ change, reason }) => `${inside(change.path)}: ${reason === HOLDS_PROTECTED ? KEPT : reason}`);
  if (problems.length <= MOST_PROBLEMS) return problems;
  return [...problems.slice(0, MOST_PROBLEMS), `and ${problems.length - MOST_PROBLEMS} more`];
}
