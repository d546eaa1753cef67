import { AgentError, PoolError } from "../errors.ts";
import type { DestructionReason, PoolEvent, PoolStep } from "./events.ts";
import type { PoolTally } from "./metrics.ts";
import type { PoolClock, PoolSettings, Timer } from "./options.ts";
import { type Idle, idleAmong, type Slot, type SlotState } from "./slot.ts";

/** Whom a instances works for. */
export interface StockOwner {
  tell(event: PoolEvent): void;
  /** An instance became free, or there is room for one. */
  changed(): void;
  /** Nothing could be made often enough, and there is no instance at all. */
  exhausted(error: unknown): void;
}

const LONGEST_PAUSE_MS = 5_000;

/**
 * The instances of a pool from their making to their end. A place is taken before an instance is begun and given up
 * after it is gone, so that there are never more than `max`.
 */
export class PoolInstances<T> {
  readonly #settings: PoolSettings<T>;
  readonly #tally: PoolTally;
  readonly #owner: StockOwner;
  readonly #slots = new Set<Slot<T>>();
  /** What goes on by itself. None of these rejects. */
  readonly #work = new Set<Promise<void>>();
  #isOpen = false;
  #failuresInRow = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #drained: (() => void) | undefined;
  #troubles: unknown[] = [];

  constructor(settings: PoolSettings<T>, tally: PoolTally, owner: StockOwner) {
    this.#settings = settings;
    this.#tally = tally;
    this.#owner = owner;
  }

  get alive(): number {
    return this.#slots.size;
  }

  count(...names: readonly SlotState<T>["name"][]): number {
    let count = 0;
    for (const { state } of this.#slots) if (names.includes(state.name)) count += 1;
    return count;
  }

  open(): void {
    this.#isOpen = true;
  }

  /** There are `min` instances. */
  get isWarm(): boolean {
    return this.count("idle", "checking", "busy", "resetting") >= this.#settings.min;
  }

  /**
   * An idle instance, which is busy from now on. The one used last: the others grow old, and go when they are too
   * many.
   */
  take(): { readonly slot: Slot<T>; readonly instance: T } | undefined {
    const freshest = idleAmong(this.#slots).reduce<Idle<T> | undefined>(
      (best, one) => (best === undefined || one.state.sinceMs >= best.state.sinceMs ? one : best),
      undefined,
    );
    if (freshest === undefined) return undefined;
    const { slot, state } = freshest;
    slot.state = { name: "busy", instance: state.instance };
    return { slot, instance: state.instance };
  }

  /** Makes it fit for the next one, or destroys it. */
  async giveBack(slot: Slot<T>, { broken }: { readonly broken: boolean }): Promise<void> {
    const { state } = slot;
    if (state.name !== "busy") return;
    const { reset } = this.#settings;
    if (broken || reset === undefined || !this.#isOpen) {
      await this.#track(this.#destroy(slot, state.instance, broken ? "broken" : this.#isOpen ? "used" : "stopped"));
    } else {
      slot.state = { name: "resetting", instance: state.instance };
      await this.#track(this.#examine(slot, state.instance, { step: "reset", run: reset }));
    }
  }

  /** Begins to make what is missing for so many who wait, and for `min`. */
  replenish(waiting: number): void {
    const { clock } = this.#settings;
    while (this.#isOpen && this.#isShort(waiting) && clock.now() >= this.#pausedUntil) {
      void this.#track(this.#create());
    }
  }

  /** What is due goes: idle ones that are too many. One at a time is checked, so that the others are at hand. */
  keepHouse(): void {
    const { clock, idleMs, check, checkIntervalMs, min } = this.#settings;
    const now = clock.now();
    for (const { slot, state } of idleAmong(this.#slots)) {
      if (this.#lasting() <= min || state.sinceMs + idleMs > now) continue;
      void this.#track(this.#destroy(slot, state.instance, "idle"));
    }
    for (const { slot, state } of idleAmong(this.#slots)) {
      if (check === undefined || this.count("checking") > 0) return;
      if (state.checkedAtMs + checkIntervalMs > now) continue;
      slot.state = { name: "checking", instance: state.instance };
      const task = { step: "check", run: check, idleSinceMs: state.sinceMs } as const;
      void this.#track(this.#examine(slot, state.instance, task));
    }
  }

  /** When there is something to do again, by the clock, for so many who wait. */
  nextDue(waiting: number): number | undefined {
    const { idleMs, check, checkIntervalMs, min } = this.#settings;
    const due = this.#isShort(waiting) ? [this.#pausedUntil] : [];
    const isChecking = this.count("checking") > 0;
    for (const { state } of idleAmong(this.#slots)) {
      if (this.#lasting() > min) due.push(state.sinceMs + idleMs);
      if (check !== undefined && !isChecking) due.push(state.checkedAtMs + checkIntervalMs);
    }
    return due.length === 0 ? undefined : Math.min(...due);
  }

  /** Destroys all, those in use when they are given back or after a time. Throws what destroying threw, in the end. */
  async close(graceMs: number): Promise<void> {
    this.#isOpen = false;
    this.#troubles = [];
    for (const slot of this.#slots) {
      const { state } = slot;
      if (state.name === "creating") state.ending.abort(new PoolError("NOT_RUNNING", "the pool was stopped"));
      if (state.name === "idle") void this.#track(this.#destroy(slot, state.instance, "stopped"));
    }
    if (graceMs > 0 && this.count("busy") > 0) await this.#untilDrained(graceMs);
    for (const slot of this.#slots) {
      const { state } = slot;
      if (state.name === "busy") void this.#track(this.#destroy(slot, state.instance, "stopped"));
    }
    while (this.#work.size > 0) await Promise.all(this.#work);
    if (this.#troubles.length > 0) throw new AggregateError(this.#troubles, "instances could not be destroyed");
  }

  async #untilDrained(graceMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained = resolve;
    const timer = this.#settings.clock.after(graceMs, resolve);
    await promise;
    timer.cancel();
  }

  #isShort(waiting: number): boolean {
    const { min, max } = this.#settings;
    if (this.#slots.size >= max) return false;
    return waiting > this.count("creating", "checking", "resetting") || this.#lasting() < min;
  }

  /** All but those that are being destroyed. */
  #lasting(): number {
    return this.#slots.size - this.count("destroying");
  }

  async #create(): Promise<void> {
    const ending = new AbortController();
    const slot: Slot<T> = { state: { name: "creating", ending } };
    this.#slots.add(slot);
    const begunAt = this.#settings.clock.now();
    try {
      const instance = await makeInTime(this.#settings, ending, (late) => this.#track(this.#unmakeLate(late)));
      if ([...this.#slots].some(({ state }) => state.name !== "creating" && state.instance === instance)) {
        throw new AgentError("create gave an instance that is in the pool already");
      }
      this.#tally.created += 1;
      this.#owner.tell({ type: "created", tookMs: this.#settings.clock.now() - begunAt });
      this.#failuresInRow = 0;
      this.#pausedUntil = Number.NEGATIVE_INFINITY;
      await this.#settle(slot, instance);
    } catch (error) {
      this.#slots.delete(slot);
      if (this.#isOpen) this.#creationFailed(error);
    }
  }

  #creationFailed(error: unknown): void {
    const { clock, retryMs, createAttempts } = this.#settings;
    this.#fail("create", error);
    this.#pausedUntil = clock.now() + Math.min(retryMs * 2 ** this.#failuresInRow, LONGEST_PAUSE_MS);
    this.#failuresInRow += 1;
    if (this.#failuresInRow >= createAttempts && this.#lasting() === 0) this.#owner.exhausted(error);
    this.#owner.changed();
  }

  /** It is idle after that, or destroyed. */
  async #examine(slot: Slot<T>, instance: T, task: Examination<T>): Promise<void> {
    const { clock, stepTimeoutMs } = this.#settings;
    try {
      await runStep(clock, stepTimeoutMs, (signal) => task.run(instance, signal));
    } catch (error) {
      this.#fail(task.step, error);
      await this.#destroy(slot, instance, "broken");
      return;
    }
    await this.#settle(slot, instance, task.idleSinceMs);
  }

  async #settle(slot: Slot<T>, instance: T, idleSinceMs?: number): Promise<void> {
    if (!this.#isOpen) {
      await this.#destroy(slot, instance, "stopped");
      return;
    }
    const now = this.#settings.clock.now();
    slot.state = { name: "idle", instance, sinceMs: idleSinceMs ?? now, checkedAtMs: now };
    this.#owner.changed();
  }

  async #destroy(slot: Slot<T>, instance: T, why: DestructionReason): Promise<void> {
    slot.state = { name: "destroying", instance };
    if (this.count("busy") === 0) this.#drained?.();
    // Another one may be begun at once, if there is room for both.
    this.#owner.changed();
    await this.#unmake(instance);
    this.#slots.delete(slot);
    this.#owner.tell({ type: "destroyed", why });
    this.#owner.changed();
  }

  async #unmakeLate(instance: T): Promise<void> {
    this.#tally.created += 1;
    await this.#unmake(instance);
  }

  async #unmake(instance: T): Promise<void> {
    const { clock, stepTimeoutMs, destroy } = this.#settings;
    try {
      await runStep(clock, stepTimeoutMs, () => destroy(instance));
    } catch (error) {
      this.#fail("destroy", error);
      this.#troubles.push(error);
    }
    this.#tally.destroyed += 1;
  }

  #fail(step: PoolStep, error: unknown): void {
    this.#tally.failures[step] += 1;
    this.#owner.tell({ type: "failed", step, error });
  }

  async #track(work: Promise<void>): Promise<void> {
    this.#work.add(work);
    try {
      await work;
    } finally {
      this.#work.delete(work);
    }
  }
}

interface Examination<T> {
  readonly step: "reset" | "check";
  readonly run: (instance: T, signal: AbortSignal) => Promise<void>;
  /** It was idle before, and is again. */
  readonly idleSinceMs?: number;
}

/** Runs something that belongs to others: what it throws at once is a rejection, and after a time it has failed. */
async function runStep(
  clock: PoolClock,
  timeoutMs: number,
  step: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const ending = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = clock.after(timeoutMs, () => {
    const error = new AgentError(`it was not done within ${timeoutMs} ms`);
    reject(error);
    ending.abort(error);
  });
  try {
    await Promise.race([(async () => await step(ending.signal))(), late]);
  } finally {
    timer.cancel();
  }
}

/**
 * Calls `create`, for as long as it may take. What it gives after `ending` is handed to `unmake` and counts as a
 * failure. One that does not heed the signal is not waited for: should it still give something some day, that is
 * unmade then.
 */
async function makeInTime<T>(
  settings: Pick<PoolSettings<T>, "clock" | "create" | "createTimeoutMs" | "stepTimeoutMs">,
  ending: AbortController,
  unmake: (late: T) => Promise<void>,
): Promise<T> {
  const { clock, create, createTimeoutMs, stepTimeoutMs } = settings;
  const { signal } = ending;
  const { promise: deaf, reject: giveUp } = Promise.withResolvers<never>();
  let patience: Timer | undefined;
  const timer = clock.after(createTimeoutMs, () =>
    ending.abort(new AgentError(`an instance was not made within ${createTimeoutMs} ms`)),
  );
  signal.addEventListener("abort", () => {
    patience = clock.after(stepTimeoutMs, () => giveUp(signal.reason));
  });
  const creation = (async () => await create(signal))().then(async (instance) => {
    if (!signal.aborted) return instance;
    await unmake(instance);
    throw signal.reason;
  });
  try {
    return await Promise.race([creation, deaf]);
  } finally {
    timer.cancel();
    patience?.cancel();
  }
}
