import { AgentError } from "../errors.ts";
import type { ExecutionResult, FailureCode, Language, RiskLevel, SandboxType } from "../types.ts";

/** What is remembered of an execution: not its output. */
export interface ExecutionRecord {
  readonly executionId: string;
  readonly startedAt: Date;
  readonly language: Language | undefined;
  /** The first 2,000 characters. */
  readonly code: string;
  readonly level: RiskLevel;
  /** Absent when nothing was run. */
  readonly sandboxType: SandboxType | undefined;
  readonly success: boolean;
  readonly exitCode: number;
  readonly durationMs: number;
  readonly errorCode: FailureCode | "ABORTED" | undefined;
}

const KEPT_CHARACTERS = 2_000;

/** The last executions, oldest first. */
export class History {
  readonly #limit: number;
  readonly #records: ExecutionRecord[] = [];

  constructor(limit: number) {
    if (!(limit >= 0)) throw new AgentError(`the history has ${limit} records; it must be a number from 0 on`);
    this.#limit = limit;
  }

  get records(): readonly ExecutionRecord[] {
    return [...this.#records];
  }

  add(
    facts: Pick<ExecutionRecord, "executionId" | "startedAt" | "language" | "code">,
    result: Omit<ExecutionResult, "errorCode"> & Pick<ExecutionRecord, "errorCode">,
  ): void {
    const { risk, sandboxType, success, exitCode, durationMs, errorCode } = result;
    const outcome = { level: risk.level, sandboxType, success, exitCode, durationMs, errorCode };
    this.#records.push({ ...facts, code: facts.code.slice(0, KEPT_CHARACTERS), ...outcome });
    if (this.#records.length > this.#limit) this.#records.shift();
  }
}
