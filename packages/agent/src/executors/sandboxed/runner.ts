import {
  type ApplyOutcome,
  AuthenticationError,
  type Command,
  ConnectionError,
  InvalidConfigurationError,
  PermissionDeniedError,
  ResourceLimitExceededError,
  type RunResult,
  RuntimeUnavailableError,
  type Sandbox,
  SandboxError,
  SandboxNotFoundError,
  SandboxNotRunningError,
} from "@agentfense/sdk";
import { ExecutorError } from "../../errors.ts";
import type { ExecutionOutcome, Language } from "../../types.ts";
import { Gate } from "../../workspace/gate.ts";
import { SandboxWorkspace } from "../../workspace/sandbox-workspace.ts";
import { limitedText } from "../collected-output.ts";
import { type ExecutionTask, failedOutcome } from "../executor.ts";
import { type RunPlan, runPlan } from "../run-plan.ts";
import { RunningExecutions } from "../running-executions.ts";
import { checkTask, writeFiles } from "../task.ts";
import { KeptContexts } from "./kept-contexts.ts";
import type { SandboxSupply } from "./sandbox-supply.ts";

/** What a shell says when there is no such program. */
const NOT_FOUND_EXIT_CODE = 127;

/** Runs tasks in sandboxes, wherever these come from. */
export class SandboxRunner implements AsyncDisposable {
  readonly #running = new RunningExecutions();
  readonly #supply: SandboxSupply;
  readonly #contexts = new KeptContexts();
  readonly #appliesChanges: boolean;
  /** One at a time writes into the directory. */
  readonly #applying = new Gate(1);

  constructor(supply: SandboxSupply, options: { readonly appliesChanges: boolean }) {
    this.#supply = supply;
    this.#appliesChanges = options.appliesChanges;
  }

  async execute(
    task: ExecutionTask,
    languages: ReadonlySet<Language>,
    signal: AbortSignal | undefined,
  ): Promise<ExecutionOutcome> {
    return await this.#running.during(signal, async (either) => {
      // What can be refused is, before there is a sandbox.
      const { timeoutMs } = checkTask(task, languages, { keepsState: this.#supply.isOne });
      if (task.keepsState === true) {
        return await this.#use(either, async (sandbox) => {
          await writeFiles(task, new SandboxWorkspace(sandbox), either);
          return await this.#contexts.run(sandbox, task, { timeoutMs, signal: either });
        });
      }
      const plan = await runPlan(task.language, task.code, { signal: either });
      const hasFiles = Object.keys(task.files ?? {}).length > 0;
      if (plan.kind === "failed" && !hasFiles) return failedOutcome(plan.stderr);
      return await this.#use(either, async (sandbox) => {
        await writeFiles(task, new SandboxWorkspace(sandbox), either);
        const outcome =
          plan.kind === "failed"
            ? failedOutcome(plan.stderr)
            : outcomeOf(await runPlanned(sandbox, plan, { timeoutMs, env: task.env, signal: either }));
        if (!this.#appliesChanges) return outcome;
        return withNotes(outcome, await this.#applying.pass(() => applyChanges(sandbox)));
      });
    });
  }

  async check(signal: AbortSignal | undefined): Promise<void> {
    await this.#running.during(signal, (either) =>
      this.#use(either, async (sandbox) => {
        const { exitCode } = await sandbox.run(["true"], { signal: either });
        if (exitCode !== 0) throw new ExecutorError("UNAVAILABLE", "the sandbox runs nothing");
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.end(async () => {
      await this.#contexts[Symbol.asyncDispose]();
      await this.#supply[Symbol.asyncDispose]();
    });
  }

  async #use<T>(signal: AbortSignal, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    try {
      return await this.#supply.use(signal, work);
    } catch (error) {
      signal.throwIfAborted();
      throw executorFailure(error);
    }
  }
}

/** The code has run, whatever stays behind of what it changed. */
function withNotes(outcome: ExecutionOutcome, notes: readonly string[]): ExecutionOutcome {
  const { stderr } = outcome;
  const separator = notes.length === 0 || stderr === "" || stderr.endsWith("\n") ? "" : "\n";
  return { ...outcome, stderr: `${stderr}${separator}${notes.map((note) => `agentfense: ${note}\n`).join("")}` };
}

interface RunOptions {
  readonly timeoutMs: number;
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
}

async function runPlanned(
  sandbox: Sandbox,
  plan: RunPlan & { readonly kind: "program" | "line" },
  options: RunOptions,
): Promise<RunResult> {
  if (plan.kind === "line") return await runOnce(sandbox, plan.line, { ...options, stdin: "" });
  const result = await runOnce(sandbox, plan.argv, { ...options, stdin: plan.stdin });
  if (result.exitCode === NOT_FOUND_EXIT_CODE) await expectProgram(sandbox, plan.argv[0], options.signal);
  return result;
}

/** Who is told that nothing was run may try elsewhere; that is not known when the connection breaks meanwhile. */
async function runOnce(
  sandbox: Sandbox,
  command: Command,
  options: RunOptions & { readonly stdin: string },
): Promise<RunResult> {
  try {
    return await sandbox.run(command, options);
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new ExecutorError("INTERNAL", "the connection to the sandbox broke, and the code may have run", {
      cause: error,
    });
  }
}

/** The code may end like this by itself, so it is looked at whether the interpreter is really missing. */
async function expectProgram(sandbox: Sandbox, program: string, signal: AbortSignal): Promise<void> {
  const { exitCode } = await sandbox.run(["sh", "-c", 'command -v "$1"', "sh", program], { signal });
  if (exitCode === 0) return;
  throw new ExecutorError("UNAVAILABLE", `there is no ${program} in the sandbox`, {
    hint: "install it where the sandboxes run, or take an image that has it",
  });
}

function outcomeOf(result: RunResult): ExecutionOutcome {
  const stdout = limitedText(result.stdoutBytes);
  const stderr = limitedText(result.stderrBytes);
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    exitCode: result.exitCode,
    timedOut: result.timedOut,
    outOfMemory: result.outOfMemory,
    truncated: result.truncated || stdout.isTruncated || stderr.isTruncated,
    durationMs: result.durationMs,
  };
}

const NOTES_AT_MOST = 20;

/**
 * Writes what a sandbox changed into its directory, and undoes what stays behind: afterwards the sandbox shows what the
 * directory has. Gives a line for each change that was undone, with the reason.
 */
async function applyChanges(sandbox: Sandbox): Promise<readonly string[]> {
  const left = (await applied(sandbox)).filter((outcome) => !outcome.applied);
  if (left.length === 0) return [];
  await sandbox.discard();
  const notes = left
    .slice(0, NOTES_AT_MOST)
    .map(({ change, reason }) => `${JSON.stringify(change.path)} was not written into the workspace: ${reason}`);
  return left.length > NOTES_AT_MOST ? [...notes, `and ${left.length - NOTES_AT_MOST} more were not`] : notes;
}

async function applied(sandbox: Sandbox): Promise<readonly ApplyOutcome[]> {
  try {
    return (await sandbox.apply()).outcomes;
  } catch (error) {
    const message = "the code ran, but what it changed could not be written into the workspace";
    throw new ExecutorError("INTERNAL", message, { cause: error });
  }
}

const UNAVAILABLE = [
  AuthenticationError,
  ConnectionError,
  InvalidConfigurationError,
  PermissionDeniedError,
  ResourceLimitExceededError,
  RuntimeUnavailableError,
  SandboxNotFoundError,
  SandboxNotRunningError,
];

/** What went wrong with a sandbox, in the words of executors. */
function executorFailure(error: unknown): unknown {
  if (!(error instanceof SandboxError)) return error;
  const code = UNAVAILABLE.some((kind) => error instanceof kind) ? "UNAVAILABLE" : "INTERNAL";
  return new ExecutorError(code, `the sandbox cannot be used: ${error.message}`, { cause: error, hint: error.hint });
}
