import { AgentError } from "../errors.ts";
import type { ExecutionTask, Executor } from "../executors/executor.ts";
import type { ExecutionOutcome } from "../types.ts";

/** Executors end code in time by themselves; one that takes so much longer has lost its way. */
const OVERTIME_MS = 60_000;

/** It may have run, and may still: it must not be tried elsewhere. */
export class Overtime extends AgentError {}

/** Runs a task, but does not wait forever for it. */
export async function runInTime(
  executor: Executor,
  task: ExecutionTask & { readonly timeoutMs: number },
  signal: AbortSignal,
  overtimeMs = OVERTIME_MS,
): Promise<ExecutionOutcome> {
  const ending = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const overtime = setTimeout(() => {
    const error = new Overtime(`the executor (${executor.type}) did not end it within ${task.timeoutMs} ms`);
    reject(error);
    ending.abort(error);
  }, task.timeoutMs + overtimeMs);
  try {
    const executing = executor.execute(task, { signal: AbortSignal.any([signal, ending.signal]) });
    return await Promise.race([executing, promise]);
  } finally {
    clearTimeout(overtime);
  }
}
