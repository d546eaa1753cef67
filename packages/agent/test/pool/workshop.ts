import { expect } from "vitest";
import type { PoolEvent } from "../../src/pool/events.ts";
import type { PoolOptions } from "../../src/pool/options.ts";
import { SandboxPool } from "../../src/pool/pool.ts";
import { ManualClock } from "./manual-clock.ts";

/** An instance that can be told apart. */
export interface Piece {
  readonly number: number;
}

type Gate = PromiseWithResolvers<void>;

/** Makes instances when it is let, and keeps the books. */
export class Workshop {
  readonly clock = new ManualClock();
  readonly alive = new Set<Piece>();
  readonly destroyed: number[] = [];
  readonly resets: number[] = [];
  readonly checks: number[] = [];
  readonly events: PoolEvent[] = [];
  /** What the next calls of `create` end with; undefined is success. */
  readonly createFailures: (Error | undefined)[] = [];
  /** Numbers of instances that are no good. */
  readonly bad = new Set<number>();
  /** While it is there, whatever is begun waits for it. */
  hold: Partial<Record<"create" | "destroy" | "reset" | "check", Gate>> = {};
  /** The most that were there at once, counting those being made. */
  peak = 0;
  making = 0;
  #made = 0;

  options(options: Partial<PoolOptions<Piece>> = {}): PoolOptions<Piece> {
    return {
      clock: this.clock,
      onEvent: (event) => this.events.push(event),
      create: async (signal) => {
        this.making += 1;
        this.peak = Math.max(this.peak, this.making + this.alive.size);
        try {
          if (this.hold.create !== undefined) await Promise.race([this.hold.create.promise, aborted(signal)]);
          const failure = this.createFailures.shift();
          if (failure !== undefined) throw failure;
          this.#made += 1;
          const piece = { number: this.#made };
          this.alive.add(piece);
          return piece;
        } finally {
          this.making -= 1;
        }
      },
      destroy: async (piece) => {
        await this.hold.destroy?.promise;
        expect(this.alive.delete(piece)).toBe(true);
        this.destroyed.push(piece.number);
      },
      ...options,
    };
  }

  /** `reset` that notes whom it was called for, and fails for the bad ones. */
  readonly reset = async ({ number }: Piece): Promise<void> => {
    this.resets.push(number);
    await this.hold.reset?.promise;
    if (this.bad.has(number)) throw new Error(`${number} cannot be reset`);
  };

  readonly check = async ({ number }: Piece): Promise<void> => {
    this.checks.push(number);
    await this.hold.check?.promise;
    if (this.bad.has(number)) throw new Error(`${number} does not answer`);
  };

  async pool(options: Partial<PoolOptions<Piece>> = {}): Promise<SandboxPool<Piece>> {
    const pool = new SandboxPool(this.options(options));
    await pool.start();
    return pool;
  }

  /** Closes a gate; opening it is up to the caller. */
  close(name: keyof Workshop["hold"]): Gate {
    const gate = Promise.withResolvers<void>();
    this.hold = { ...this.hold, [name]: gate };
    return {
      ...gate,
      resolve: () => {
        this.hold = { ...this.hold, [name]: undefined };
        gate.resolve();
      },
    };
  }
}

/** Rejects with the signal's reason. */
async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  await promise;
}
