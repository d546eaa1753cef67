import type {
  ConfirmationAnswer,
  ConfirmationRequest,
  ConfirmationService,
} from "../../src/confirmation/confirmation.ts";
import { requestHash } from "../../src/confirmation/hash.ts";
import type { ExecutionTask, Executor } from "../../src/executors/executor.ts";
import type { ManagerEvent } from "../../src/manager/events.ts";
import { SandboxManager } from "../../src/manager/manager.ts";
import type { SandboxManagerOptions } from "../../src/manager/options.ts";
import { type ExecutionOutcome, LANGUAGES, type Language, type RiskLevel, type SandboxType } from "../../src/types.ts";

type Play = (task: ExecutionTask, signal: AbortSignal | undefined) => ExecutionOutcome | Promise<ExecutionOutcome>;

export function outcome(part: Partial<ExecutionOutcome> = {}): ExecutionOutcome {
  const nothing = { stdout: "", stderr: "", exitCode: 0, durationMs: 1 };
  return { ...nothing, timedOut: false, outOfMemory: false, truncated: false, ...part };
}

/** An executor that runs nothing, and notes what it was given. */
export class StageExecutor implements Executor {
  readonly type: SandboxType;
  readonly languages: ReadonlySet<Language>;
  readonly tasks: ExecutionTask[] = [];
  isDisposed = false;
  readonly #play: Play;

  constructor(type: SandboxType, play: Play = () => outcome(), languages: readonly Language[] = LANGUAGES) {
    this.type = type;
    this.#play = play;
    this.languages = new Set(languages);
  }

  async execute(task: ExecutionTask, { signal }: { readonly signal?: AbortSignal | undefined } = {}) {
    this.tasks.push(task);
    return await this.#play(task, signal);
  }

  async check(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
  }
}

/** Runs until it is aborted. */
export const forever: Play = async (_task, signal) => {
  const { promise, reject } = Promise.withResolvers<never>();
  signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  return await promise;
};

/** A manager whose code is as risky as its text says: "HIGH …". */
export function stage(options: Partial<SandboxManagerOptions> = {}): {
  manager: SandboxManager;
  events: ManagerEvent[];
} {
  const events: ManagerEvent[] = [];
  const manager = new SandboxManager({
    sessionId: "stage",
    executors: [new StageExecutor("fense")],
    assess: async (code) => ({ level: code.split(" ")[0] as RiskLevel, detected: [] }),
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { manager, events };
}

/** Answers by a function, with the hash of what it was shown unless that gives one. */
export function reviewer(
  answer: (request: ConfirmationRequest, signal: AbortSignal | undefined) => Promise<Partial<ConfirmationAnswer>>,
): ConfirmationService & { readonly asked: ConfirmationRequest[] } {
  const asked: ConfirmationRequest[] = [];
  return {
    asked,
    request: async (request, { signal } = {}) => {
      asked.push(request);
      return { decision: "approved", hash: requestHash(request), ...(await answer(request, signal)) };
    },
  };
}
