import { readFileSync } from "node:fs";
import { TICK_MS } from "./host-processes.ts";

/**
 * Turns times of performance.now() into the ticks since boot in which /proc gives the start of a process. /proc/uptime is
 * cut to a tick, so each look at it finds an offset that is too small by up to one; the largest of several looks is close.
 */
export class BootClock {
  #offsetMs = Number.NEGATIVE_INFINITY;

  /** Looks several times, spread over a tick. */
  async settle(): Promise<void> {
    for (let i = 0; i < 8; i++) {
      this.look();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  look(): void {
    const before = performance.now();
    const seconds = Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]);
    this.#offsetMs = Math.max(this.#offsetMs, seconds * 1000 - before);
  }

  /** Never later than the truth: a process that started at that moment or after it has at least this many ticks. */
  ticksAt(performanceMs: number): number {
    this.look();
    return Math.floor((performanceMs + this.#offsetMs) / TICK_MS);
  }
}
