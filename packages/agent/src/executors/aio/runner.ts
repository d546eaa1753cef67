import type { ExecutionOutcome } from "../../types.ts";
import type { RunPlan } from "../run-plan.ts";

export type Runnable = Exclude<RunPlan, { readonly kind: "failed" }>;

export interface Run {
  readonly plan: Runnable;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A way to run something on a server. */
export interface Runner {
  readonly name: "bash" | "shell" | "code";
  run(run: Run): Promise<ExecutionOutcome>;
  /** A short line whose end is all that matters; gives its exit code. Undefined where there are no commands. */
  line?(line: string, signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
}

/** The code was begun, and how it went on is not known. */
export class LostExecution extends Error {
  override readonly name = "LostExecution";
}

/** Servers take whole seconds. Ours is the finer clock; theirs is for the case that we are gone. */
export function hardTimeout(timeoutMs: number): number {
  return Math.ceil(timeoutMs / 1000) + 2;
}

/** After this, what was to be killed is left to the server's own `hard_timeout`. */
export const KILL_MS = 10_000;
