import { randomUUID } from "node:crypto";
import { AgentError, ExecutorError, PoolError } from "../errors.ts";
import type { ExecutionTask, Executor } from "../executors/executor.ts";
import { UnifiedRiskPolicy } from "../risk/table.ts";
import type {
  ExecutionOutcome,
  ExecutionRequest,
  ExecutionResult,
  FailureCode,
  RiskAssessment,
  SandboxType,
  SecurityMode,
} from "../types.ts";
import { askFor, assessRequest, confirmationRequest, finding } from "./approval.ts";
import type { ExecutionStep, ManagerEvent } from "./events.ts";
import type { History } from "./history.ts";
import type { SandboxManagerOptions } from "./options.ts";
import { type AcceptedRequest, acceptRequest, RequestProblem } from "./request.ts";
import { failed, ran } from "./result.ts";
import type { Candidate, SessionExecutors } from "./session-executors.ts";

export interface ExecutionParts extends Pick<SandboxManagerOptions, "assess" | "confirmation"> {
  readonly sessionId: string;
  readonly securityMode: SecurityMode;
  readonly confirmationTimeoutMs: number;
  readonly sessionExecutors: SessionExecutors;
  readonly history: History;
  readonly tell: (event: ManagerEvent) => void;
}

type Task = ExecutionTask & AcceptedRequest;

type Attempt =
  | { readonly result: ExecutionResult }
  /** It was not run there. */
  | { readonly problem: unknown; readonly isWorthAnother: boolean };

const MOST_SHOWN_CHARACTERS = 500;

/** One request on its way: assess, ask, choose, run, record. */
export class Execution {
  readonly #parts: ExecutionParts;
  readonly #signal: AbortSignal;
  readonly #id = randomUUID();
  readonly #startedAt = new Date();
  #request: AcceptedRequest | undefined;
  #risk: RiskAssessment = finding("CRITICAL", "request.not_assessed", "it was not assessed");
  /** Where it runs, or ran. */
  #sandboxType: SandboxType | undefined;

  constructor(parts: ExecutionParts, signal: AbortSignal) {
    this.#parts = parts;
    this.#signal = signal;
  }

  async run(asked: ExecutionRequest): Promise<ExecutionResult> {
    try {
      this.#request = acceptRequest(asked);
      await this.#assess(this.#request);
      await this.#confirm(this.#request);
      const task: Task = { ...this.#request, risk: this.#risk, securityMode: this.#parts.securityMode };
      const result = await this.#runSomewhere(Object.freeze(task));
      this.#tell({ type: "finished", result });
      this.#record(result, result.errorCode);
      return result;
    } catch (error) {
      const { errorCode, message } = failureOf(error, this.#signal);
      this.#tell({ type: "failed", errorCode, message, error });
      const circumstances = { risk: this.#risk, sandboxType: this.#sandboxType };
      const result = failed(errorCode === "ABORTED" ? "INTERNAL" : errorCode, message, circumstances);
      this.#record(result, errorCode);
      this.#signal.throwIfAborted();
      return result;
    }
  }

  async #assess(request: AcceptedRequest): Promise<void> {
    const { assess = UnifiedRiskPolicy.assess } = this.#parts;
    this.#risk = Object.freeze(await assessRequest(assess, request));
    this.#tell({ type: "assessed", language: request.language, risk: this.#risk });
    this.#signal.throwIfAborted();
  }

  async #confirm(request: AcceptedRequest): Promise<void> {
    const { sessionId, securityMode, confirmation, confirmationTimeoutMs } = this.#parts;
    const risk = this.#risk;
    if (!UnifiedRiskPolicy.needsConfirmation(risk, securityMode)) return;
    if (confirmation === undefined) {
      const wanted = "somebody must agree to that: give the manager a confirmation service (the option confirmation)";
      throw new NotRun("DENIED", `the code is rated ${risk.level}, and ${wanted}`);
    }
    const expiresAt = new Date(Date.now() + confirmationTimeoutMs);
    const shown = Object.freeze(confirmationRequest(request, { sessionId, risk, securityMode, expiresAt }));
    this.#tell({ type: "confirmation_requested", request: shown });
    const verdict = await askFor(confirmation, shown, this.#signal);
    this.#tell({ type: "confirmation_answered", ...verdict });
    this.#signal.throwIfAborted();
    if (verdict.decision === "approved") return;
    const given = verdict.problem ?? verdict.comment?.slice(0, MOST_SHOWN_CHARACTERS);
    const why = verdict.decision === "timed_out" ? "nobody answered in time" : given;
    throw new NotRun("DENIED", `the code is rated ${risk.level}, and it was denied${why ? `: ${why}` : ""}`);
  }

  async #runSomewhere(task: Task): Promise<ExecutionResult> {
    const wanted = UnifiedRiskPolicy.getRequiredSandbox(task.risk, task.securityMode);
    const candidates = this.#parts.sessionExecutors.candidates(wanted, task.language);
    let problem: unknown = new NotRun(
      "REFUSED",
      `there is no executor that may run ${task.language} code rated ${task.risk.level}: it takes a sandbox`,
    );
    for (const candidate of candidates) {
      for (let again = true; again; ) {
        const attempt = await this.#attempt(candidate, task, wanted);
        if ("result" in attempt) return attempt.result;
        problem = attempt.problem;
        again = attempt.isWorthAnother;
      }
    }
    throw problem;
  }

  async #attempt(candidate: Candidate, task: Task, wanted: SandboxType): Promise<Attempt> {
    const executor = await this.#obtain(candidate);
    if ("problem" in executor) return { ...executor, isWorthAnother: false };
    const sandboxType = executor.type;
    this.#tell({ type: "sandbox_chosen", sandboxType, wanted });
    this.#sandboxType = sandboxType;
    this.#tell({ type: "started", sandboxType });
    try {
      const outcome = await runInTime(executor, task, this.#signal);
      return { result: ran(outcome, { sandboxType, risk: task.risk, timeoutMs: task.timeoutMs }) };
    } catch (error) {
      this.#signal.throwIfAborted();
      const code = error instanceof ExecutorError ? error.code : undefined;
      const isUsable = code === "REFUSED" || code === "INVALID_REQUEST";
      const isWorthAnother = !isUsable && (await candidate.giveUp(executor));
      // An ExecutorError says that it was not run; but of these, only two say that it could be elsewhere.
      if (code !== "UNAVAILABLE" && code !== "REFUSED") throw error;
      this.#sandboxType = undefined;
      this.#tell({ type: "sandbox_unavailable", sandboxType, error });
      return { problem: error, isWorthAnother };
    }
  }

  async #obtain(candidate: Candidate): Promise<Executor | { readonly problem: PoolError }> {
    try {
      return await candidate.obtain(this.#signal);
    } catch (problem) {
      this.#signal.throwIfAborted();
      if (!(problem instanceof PoolError)) throw problem;
      this.#tell({ type: "sandbox_unavailable", sandboxType: undefined, error: problem });
      return { problem };
    }
  }

  #tell(step: ExecutionStep): void {
    this.#parts.tell({ executionId: this.#id, sessionId: this.#parts.sessionId, at: new Date(), ...step });
  }

  #record(result: ExecutionResult, errorCode: Parameters<History["add"]>[1]["errorCode"]): void {
    const { code = "", language } = this.#request ?? {};
    const facts = { executionId: this.#id, startedAt: this.#startedAt, language, code };
    this.#parts.history.add(facts, { ...result, errorCode });
  }
}

/** Nothing was run, and this is why. */
class NotRun extends Error {
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What the caller is told of something that was thrown. What is not meant for him is in the event alone. */
function failureOf(
  error: unknown,
  signal: AbortSignal,
): { readonly errorCode: FailureCode | "ABORTED"; readonly message: string } {
  if (signal.aborted) return { errorCode: "ABORTED", message: "it was aborted" };
  if (error instanceof RequestProblem) return { errorCode: "INVALID_REQUEST", message: error.message };
  if (error instanceof NotRun) return { errorCode: error.code, message: error.message };
  if (error instanceof OverdueExecution) return { errorCode: "TIMEOUT", message: error.message };
  if (error instanceof PoolError) return { errorCode: "UNAVAILABLE", message: error.message };
  if (error instanceof ExecutorError) {
    const hint = error.hint === undefined ? "" : ` (${error.hint})`;
    return { errorCode: error.code, message: `${error.message}${hint}` };
  }
  return { errorCode: "INTERNAL", message: "something failed inside the manager; its event `failed` has the error" };
}

/** Executors end code in time by themselves; one that takes so much longer has lost its way. */
const OVERTIME_MS = 60_000;

/** It may have run, and may still: it must not be tried elsewhere. */
export class OverdueExecution extends AgentError {}

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
    const error = new OverdueExecution(`the executor (${executor.type}) did not end it within ${task.timeoutMs} ms`);
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
