import type {
  ExecutionOutcome,
  ExecutionRequest,
  Language,
  RiskAssessment,
  SandboxType,
  SecurityMode,
} from "../types.ts";

/** A request, and what is thought of it. */
export interface ExecutionTask extends ExecutionRequest {
  readonly risk: RiskAssessment;
  readonly securityMode: SecurityMode;
}

/** Runs code somewhere. What the code does wrong is an outcome; an ExecutorError says that it was not run. */
export interface Executor extends AsyncDisposable {
  readonly type: SandboxType;
  readonly languages: ReadonlySet<Language>;
  /** Aborting ends the code and throws the signal's reason. Calls side by side do not disturb each other. */
  execute(task: ExecutionTask, options?: { readonly signal?: AbortSignal | undefined }): Promise<ExecutionOutcome>;
  /** Throws an ExecutorError when it could not run anything now. */
  check(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
}

export const DEFAULT_TIMEOUT_MS = 30_000;
/** Kept of each stream. */
export const OUTPUT_BYTES = 1024 * 1024;

/** The outcome of code that could not even be begun with, by its own fault. */
export function failedOutcome(stderr: string): ExecutionOutcome {
  return {
    stdout: "",
    stderr,
    exitCode: 1,
    timedOut: false,
    outOfMemory: false,
    truncated: false,
    durationMs: 0,
  };
}
