import type { FromLocalOptions, Sandbox } from "@agentfense/sdk";
import { type ExecutionOutcome, LANGUAGES, type Language } from "../../types.ts";
import type { ExecutionTask, Executor } from "../executor.ts";
import { openOnWorkspace, type WorkspaceSandboxOptions } from "../sandboxed/opening.ts";
import { SandboxRunner } from "../sandboxed/runner.ts";
import { GivenSandbox, KeptSandboxes } from "../sandboxed/sandbox-supply.ts";

/** In a sandbox that is there: it stays the caller's, and changes stay in it until he applies them. */
interface InSandbox {
  readonly sandbox: Sandbox;
}

/** In a sandbox of its own on a workspace, into which changes go after each execution. */
interface OnWorkspace extends WorkspaceSandboxOptions {
  readonly sandbox?: undefined;
  /** Default none. */
  readonly network?: FromLocalOptions["network"];
  /** Default: the engine's. */
  readonly runtime?: FromLocalOptions["runtime"];
  /** For the runtime "docker". */
  readonly image?: string | undefined;
}

export type FenseExecutorOptions = InSandbox | OnWorkspace;

/** Runs code in a sandbox with rules; on a workspace in one that is opened with the first execution, and kept. */
export class FenseExecutor implements Executor {
  readonly type = "fense";
  readonly languages: ReadonlySet<Language> = new Set(LANGUAGES);
  readonly #runner: SandboxRunner;

  constructor(options: FenseExecutorOptions) {
    this.#runner =
      options.sandbox === undefined
        ? new SandboxRunner(onWorkspace(options), { appliesChanges: true })
        : new SandboxRunner(new GivenSandbox(options.sandbox), { appliesChanges: false });
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

function onWorkspace(options: OnWorkspace): KeptSandboxes {
  const { image, network = "none", runtime, sandbox: _none, ...rest } = options;
  return new KeptSandboxes((signal) => openOnWorkspace(rest, { image, network, runtime }, signal));
}
