import { readFileSync } from "node:fs";
import { TICK_MS } from "./host-processes.ts";

/** More than any look is wrong by: the machine slept, which performance.now() does not count. */
const JUMP_MS = 1_000;

interface Offset {
  /** In performance.now(), since when it is known. */
  readonly sinceMs: number;
  offsetMs: number;
}

/**
 * Turns times of performance.now() into the ticks since boot in which /proc gives the start of a process. /proc/uptime is
 * cut to a tick, and time goes by until it was read, so each look at it finds an offset that is too small; the largest of
 * several looks is close.
 */
export class BootClock {
  /** One for each time the machine slept, in order. */
  readonly #offsets: [Offset, ...Offset[]] = [
    { sinceMs: Number.NEGATIVE_INFINITY, offsetMs: Number.NEGATIVE_INFINITY },
  ];
  readonly #read: () => { readonly uptimeMs: number; readonly nowMs: number };

  /** `read` must not tell an uptime that is later than its now. */
  constructor(read: () => { readonly uptimeMs: number; readonly nowMs: number } = readClocks) {
    this.#read = read;
  }

  /** Looks several times, spread over a tick. */
  async settle(): Promise<void> {
    for (let i = 0; i < 8; i++) {
      this.look();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  look(): void {
    const { uptimeMs, nowMs } = this.#read();
    const found = uptimeMs - nowMs;
    const last = this.#offsets.at(-1)!;
    const isFirst = last.offsetMs === Number.NEGATIVE_INFINITY;
    if (!isFirst && found > last.offsetMs + JUMP_MS) this.#offsets.push({ sinceMs: nowMs, offsetMs: found });
    else last.offsetMs = Math.max(last.offsetMs, found);
  }

  /** Never later than the truth: a process that started at that moment or after it has at least this many ticks. */
  ticksAt(performanceMs: number): number {
    this.look();
    const { offsetMs } = this.#offsets.findLast(({ sinceMs }) => sinceMs <= performanceMs) ?? this.#offsets[0];
    return Math.floor((performanceMs + offsetMs) / TICK_MS);
  }
}

/** Now comes second: whatever holds us up between the two must not make the past look later. */
function readClocks(): { uptimeMs: number; nowMs: number } {
  const uptimeMs = Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 1000;
  return { uptimeMs, nowMs: performance.now() };
}
