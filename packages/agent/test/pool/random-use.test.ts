// The pool under a thousand random acquires, releases, crashes, timeouts and changes of mind from fifty sessions.

import { expect, test } from "vitest";
import { rounds } from "../../../../test/support/rounds.ts";
import type { PoolEvent } from "../../src/pool/events.ts";
import { SandboxPool } from "../../src/pool/pool.ts";
import { ManualClock } from "./manual-clock.ts";
import { Random } from "./random.ts";

const OPERATIONS = 1_000;
const SESSIONS = Array.from({ length: 50 }, (_, number) => `session-${number}`);
const MAX = 7;
/** Nobody who has so much time may be sent away by a timeout. */
const PATIENT_MS = 100_000_000;

interface Instance {
  readonly number: number;
  /** The sessions whose data is in it. */
  readonly marks: Set<string>;
  hasCrashed: boolean;
}

/** A world of instances that fail now and then, a pool on it, and what must hold at any moment. */
class Trial {
  readonly #random: Random;
  readonly #clock = new ManualClock();
  readonly #alive = new Set<Instance>();
  readonly #held = new Map<string, Instance>();
  /** In order of arrival, as far as they still wait. */
  #queue: string[] = [];
  #pending = 0;
  #making = 0;
  #made = 0;
  /** How things are: in famine everything breaks and next to nothing is made; in calm nothing fails. */
  #times: "usual" | "famine" | "calm" = "usual";
  readonly #controllers: AbortController[] = [];
  readonly #pool: SandboxPool<Instance>;
  readonly problems: string[] = [];
  readonly seen = { served: 0, timedOut: 0, aborted: 0, createFailed: 0, released: 0 };

  constructor(seed: number, { canReset }: { readonly canReset: boolean }) {
    this.#random = new Random(seed);
    this.#pool = new SandboxPool<Instance>({
      create: (signal) => this.#create(signal),
      destroy: (instance) => this.#destroy(instance),
      check: async ({ hasCrashed }) => {
        await this.#while(20);
        if (hasCrashed) throw new Error("it does not answer");
      },
      ...(canReset && { reset: (instance: Instance) => this.#reset(instance) }),
      min: 2,
      max: MAX,
      idleMs: 2_000,
      checkIntervalMs: 500,
      stepTimeoutMs: 1_000,
      createTimeoutMs: 800,
      createAttempts: 3,
      clock: this.#clock,
      onEvent: (event) => this.#hear(event),
    });
  }

  async run(): Promise<void> {
    await this.#pool.start();
    for (let operation = 0; operation < OPERATIONS; operation += 1) {
      this.#times = operation % 300 < 60 ? "famine" : "usual";
      this.#operate();
      if (this.#random.chance(0.5)) await this.#clock.advance(this.#random.below(120));
      this.#examine();
    }
    await this.#drain();
    const stopped = this.#pool.stop().catch(expectDestroyFailures);
    await this.#clock.advance(6_000);
    await stopped;
    const { alive, waiting, created, destroyed, acquired } = this.#pool.metrics();
    expect({ alive, waiting, left: this.#alive.size, timers: this.#clock.timers }).toEqual({
      alive: 0,
      waiting: 0,
      left: 0,
      timers: 0,
    });
    expect({ destroyed, acquired }).toEqual({ destroyed: created, acquired: this.seen.served });
  }

  #operate(): void {
    const random = this.#random;
    const session = random.pick(SESSIONS);
    const kind = random.next();
    if (kind < 0.5) this.#acquire(session);
    else if (kind < 0.85) this.#release(random.pick([...this.#held.keys(), session]), random.chance(0.2));
    else if (kind < 0.9) random.pick([...this.#alive, { hasCrashed: false }]).hasCrashed = true;
    else if (kind < 0.95) {
      const crashed = random.pick([...this.#held.keys(), session]);
      if (this.#held.delete(crashed)) void this.#pool.markBroken(crashed);
    } else random.pick([...this.#controllers, new AbortController()]).abort(new Error("changed its mind"));
  }

  #acquire(session: string): void {
    const random = this.#random;
    const ending = new AbortController();
    if (random.chance(0.3)) this.#controllers.push(ending);
    if (this.#pool.state(session) === "IDLE") {
      // It may have left the queue since it last came.
      this.#queue = [...this.#queue.filter((other) => other !== session), session];
    }
    this.#pending += 1;
    const isPatient = random.chance(0.5);
    const timeoutMs = isPatient ? PATIENT_MS : random.below(300);
    this.#pool
      .acquire(session, { signal: ending.signal, timeoutMs })
      .then(
        (instance) => this.#receive(session, instance),
        (error: Error & { readonly code?: string }) => this.#beRefused(error, isPatient),
      )
      .finally(() => {
        this.#pending -= 1;
      });
  }

  #release(session: string, broken: boolean): void {
    this.#held.delete(session);
    void this.#pool.release(session, { broken: broken || this.#times === "famine" });
  }

  #receive(session: string, instance: Instance): void {
    // Released between the moment it was lent and this one.
    if (this.#pool.state(session) !== "BUSY") return;
    for (const [other, theirs] of this.#held) {
      if (theirs === instance && other !== session)
        this.problems.push(`${other} and ${session} share ${instance.number}`);
    }
    const mine = this.#held.get(session);
    if (mine !== undefined && mine !== instance) this.problems.push(`${session} has two instances`);
    const foreign = [...instance.marks].filter((mark) => mark !== session);
    if (foreign.length > 0) this.problems.push(`${session} sees data of ${foreign}`);
    if (!this.#alive.has(instance)) this.problems.push(`${session} got ${instance.number}, which is gone`);
    instance.marks.add(session);
    this.#held.set(session, instance);
  }

  #beRefused(error: Error & { readonly code?: string }, isPatient: boolean): void {
    if (error.code === "ACQUIRE_TIMEOUT") {
      this.seen.timedOut += 1;
      if (isPatient) this.problems.push(`lost: ${error.message}`);
    } else if (error.code === "CREATE_FAILED") this.seen.createFailed += 1;
    else if (error.code === "NOT_ACQUIRED") this.seen.released += 1;
    else if (error.message === "changed its mind") this.seen.aborted += 1;
    else this.problems.push(`unexpected: ${error}`);
  }

  #hear(event: PoolEvent): void {
    if (event.type !== "acquired") return;
    this.seen.served += 1;
    this.#queue = this.#queue.filter((session) => this.#pool.state(session) !== "IDLE");
    const first = this.#queue.shift();
    if (first !== event.sessionId) this.problems.push(`${event.sessionId} was served before ${first}`);
  }

  #examine(): void {
    const { alive, busy, waiting } = this.#pool.metrics();
    const there = this.#alive.size + this.#making;
    if (there > MAX || alive > MAX) this.problems.push(`there are ${there}, and ${alive} are counted`);
    const states = SESSIONS.map((session) => this.#pool.state(session));
    const counted = {
      busy: states.filter((state) => state === "BUSY").length,
      waiting: states.filter((state) => state === "ACQUIRING").length,
    };
    expect({ busy, waiting, problems: this.problems }).toEqual({ ...counted, problems: [] });
  }

  /** All who wait are served when the others go and nothing fails any more: none was forgotten. */
  async #drain(): Promise<void> {
    this.#times = "calm";
    for (let turn = 0; this.#pending > 0 && turn < 2 * SESSIONS.length; turn += 1) {
      for (const session of this.#held.keys()) this.#release(session, false);
      await this.#clock.advance(6_000);
      this.#examine();
    }
    expect(this.#pending).toBe(0);
  }

  async #create(signal: AbortSignal): Promise<Instance> {
    this.#making += 1;
    try {
      // Some take longer than they may; and some of those do not listen either.
      const isSlow = this.#times === "usual" && this.#random.chance(0.05);
      await this.#while(isSlow ? 1_500 : 100, this.#random.chance(0.5) ? signal : undefined);
      if (this.#random.chance({ usual: 0.2, famine: 0.97, calm: 0 }[this.#times])) throw new Error("no room");
      this.#made += 1;
      const instance = { number: this.#made, marks: new Set<string>(), hasCrashed: false };
      this.#alive.add(instance);
      return instance;
    } finally {
      this.#making -= 1;
    }
  }

  async #reset(instance: Instance): Promise<void> {
    await this.#while(this.#random.chance(0.03) ? 2_000 : 50);
    if (instance.hasCrashed || this.#random.chance(0.1)) throw new Error("it does not answer");
    instance.marks.clear();
  }

  async #destroy(instance: Instance): Promise<void> {
    await this.#while(50);
    if (!this.#alive.delete(instance)) this.problems.push(`${instance.number} was destroyed twice`);
    if (this.#random.chance(0.05)) throw new Error("something is left of it");
  }

  /** Some of this time. */
  async #while(mostMs: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = this.#clock.after(this.#random.below(mostMs), resolve);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    await promise.finally(() => timer.cancel());
  }
}

function expectDestroyFailures(error: unknown): void {
  expect(error).toMatchObject({ message: "instances could not be destroyed" });
}

for (const canReset of [true, false]) {
  const how = canReset ? "are reset" : "are replaced";
  test(`a thousand operations of fifty sessions on instances that ${how}`, async () => {
    const seen: Trial["seen"][] = [];
    for (let seed = 1; seed <= rounds(4); seed += 1) {
      const trial = new Trial(seed, { canReset });
      try {
        await trial.run();
      } catch (error) {
        throw new Error(`with seed ${seed}: ${error}\n${trial.problems.join("\n")}`, { cause: error });
      }
      seen.push(trial.seen);
    }
    // Each thing that can happen did.
    for (const name of ["served", "timedOut", "aborted", "createFailed", "released"] as const) {
      const total = seen.reduce((sum, one) => sum + one[name], 0);
      expect(total, name).toBeGreaterThan(0);
    }
  });
}
