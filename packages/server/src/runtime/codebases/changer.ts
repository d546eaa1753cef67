import type { Step } from "../../isolation/codebase/steps.ts";
import { RuntimeError } from "../runtime-error.ts";
import { growthOf } from "../store/growth.ts";
import type { CodebaseRecord, ConflictRecord, JournalRecord, VersionOrigin, VersionRecord } from "../store/store.ts";
import type { CodebaseChange } from "./api.ts";
import type { CarriedChange } from "./carrying-out.ts";
import type { Staging } from "./content.ts";
import type { Head } from "./heads.ts";
import { codebaseNotFound, type Parts, toRuntimeError } from "./parts.ts";
import type { VersionRetention } from "./retention.ts";

type ChangerParts = Omit<Parts, "changer" | "snapshots" | "record"> & { readonly retention: VersionRetention };

/** How a version came to be. */
export interface Origin {
  readonly origin: VersionOrigin;
  readonly message: string;
  readonly sandboxId: string;
}

/** The plan in a journal. */
interface StoredPlan {
  readonly upload: string;
  readonly steps: readonly Step[];
}

/** A codebase while its lock is held. */
export interface Turn {
  readonly record: CodebaseRecord;
  /** The version that this turn makes, if it makes one, and its time. */
  readonly stamp: { readonly version: number; readonly nowMs: number };
  commit(
    staging: Staging,
    carried: CarriedChange,
    origin: Origin,
    conflicts?: readonly ConflictRecord[],
  ): Promise<VersionRecord>;
}

/** How long a version stays in doubt at least, when the database does not answer. */
const DOUBT_MS = 500;

/**
 * Changes codebases, one change of a codebase at a time:
 *
 * 1. Content is staged; nobody knows of it yet.
 * 2. The change is planned, under the codebase's lock, as a list of steps, while the content gets to the disk.
 * 3. The journal has it: from here on it happens, crash or not.
 * 4. The disk carries out the steps, each of which can be done twice.
 * 5. The manifest says so too, and so may we: a server that dies now finds everything as it was.
 * 6. What the steps did gets to the disk too, and the journal goes: a loss of power before that has them done again.
 * 7. Versions that are too many go. Nobody waits for these two but the next change, so they are never more than one too many.
 */
export class Changer {
  readonly #parts: ChangerParts;
  readonly #listeners = new Set<(change: CodebaseChange) => Promise<void>>();

  constructor(parts: ChangerParts) {
    this.#parts = parts;
  }

  onChange(listener: (change: CodebaseChange) => Promise<void>): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Does what was begun when the server died. Gives the codebases where it could not: it is tried again at their next turn. */
  async rollForward(): Promise<readonly string[]> {
    const { store, heads, log } = this.#parts;
    const unfinished: string[] = [];
    for (const journal of await store.unsettledChanges()) {
      const { codebaseId, version } = journal;
      const head = heads.of(codebaseId);
      head.begin(journal);
      if (((await store.codebase(codebaseId))?.version ?? 0) >= version.version) head.finish();
      else log({ level: "info", message: `finishing version ${version.version}`, codebaseId });
      // One that cannot be finished now must not keep the others from being served.
      await this.#catchUp(head).catch((error: unknown) => {
        log({ level: "error", message: "a change could not be finished", codebaseId, error });
        unfinished.push(codebaseId);
      });
    }
    return unfinished;
  }

  /** Whoever has the turn is alone with the codebase, apart from readers. What `ask` asks the store is on the way with our own question. */
  async turn<Result, Asked = void>(
    codebaseId: string,
    work: (turn: Turn, asked: Asked) => Promise<Result>,
    ask?: () => Promise<Asked>,
  ): Promise<Result> {
    const { heads, retention, store, clock } = this.#parts;
    const head = heads.of(codebaseId);
    let { generation } = head;
    const change = async (): Promise<Result> => {
      generation = head.generation;
      try {
        await this.#catchUp(head);
        const [record, asked] = await Promise.all([store.codebase(codebaseId), ask?.()]);
        if (record === undefined) throw codebaseNotFound();
        const stamp = { version: record.version + 1, nowMs: clock.now() };
        const commit: Turn["commit"] = (staging, carried, origin, conflicts = []) =>
          this.#commit(head, record, { ...stamp, ...origin, conflicts }, staging, carried);
        return await work({ record, stamp, commit }, asked as Asked);
      } catch (error) {
        throw await this.#errorFor(codebaseId, error);
      }
    };
    return await head.turns.run(change, async () => {
      if (head.doubt !== undefined) this.#resolveSoon(codebaseId, head);
      if (head.generation === generation) return;
      try {
        if (head.journal !== undefined && head.isFinished) await this.#settle(head, head.journal);
      } catch (error) {
        // Tried again before the next change.
        await this.#errorFor(codebaseId, error);
        return;
      }
      await retention.apply(codebaseId);
    });
  }

  async #commit(
    head: Head,
    record: CodebaseRecord,
    { nowMs, ...made }: Turn["stamp"] & Origin & Pick<VersionRecord, "conflicts">,
    staging: Staging,
    { changes, steps, filesChanged }: CarriedChange,
  ): Promise<VersionRecord> {
    const growth = growthOf(changes);
    const version: VersionRecord = {
      codebaseId: record.id,
      ...made,
      createdAtMs: nowMs,
      filesChanged,
      size: record.size + growth.bytes,
      fileCount: record.fileCount + growth.files,
    };
    const plan: StoredPlan = { upload: staging.upload, steps };
    const journal: JournalRecord = { codebaseId: record.id, version, changes, plan };
    return await this.#parts.quotas.admit(record.ownerId, growth, async () => {
      await staging.settled();
      const begun = this.#parts.store.beginChange(journal);
      await begun.catch((error: unknown) => {
        // The journal may be there all the same. The next turn finds out, and until then the content stays.
        if (isUnknown(error)) {
          staging.handOver();
          head.begin(journal);
          head.doubt = "begun";
        }
        throw error;
      });
      staging.handOver();
      head.begin(journal);
      return { ...version, createdAtMs: await this.#finish(head, journal) };
    });
  }

  /** What was begun before, and the disk or the server's death kept from its end. */
  async #catchUp(head: Head): Promise<void> {
    const { journal } = head;
    if (journal === undefined) return;
    if (head.doubt === "begun" && !(await this.#isBegun(journal))) {
      head.settle();
      return await this.#removeStaging(journal);
    }
    if (head.isFinished) await this.#carryOut(head, journal);
    else await this.#finish(head, journal);
    await this.#settle(head, journal);
  }

  /** Readers find an old content behind a new manifest while a version is in doubt: that must not last until the next change. */
  #resolveSoon(codebaseId: string, head: Head): void {
    const again = async (): Promise<void> => {
      head.resolving = undefined;
      if (head.doubt === undefined) return;
      try {
        await this.#catchUp(head);
      } catch (error) {
        await this.#errorFor(codebaseId, error);
        if (isUnknown(error)) this.#resolveSoon(codebaseId, head);
      }
    };
    head.resolving ??= setTimeout(() => void head.turns.run(again), DOUBT_MS).unref();
  }

  async #isBegun({ codebaseId, plan }: JournalRecord): Promise<boolean> {
    const { upload } = plan as StoredPlan;
    const unsettled = await this.#parts.store.unsettledChanges();
    return unsettled.some((each) => each.codebaseId === codebaseId && (each.plan as StoredPlan).upload === upload);
  }

  /** Gives the time at which it was done. */
  async #finish(head: Head, journal: JournalRecord): Promise<number> {
    const { codebaseId, version, changes } = journal;
    const { store, clock } = this.#parts;
    await this.#carryOut(head, journal);
    // Finished already when only the answer was lost.
    const made = head.doubt === "finished" ? await store.version(codebaseId, version.version) : undefined;
    const finishedAtMs = made?.createdAtMs ?? clock.now();
    if (made === undefined) {
      await store.finishChange(codebaseId, finishedAtMs).catch((error: unknown) => {
        if (isUnknown(error)) head.doubt = "finished";
        throw error;
      });
    }
    head.finish();
    await this.#tell({
      codebaseId,
      version: version.version,
      paths: changes.map(({ path }) => path),
      sandboxId: version.sandboxId,
      createdAtMs: finishedAtMs,
    });
    return finishedAtMs;
  }

  async #carryOut(head: Head, journal: JournalRecord): Promise<void> {
    const { codebaseId, version, plan } = journal;
    const { upload, steps } = plan as StoredPlan;
    const { hasLeftovers, touched } = await this.#parts.disk.runSteps(codebaseId, version.version, upload, steps);
    head.touched = touched;
    if (hasLeftovers) await this.#removeStaging(journal);
  }

  async #removeStaging({ codebaseId, plan }: JournalRecord): Promise<void> {
    const { disk, log } = this.#parts;
    await disk.removeStaging(codebaseId, (plan as StoredPlan).upload).catch((error: unknown) => {
      log({ level: "warn", message: "staged content could not be removed", codebaseId, error });
    });
  }

  async #settle(head: Head, { codebaseId }: JournalRecord): Promise<void> {
    await this.#parts.disk.settleSteps(codebaseId, head.touched);
    await this.#parts.store.settleChange(codebaseId);
    head.settle();
  }

  async #tell(change: CodebaseChange): Promise<void> {
    for (const listener of this.#listeners) {
      try {
        await listener(change);
      } catch (error) {
        const { codebaseId, version } = change;
        const message = `version ${version} could not be shown everywhere`;
        this.#parts.log({ level: "error", message, codebaseId, error });
      }
    }
  }

  // A codebase that is deleted takes its directories away from under everybody.
  async #errorFor(codebaseId: string, error: unknown): Promise<Error> {
    const translated = toRuntimeError(error);
    if (translated.code !== "INTERNAL") return translated;
    const isGone = (await this.#parts.store.codebase(codebaseId).catch(() => null)) === undefined;
    if (isGone) return codebaseNotFound();
    this.#parts.log({ level: "error", message: "a change failed", codebaseId, error });
    return translated;
  }
}

/** It may have happened, or may not: the answer did not come. */
function isUnknown(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === "DATABASE_UNAVAILABLE";
}
