import { type ExecutionOutcome, LANGUAGES, type Language } from "../../types.ts";
import type { ExecutionTask, Executor } from "../executor.ts";
import { openOnWorkspace, type WorkspaceSandboxOptions } from "../sandboxed/opening.ts";
import { SandboxRunner } from "../sandboxed/runner.ts";
import { FreshSandboxes } from "../sandboxed/sandbox-supply.ts";

export interface DockerExecutorOptions extends WorkspaceSandboxOptions {
  /** Has the interpreters; default: the engine's. */
  readonly image?: string | undefined;
  /** What it runs; default: every language. The image must have the interpreters. */
  readonly languages?: readonly Language[] | undefined;
}

const MEMORY_BYTES = 512 * 1024 ** 2;
const PIDS = 256;

/** Runs each piece of code in a container of its own, without network, with a limit on memory and processes. */
export class DockerExecutor implements Executor {
  readonly type = "docker";
  readonly languages: ReadonlySet<Language>;
  readonly #runner: SandboxRunner;

  constructor(options: DockerExecutorOptions) {
    const { image, languages = LANGUAGES, ...rest } = options;
    const resources = { memoryBytes: MEMORY_BYTES, pidsLimit: PIDS };
    const fixed = { runtime: "docker", network: "none", image, resources } as const;
    this.languages = new Set(languages);
    this.#runner = new SandboxRunner(new FreshSandboxes((signal) => openOnWorkspace(rest, fixed, signal)), {
      appliesChanges: true,
    });
  }

  async execute(
    task: ExecutionTask,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ExecutionOutcome> {
    return await this.#runner.execute(task, this.languages, options.signal);
  }

  async check(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    await this.#runner.check(options.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#runner[Symbol.asyncDispose]();
  }
}
