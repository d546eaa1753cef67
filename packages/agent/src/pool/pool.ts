import { AgentError, PoolError } from "../errors.ts";
import { Acquisition } from "./acquisition.ts";
import { type PoolEvent, tellListener } from "./events.ts";
import { type PoolMetrics, PoolTally } from "./metrics.ts";
import { checkDuration, type PoolOptions, type PoolSettings, poolSettings, type Timer } from "./options.ts";
import { PoolInstances } from "./pool-instances.ts";
import type { Slot } from "./slot.ts";

/** IDLE: it has nothing. ACQUIRING: it waits for an instance. BUSY: it has one. */
export type SessionState = "IDLE" | "ACQUIRING" | "BUSY";

export interface AcquireOptions {
  /** Aborting leaves the queue and throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the pool's `acquireTimeoutMs`. */
  readonly timeoutMs?: number | undefined;
}

type Session<T> =
  | { readonly state: "ACQUIRING"; readonly acquisition: Acquisition<T> }
  | { readonly state: "BUSY"; readonly slot: Slot<T>; readonly instance: T };

/**
 * Instances that take time to make, kept ready and lent to sessions: each to one session at a time, after which it is
 * reset or replaced.
 *
 * What is decided is noted down without waiting in between: a session is ACQUIRING, and a place is taken, before
 * anything is begun that takes time. So no two calls find the same thing free.
 */
export class SandboxPool<T> implements AsyncDisposable {
  readonly #settings: PoolSettings<T>;
  readonly #tally = new PoolTally();
  readonly #instances: PoolInstances<T>;
  readonly #sessions = new Map<string, Session<T>>();
  /** In order of arrival. */
  readonly #queue: Acquisition<T>[] = [];
  #phase: "stopped" | "running" | "stopping" = "stopped";
  #stopping: Promise<void> = Promise.resolve();
  #warming: PromiseWithResolvers<void> | undefined;
  #alarm: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(options: PoolOptions<T>) {
    this.#settings = poolSettings(options);
    this.#instances = new PoolInstances(this.#settings, this.#tally, {
      tell: (event) => this.#tell(event),
      changed: () => this.#pump(),
      exhausted: (error) => this.#giveUp(error),
    });
  }

  /** From now on instances are lent. The first `min` are made in the background; `warm` waits for them. */
  async start(): Promise<void> {
    if (this.#phase === "running") return;
    if (this.#phase === "stopping") throw new PoolError("NOT_RUNNING", "the pool is being stopped");
    this.#phase = "running";
    this.#instances.open();
    this.#pump();
  }

  /** Waits until there are `min` instances. */
  async warm({ signal }: Pick<AcquireOptions, "signal"> = {}): Promise<void> {
    signal?.throwIfAborted();
    this.#expectRunning();
    if (this.#instances.isWarm) return;
    this.#warming ??= Promise.withResolvers();
    await orAborted(this.#warming.promise, signal);
  }

  /** The session's instance. Asking again gives the same one; one `release` ends it, however often it was asked for. */
  async acquire(sessionId: string, options: AcquireOptions = {}): Promise<T> {
    const { signal, timeoutMs = this.#settings.acquireTimeoutMs } = options;
    if (typeof sessionId !== "string" || sessionId === "") throw new AgentError("a session needs an id");
    checkDuration("timeoutMs", timeoutMs);
    signal?.throwIfAborted();
    this.#expectRunning();
    const session = this.#sessions.get(sessionId);
    if (session?.state === "BUSY") return session.instance;
    const acquisition = session?.acquisition ?? this.#enqueue(sessionId);
    const instance = acquisition.join({ timeoutMs, signal });
    this.#pump();
    return await instance;
  }

  /**
   * Takes the session's instance back, or the session out of the queue; does nothing if it has neither. Waits until
   * the instance is reset or destroyed, and does not throw: what goes wrong with that concerns the pool alone.
   */
  async release(sessionId: string, { broken = false }: { readonly broken?: boolean | undefined } = {}): Promise<void> {
    const session = this.#sessions.get(sessionId);
    if (session?.state === "BUSY") await this.#takeBack(sessionId, session.slot, broken);
    if (session?.state !== "ACQUIRING") return;
    this.#withdraw(session.acquisition);
    session.acquisition.fail(new PoolError("NOT_ACQUIRED", `session ${sessionId} was released while it waited`));
  }

  /**
   * The session's instance has crashed or cannot be trusted: it is taken away and destroyed. If an instance is named,
   * only if it is still the session's. Tells whether it was so.
   */
  async markBroken(sessionId: string, instance?: T): Promise<boolean> {
    const session = this.#sessions.get(sessionId);
    if (session?.state !== "BUSY" || (instance !== undefined && session.instance !== instance)) return false;
    await this.#takeBack(sessionId, session.slot, true);
    return true;
  }

  state(sessionId: string): SessionState {
    return this.#sessions.get(sessionId)?.state ?? "IDLE";
  }

  metrics(): PoolMetrics {
    const instances = this.#instances;
    return this.#tally.metrics({
      alive: instances.alive,
      creating: instances.count("creating"),
      idle: instances.count("idle"),
      busy: instances.count("busy"),
      waiting: this.#queue.length,
    });
  }

  /**
   * Lends nothing any more, tells those who wait, and destroys every instance: those in use when they are released,
   * at the latest after `graceMs` (default 0: at once). Throws what destroying threw, when all of it is done.
   */
  async stop({ graceMs = 0 }: { readonly graceMs?: number | undefined } = {}): Promise<void> {
    checkDuration("graceMs", graceMs);
    if (this.#phase === "running") {
      this.#phase = "stopping";
      this.#stopping = this.#shutDown(graceMs);
    }
    await this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #shutDown(graceMs: number): Promise<void> {
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
    this.#turnAway(new PoolError("NOT_RUNNING", "the pool was stopped"));
    try {
      await this.#instances.close(graceMs);
    } finally {
      this.#sessions.clear();
      this.#phase = "stopped";
      // Those who wait for this stop are told what went wrong; who stops again later is not.
      this.#stopping = Promise.resolve();
    }
  }

  #expectRunning(): void {
    if (this.#phase === "running") return;
    const problem = this.#phase === "stopping" ? "the pool is being stopped" : "the pool is not started";
    throw new PoolError("NOT_RUNNING", problem);
  }

  #enqueue(sessionId: string): Acquisition<T> {
    const acquisition: Acquisition<T> = new Acquisition(sessionId, this.#settings.clock, {
      timedOut: () => {
        this.#tally.timeouts += 1;
        this.#tell({ type: "timed_out", sessionId });
      },
      abandoned: () => this.#withdraw(acquisition),
    });
    this.#sessions.set(sessionId, { state: "ACQUIRING", acquisition });
    this.#queue.push(acquisition);
    return acquisition;
  }

  #withdraw(acquisition: Acquisition<T>): void {
    const place = this.#queue.indexOf(acquisition);
    if (place === -1) return;
    this.#queue.splice(place, 1);
    this.#sessions.delete(acquisition.sessionId);
    this.#pump();
  }

  /** Does what can be done now. Called after every change, also from within itself: it takes nothing for granted. */
  #pump(): void {
    while (this.#phase === "running" && this.#queue.length > 0) {
      const taken = this.#instances.take();
      const acquisition = taken === undefined ? undefined : this.#queue.shift();
      if (taken === undefined || acquisition === undefined) break;
      this.#lend(taken.slot, taken.instance, acquisition);
    }
    if (this.#phase !== "running") return;
    this.#instances.replenish(this.#queue.length);
    if (this.#instances.isWarm) this.#settleWarming();
    this.#setAlarm();
  }

  #lend(slot: Slot<T>, instance: T, acquisition: Acquisition<T>): void {
    const { sessionId, askedAt } = acquisition;
    const waitedMs = this.#settings.clock.now() - askedAt;
    this.#sessions.set(sessionId, { state: "BUSY", slot, instance });
    this.#tally.served(waitedMs);
    acquisition.succeed(instance);
    this.#tell({ type: "acquired", sessionId, waitedMs });
  }

  async #takeBack(sessionId: string, slot: Slot<T>, broken: boolean): Promise<void> {
    this.#sessions.delete(sessionId);
    this.#tally.released += 1;
    const done = this.#instances.giveBack(slot, { broken });
    this.#tell({ type: "released", sessionId, broken });
    await done;
  }

  #giveUp(cause: unknown): void {
    const problem = cause instanceof Error ? cause.message : String(cause);
    this.#turnAway(new PoolError("CREATE_FAILED", `no instance can be made: ${problem}`, { cause }));
  }

  #turnAway(error: PoolError): void {
    for (const acquisition of this.#queue.splice(0)) {
      this.#sessions.delete(acquisition.sessionId);
      acquisition.fail(error);
    }
    this.#settleWarming(error);
  }

  #settleWarming(error?: PoolError): void {
    const warming = this.#warming;
    this.#warming = undefined;
    if (error === undefined) warming?.resolve();
    else warming?.reject(error);
  }

  #setAlarm(): void {
    const at = this.#instances.nextDue(this.#queue.length);
    if (at === this.#alarm?.at) return;
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
    if (at === undefined) return;
    const { clock } = this.#settings;
    const ring = (): void => {
      this.#alarm = undefined;
      this.#instances.keepHouse();
      this.#pump();
    };
    this.#alarm = { at, timer: clock.after(Math.max(0, at - clock.now()), ring, { background: true }) };
  }

  #tell(event: PoolEvent): void {
    tellListener(this.#settings.onEvent, event);
  }
}

async function orAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return await promise;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
