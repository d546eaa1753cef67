import { ExecutorError } from "../../errors.ts";
import type { ExecutionOutcome, Language } from "../../types.ts";
import type { AgentWorkspace } from "../../workspace/agent-workspace.ts";
import { type ExecutionTask, type Executor, failedOutcome } from "../executor.ts";
import { type RunPlan, runPlan } from "../run-plan.ts";
import { RunningExecutions } from "../running-executions.ts";
import { checkTask, writeFiles } from "../task.ts";
import { boxed, environment } from "./box.ts";
import { type ProcessPlan, runProcess } from "./process.ts";
import { ownNode, type Program, systemProgram } from "./programs.ts";

export interface SubprocessExecutorOptions {
  readonly workspace: Pick<AgentWorkspace, "directory" | "writeFile">;
  /**
   * | isolation         | code runs                                                                  |
   * | ----------------- | -------------------------------------------------------------------------- |
   * | absent, `"bwrap"` | in a box; refused where none can be made, or where there is no syscallFilter |
   * | `"none"`          | on this machine as this user, within the limits and nothing else           |
   */
  readonly isolation?: "bwrap" | "none" | undefined;
  /** What code in the box may ask the kernel for, as `bwrap --seccomp` reads it. `agentfense/agent` brings one. */
  readonly syscallFilter?: Uint8Array | undefined;
  /** Default 512 MiB. */
  readonly maxMemoryBytes?: number | undefined;
  /** The largest file that the code may write; default 64 MiB. */
  readonly maxFileBytes?: number | undefined;
  /** Absolute, or looked for in /usr/local/bin, /usr/bin and /bin; default "python3". */
  readonly python?: string | undefined;
}

const MAX_MEMORY_BYTES = 512 * 1024 ** 2;
const MAX_FILE_BYTES = 64 * 1024 ** 2;
const CHECK_MS = 10_000;

/**
 * Runs code that is SAFE in a process of its own, in a box without network on the workspace's directory. There are no
 * rules, no quota and no control group as a sandbox has them, so everything that is not SAFE is refused, in every mode.
 */
export class SubprocessExecutor implements Executor {
  readonly type = "subprocess";
  readonly languages: ReadonlySet<Language> = new Set(["python", "javascript", "typescript"]);
  readonly #options: SubprocessExecutorOptions;
  readonly #running = new RunningExecutions();

  constructor(options: SubprocessExecutorOptions) {
    this.#options = options;
  }

  async execute(
    task: ExecutionTask,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutionOutcome> {
    return await this.#running.during(options.signal, (signal) => this.#execute(task, signal));
  }

  async check(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    await this.#running.during(options.signal, async (signal) => {
      const prlimit = await limitProgram();
      const place = await this.#place([prlimit[this.#side], "--version"], [prlimit]);
      await runProcess({ ...place, stdin: "", timeoutMs: CHECK_MS, signal });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.end(async () => {});
  }

  async #execute(task: ExecutionTask, signal: AbortSignal): Promise<ExecutionOutcome> {
    if (task.risk.level !== "SAFE") {
      throw new ExecutorError("REFUSED", `code that is ${task.risk.level} is not run without a sandbox`, {
        hint: "use an executor that has one: fense, docker or aio",
      });
    }
    const { timeoutMs } = checkTask(task, this.languages);
    const { workspace, maxMemoryBytes = MAX_MEMORY_BYTES, maxFileBytes = MAX_FILE_BYTES } = this.#options;
    const plan = await runPlan(task.language, task.code, { signal });
    const [prlimit, interpreter] = await Promise.all([limitProgram(), this.#interpreter(task.language)]);
    await writeFiles(task, workspace, signal);
    if (plan.kind === "failed") return failedOutcome(plan.stderr);
    if (plan.kind === "line") throw new ExecutorError("INTERNAL", "there is no shell for a command line");
    const limits = {
      memoryBytes: maxMemoryBytes,
      fileBytes: maxFileBytes,
      // Node works with several threads.
      cpuSeconds: Math.ceil((timeoutMs * 4) / 1000) + 1,
    };
    const paths = { prlimit: prlimit[this.#side], interpreter: interpreter[this.#side] };
    const place = await this.#place(commandLine(plan, { ...paths, limits }), [prlimit, interpreter]);
    return await runProcess({ ...place, stdin: plan.stdin, timeoutMs, signal });
  }

  /** Which of a program's paths is the one where code runs. */
  get #side(): "inside" | "path" {
    return this.#options.isolation === "none" ? "path" : "inside";
  }

  /** How a command is started where it is to run. */
  async #place(
    command: readonly [string, ...string[]],
    programs: readonly Program[],
  ): Promise<Pick<ProcessPlan, "argv" | "env" | "directory" | "syscallFilter">> {
    const { syscallFilter, workspace } = this.#options;
    const { directory } = workspace;
    if (this.#side === "path") {
      return { argv: command, env: environment(directory), directory, syscallFilter: undefined };
    }
    if (syscallFilter === undefined) {
      throw new ExecutorError("UNAVAILABLE", "there is no system-call filter for the box", {
        hint: "take SubprocessExecutor from agentfense/agent, which has one, or give it the option syscallFilter",
      });
    }
    return { argv: await boxed(command, { directory, programs }), env: {}, directory, syscallFilter };
  }

  async #interpreter(language: Language): Promise<Program> {
    const { python = "python3" } = this.#options;
    if (language !== "python") return await ownNode();
    return await systemProgram(python, "install Python 3, or name it with the option python");
  }
}

/** Without it there are no limits, and then nothing is run. */
async function limitProgram(): Promise<Program> {
  return await systemProgram("prlimit", "install util-linux");
}

/** What a program may use. */
export interface SubprocessLimits {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
  readonly fileBytes: number;
}

type ProgramPlan = RunPlan & { readonly kind: "program" };

/** V8 reserves the room for its code as if it were used, and its threads have stacks. */
const NODE_EXTRA_BYTES = 640 * 1024 ** 2;
const OPEN_FILES = 256;

/** The command line of an interpreter within its limits, with nothing of the workspace that changes what it imports. */
function commandLine(
  plan: ProgramPlan,
  options: { readonly prlimit: string; readonly interpreter: string; readonly limits: SubprocessLimits },
): readonly [string, ...string[]] {
  const { interpreter, limits, prlimit } = options;
  const isPython = plan.argv[0] === "python3";
  const values = {
    // Memory is what is written to: `--as` would count what Node only reserves.
    data: limits.memoryBytes + (isPython ? 0 : NODE_EXTRA_BYTES),
    cpu: limits.cpuSeconds,
    fsize: limits.fileBytes,
    nofile: OPEN_FILES,
    core: 0,
    // The kernel counts all processes and threads of the user: any limit is a limit to none. Not for root.
    ...(isPython ? { nproc: 1 } : {}),
  };
  const flags = isPython ? PYTHON_FLAGS : [heapFlag(limits), ...plan.argv.slice(1)];
  return [prlimit, ...Object.entries(values).map(([name, value]) => `--${name}=${value}`), "--", interpreter, ...flags];
}

/** Isolated: no variables, no directory of the user or of the workspace, no packages. */
const PYTHON_FLAGS = ["-I", "-S", "-B", "-u", "-X", "utf8", "-"];

function heapFlag({ memoryBytes }: SubprocessLimits): string {
  return `--max-old-space-size=${Math.floor(memoryBytes / 2 ** 20)}`;
}
