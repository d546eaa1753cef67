import { join } from "node:path";
import { type Answer, run, runClient } from "./client.ts";
import type { Target } from "./targets/target.ts";
import type { Place, Workload } from "./workloads.ts";

/** All samples of one workload on one target. */
export interface Cell {
  readonly target: string;
  readonly pinned: boolean;
  readonly seconds: number[];
  /** What went wrong; then there is no number. */
  error?: string;
}

// A file system that hangs must not hang the benchmark.
const PATIENCE_MS = 300_000;

/**
 * Takes sample i on every target before sample i + 1 on any, so that a noisy neighbour disturbs all alike. Sample 0 is
 * not counted.
 */
export async function measure(
  workload: Workload,
  targets: readonly Target[],
  runs: number,
  signal: AbortSignal,
): Promise<Cell[]> {
  const pairs = targets.map((target) => ({
    target,
    cell: { target: target.name, pinned: target.client.pinned, seconds: [] } as Cell,
  }));
  const attempt = async (work: (target: Target, cell: Cell) => Promise<void>) => {
    for (const { target, cell } of pairs) {
      if (cell.error !== undefined) continue;
      try {
        await work(target, cell);
      } catch (error) {
        signal.throwIfAborted();
        cell.error = error instanceof Error ? error.message : String(error);
        await revive(target);
      }
    }
  };
  // What the last workload wrote is not to reach the disk during this one.
  await run(["sync"], { pinned: false }, signal);
  for (let i = 0; i <= runs; i += 1) {
    await attempt(async (target, cell) => {
      const { seconds } = await sample(workload, target, i, signal);
      if (i > 0) cell.seconds.push(seconds);
    });
  }
  return pairs.map(({ cell }) => cell);
}

/** So that a target that broke down in one workload can be measured in the next. */
async function revive(target: Target): Promise<void> {
  // When it does not come back either, every following workload says so in its own cell.
  await target
    .stop()
    .then(() => target.start())
    .catch(() => undefined);
}

/** One sample. `around` is called with the timed work alone. */
export async function sample(
  workload: Workload,
  target: Target,
  index: number,
  signal: AbortSignal,
  around: (work: () => Promise<Answer>) => Promise<Answer> = (work) => work(),
): Promise<Answer> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
  if (workload.remount) await target.remount();
  const place = await placeOf(workload, target, index, patience);
  if (workload.prelude !== undefined) await runClient(workload.prelude(place), target.client, patience);
  const answer = await around(() => runClient(workload.task(place), target.client, patience));
  if (workload.discard === true) await run(["rm", "-rf", place.scratch], target.client, patience);
  if (answer.check !== workload.expected) {
    throw new Error(`wrong answer: ${answer.check} instead of ${workload.expected}`);
  }
  return answer;
}

async function placeOf(workload: Workload, target: Target, index: number, signal: AbortSignal): Promise<Place> {
  // Native and bindfs work in one and the same tree whether pinned or not.
  const placement = target.client.pinned ? "pinned" : "free";
  const scratch = join(target.root, "scratch", placement, `${workload.id}-${index}`);
  if (workload.writes) await run(["mkdir", "-p", scratch], target.client, signal);
  return { root: target.root, scratch };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return Number.isInteger(middle) ? (sorted[middle - 1]! + sorted[middle]!) / 2 : sorted[Math.floor(middle)]!;
}

/** The value that this part of all values does not exceed: 0.99 for the 99th percentile. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)]!;
}

/** Milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}
