import { availableParallelism } from "node:os";
import * as sys from "./native/syscalls.ts";

/** A client that asks for one thing after the other comes back sooner than this; a sleeping CPU takes longer to wake. */
const SPIN_MS = 0.05;
/** So many looks in vain in a row, and the thread goes to sleep at once for a while. */
const MISSES = 4;
const SHORTEST_BREAK = 16;
const LONGEST_BREAK = 1024;
/** How long an answer to the question whether others want the CPUs is good. */
const CROWD_MS = 10;

/** What a Spin goes by; a test says it itself. */
export interface SpinConditions {
  /** CPUs that the thread and its clients may use. */
  readonly cpus: number;
  readonly nowMs: () => number;
  /** Threads of the machine that run or want to run. */
  readonly runnable: () => number;
}

/**
 * Whether a thread that has answered looks out for the next request for a moment before it sleeps. To sleep and to be woken
 * takes as much CPU time as that moment, and longer: a client on another CPU has asked by then. It pays where the client has
 * a CPU beside the thread's. So a thread does not look out that is one of too many awake, that has looked in vain again and
 * again, or while more threads than CPUs want to run.
 */
export class Spin {
  /** How many of the threads that share this memory are awake. */
  readonly #awake: Int32Array;
  readonly #conditions: SpinConditions;
  readonly #mostAwake: number;
  #misses = 0;
  #break = SHORTEST_BREAK;
  #sleepsLeft = 0;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #isCrowded = true;

  constructor(awake: Int32Array, conditions: SpinConditions) {
    this.#awake = awake;
    this.#conditions = conditions;
    this.#mostAwake = Math.floor(conditions.cpus / 2);
  }

  wakes(): void {
    Atomics.add(this.#awake, 0, 1);
  }

  sleeps(): void {
    Atomics.sub(this.#awake, 0, 1);
  }

  /** Calls `look` until it finds something, which is returned, or until it is time to sleep: 0. */
  look(look: () => number): number {
    if (this.#awake[0]! > this.#mostAwake) return 0;
    if (this.#sleepsLeft > 0) {
      this.#sleepsLeft -= 1;
      return 0;
    }
    const { nowMs } = this.#conditions;
    const startedAtMs = nowMs();
    if (this.#crowded(startedAtMs)) return 0;
    do {
      const found = look();
      if (found === 0) continue;
      this.#misses = 0;
      this.#break = SHORTEST_BREAK;
      return found;
    } while (nowMs() - startedAtMs < SPIN_MS);
    this.#misses += 1;
    if (this.#misses >= MISSES) this.#takeBreak();
    return 0;
  }

  #crowded(nowMs: number): boolean {
    if (nowMs - this.#askedAtMs >= CROWD_MS) {
      this.#askedAtMs = nowMs;
      this.#isCrowded = this.#conditions.runnable() > this.#conditions.cpus;
    }
    return this.#isCrowded;
  }

  #takeBreak(): void {
    this.#misses = 0;
    this.#sleepsLeft = this.#break;
    this.#break = Math.min(2 * this.#break, LONGEST_BREAK);
  }
}

/** How things are for the calling thread. Its affinity counts, and a quota of the process in whole CPUs. */
export function conditionsOfThread(): SpinConditions & Disposable {
  const loadavg = sys.open("/proc/loadavg", sys.Open.RDONLY);
  const text = Buffer.alloc(64);
  return {
    cpus: availableParallelism(),
    nowMs: () => performance.now(),
    runnable() {
      // "0.20 0.18 0.12 1/80 11206": the fourth is the number of runnable threads over that of all.
      const length = sys.pread(loadavg, text, text.length, 0);
      const count =
        length > 0 ? Number.parseInt(text.toString("latin1", 0, length).split(" ")[3] ?? "", 10) : Number.NaN;
      return Number.isNaN(count) ? Number.POSITIVE_INFINITY : count;
    },
    [Symbol.dispose]: () => void sys.close(loadavg),
  };
}
