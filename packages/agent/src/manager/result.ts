import type { ExecutionOutcome, ExecutionResult, FailureCode, RiskAssessment, SandboxType } from "../types.ts";

const MOST_SHOWN_CHARACTERS = 500;

/** What the caller gets when there is no outcome: nothing was run, or it is not known how it ended. */
export function failed(
  errorCode: FailureCode,
  error: string,
  circumstances: Pick<ExecutionResult, "sandboxType" | "risk">,
): ExecutionResult {
  return {
    success: false,
    stdout: "",
    stderr: "",
    exitCode: -1,
    timedOut: errorCode === "TIMEOUT",
    outOfMemory: false,
    truncated: false,
    durationMs: 0,
    ...circumstances,
    error,
    errorCode,
  };
}

/** What the caller gets when it was run. */
export function ran(
  outcome: ExecutionOutcome,
  circumstances: { readonly sandboxType: SandboxType; readonly risk: RiskAssessment; readonly timeoutMs: number },
): ExecutionResult {
  const { sandboxType, risk, timeoutMs } = circumstances;
  const failure = failureOf(outcome, timeoutMs);
  return { ...outcome, success: failure === undefined, sandboxType, risk, ...failure };
}

function failureOf(
  outcome: ExecutionOutcome,
  timeoutMs: number,
): Pick<ExecutionResult, "error" | "errorCode"> | undefined {
  const { timedOut, outOfMemory, exitCode, stderr } = outcome;
  if (timedOut) return { errorCode: "TIMEOUT", error: `it did not end within ${timeoutMs} ms` };
  if (outOfMemory) return { errorCode: "OUT_OF_MEMORY", error: "it used more memory than it may" };
  if (exitCode === 0) return undefined;
  const complaint = stderr.trimEnd().split("\n").at(-1)?.trim().slice(0, MOST_SHOWN_CHARACTERS) ?? "";
  const error = `it ended with exit code ${exitCode}${complaint === "" ? "" : `: ${complaint}`}`;
  return { errorCode: "EXIT_CODE", error };
}
