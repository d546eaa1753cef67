import { ExecutorError } from "../../errors.ts";
import type { ExecutionOutcome, Language } from "../../types.ts";
import type { AgentWorkspace } from "../../workspace/agent-workspace.ts";
import type { ExecutionTask, Executor } from "../executor.ts";
import { Life } from "../life.ts";
import { failedOutcome } from "../outcome.ts";
import { runPlan } from "../run-plan.ts";
import { checkTask, writeFiles } from "../task.ts";
import { commandLine, type Tools } from "./command-line.ts";
import { runProcess } from "./process.ts";
import { findProgram } from "./tools.ts";

export interface SubprocessExecutorOptions {
  readonly workspace: Pick<AgentWorkspace, "directory" | "writeFile">;
  /** Default 512 MiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** Of a file that the code writes; default 64 MiB. */
  readonly maxFileBytes?: number | undefined;
  /** Absolute, or looked for in /usr/local/bin, /usr/bin and /bin; default "python3". */
  readonly python?: string | undefined;
}

const MAX_MEMORY_BYTES = 512 * 1024 ** 2;
const MAX_FILE_BYTES = 64 * 1024 ** 2;

/**
 * Runs code that is SAFE in a process of this machine. Nothing isolates it: limits and missing privileges are all that
 * is between code that was misjudged and the machine. Everything that is not SAFE is refused, in every mode.
 */
export class SubprocessExecutor implements Executor {
  readonly type = "subprocess";
  readonly languages: ReadonlySet<Language> = new Set(["python", "javascript", "typescript"]);
  readonly #options: SubprocessExecutorOptions;
  readonly #life = new Life();

  constructor(options: SubprocessExecutorOptions) {
    this.#options = options;
  }

  async execute(
    task: ExecutionTask,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutionOutcome> {
    return await this.#life.during(options.signal, (signal) => this.#execute(task, signal));
  }

  async check(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    await this.#life.during(options.signal, async () => {
      await this.#guards();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#life.end(async () => {});
  }

  async #execute(task: ExecutionTask, signal: AbortSignal): Promise<ExecutionOutcome> {
    if (task.risk.level !== "SAFE") {
      throw new ExecutorError("REFUSED", `code that is ${task.risk.level} is not run without isolation`, {
        hint: "use an executor that isolates: fense, docker or aio",
      });
    }
    const { timeoutMs } = checkTask(task, this.languages);
    const { workspace, maxMemoryBytes = MAX_MEMORY_BYTES, maxFileBytes = MAX_FILE_BYTES } = this.#options;
    const plan = await runPlan(task.language, task.code, { signal });
    const tools = await this.#tools(task.language);
    await writeFiles(task, workspace, signal);
    if (plan.kind === "failed") return failedOutcome(plan.stderr);
    if (plan.kind === "line") throw new ExecutorError("INTERNAL", "there is no shell for a command line");
    const limits = {
      memoryBytes: maxMemoryBytes,
      fileBytes: maxFileBytes,
      // Node works with several threads.
      cpuSeconds: Math.ceil((timeoutMs * 4) / 1000) + 1,
    };
    return await runProcess({
      argv: commandLine(plan, { limits, tools, directory: workspace.directory }),
      stdin: plan.stdin,
      directory: workspace.directory,
      timeoutMs,
      signal,
    });
  }

  async #tools(language: Language): Promise<Tools> {
    const { python = "python3" } = this.#options;
    const guards = await this.#guards();
    const isPython = language === "python";
    return {
      ...guards,
      python: isPython ? await findProgram(python, "install Python 3, or name it with the option python") : "",
      node: process.execPath,
    };
  }

  /** Without them there are no limits, and then nothing is run. */
  async #guards(): Promise<Pick<Tools, "prlimit" | "setpriv">> {
    const hint = "install util-linux";
    const [prlimit, setpriv] = await Promise.all([findProgram("prlimit", hint), findProgram("setpriv", hint)]);
    return { prlimit, setpriv };
  }
}
