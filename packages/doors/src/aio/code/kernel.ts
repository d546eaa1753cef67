import { type CodeContext, type CodeExecution, type Sandbox, SandboxError } from "@agentfense/sdk";
import { Refusal } from "../envelope.ts";

const TIME_MS = 30_000;

/** What a cell printed, showed and failed of, in the words of Jupyter. */
export interface CellOutput {
  readonly output_type: "stream" | "display_data" | "execute_result" | "error";
  readonly name?: string;
  readonly text?: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly metadata?: object;
  readonly execution_count?: number;
  readonly ename?: string;
  readonly evalue?: string;
  readonly traceback?: readonly string[];
}

export interface CellResult {
  readonly status: "ok" | "error" | "timeout";
  readonly executionCount: number | null;
  readonly outputs: readonly CellOutput[];
}

/** A Python that remembers: a code context of the sandbox. */
export class Kernel {
  lastUsedAt: Date = new Date();
  readonly #context: CodeContext;
  #isBusy = false;
  #isOver = false;

  static async open(sandbox: Sandbox, workingDirectory: string): Promise<Kernel> {
    try {
      return new Kernel(await sandbox.createCodeContext({ language: "python", workdir: workingDirectory }));
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== "PROGRAM_NOT_FOUND") throw error;
      throw new Refusal("there is no Python in this sandbox that could be started");
    }
  }

  private constructor(context: CodeContext) {
    this.#context = context;
  }

  get workingDirectory(): string {
    return this.#context.workdir;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Its interpreter is gone, and with it all that it knew. */
  get isOver(): boolean {
    return this.#isOver;
  }

  async run(code: string, { timeoutMs = TIME_MS }: { readonly timeoutMs: number | undefined }): Promise<CellResult> {
    if (this.#isBusy) throw new Refusal("the session still runs a cell", { status: 409 });
    this.#isBusy = true;
    try {
      const execution = await this.#context.run(code, { timeoutMs });
      if (execution.contextLost) {
        await this.close();
        throw new Refusal("the Python of this session has ended", {
          hint: "the next cell gets a new one, which knows nothing",
        });
      }
      const status = execution.timedOut ? "timeout" : execution.error === undefined ? "ok" : "error";
      return { status, executionCount: execution.executionCount, outputs: outputsOf(execution) };
    } catch (error) {
      if (error instanceof SandboxError) await this.close();
      throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#context.remove();
  }
}

function outputsOf({ stdout, stderr, results, error, executionCount }: CodeExecution): CellOutput[] {
  const streams = Object.entries({ stdout, stderr }).filter(([, text]) => text !== "");
  return [
    ...streams.map(([name, text]) => ({ output_type: "stream", name, text }) as const),
    ...results.map(
      ({ isMain, data }): CellOutput =>
        isMain
          ? { output_type: "execute_result", data, metadata: {}, execution_count: executionCount }
          : { output_type: "display_data", data, metadata: {} },
    ),
    ...(error === undefined
      ? []
      : [
          {
            output_type: "error",
            ename: error.name,
            evalue: error.value,
            traceback: error.traceback.split("\n"),
          } as const,
        ]),
  ];
}
