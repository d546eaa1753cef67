import { setTimeout as sleep } from "node:timers/promises";
import { type ProcessEvent, type Sandbox, SandboxError, type SandboxProcess } from "@agentfense/sdk";
import { signalIfItLives } from "../../processes.ts";
import * as shape from "../../shape.ts";
import { Refusal } from "../envelope.ts";
import { KERNEL_DRIVER } from "./kernel-program.ts";

/** More than the largest answer that the driver gives. */
const LONGEST_ANSWER = 32 * 1024 * 1024;
const TIME_MS = 30_000;

const outputShape = shape.object({
  output_type: shape.string(),
  name: shape.string().optional(),
  text: shape.string().optional(),
  data: shape.record(shape.string()).optional(),
  metadata: shape.object({}).optional(),
  execution_count: shape.number().optional(),
  ename: shape.string().optional(),
  evalue: shape.string().optional(),
  traceback: shape.list(shape.string()).optional(),
});

const answerShape = shape.object({
  status: shape.oneOf(["ok", "error"]),
  execution_count: shape.number(),
  outputs: shape.list(outputShape).max(16),
});

export interface CellResult {
  readonly status: "ok" | "error" | "timeout";
  readonly executionCount: number | null;
  readonly outputs: readonly shape.Value<typeof outputShape>[];
}

/** A Python that remembers: a process that reads cells as lines, and answers each with a line. */
export class Kernel {
  lastUsedAt: Date = new Date();
  readonly workingDirectory: string;
  readonly #process: SandboxProcess;
  readonly #lines: AsyncGenerator<string, void, undefined>;
  #isBusy = false;
  #isOver = false;

  static async open(sandbox: Sandbox, workingDirectory: string): Promise<Kernel> {
    const command = ["python3", "-u", "-B", "-c", KERNEL_DRIVER] as const;
    try {
      const process = await sandbox.spawn(command, { workdir: workingDirectory, stdin: true });
      return new Kernel(process, linesOf(await process.attach()), workingDirectory);
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== "PROGRAM_NOT_FOUND") throw error;
      throw new Refusal("there is no Python in this sandbox that could be started");
    }
  }

  private constructor(
    process: SandboxProcess,
    lines: AsyncGenerator<string, void, undefined>,
    workingDirectory: string,
  ) {
    this.#process = process;
    this.#lines = lines;
    this.workingDirectory = workingDirectory;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Its time was up, or its process is gone; and with it all that it knew. */
  get isOver(): boolean {
    return this.#isOver;
  }

  async run(code: string, { timeoutMs = TIME_MS }: { readonly timeoutMs: number | undefined }): Promise<CellResult> {
    if (this.#isBusy) throw new Refusal("the session still runs a cell", { status: 409 });
    this.#isBusy = true;
    const answered = new AbortController();
    try {
      const late = sleep(timeoutMs, "late" as const, { signal: answered.signal });
      late.catch(() => {}); // the answer came first
      const answer = await Promise.race([this.#ask(code), late]);
      if (answer !== "late") return answer;
      await this.close();
      return { status: "timeout", executionCount: null, outputs: [] };
    } catch (error) {
      if (error instanceof SandboxError) await this.close();
      throw error;
    } finally {
      answered.abort();
      this.#isBusy = false;
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await signalIfItLives(this.#process, "SIGKILL");
  }

  async #ask(code: string): Promise<CellResult> {
    await this.#process.write(`${JSON.stringify(code)}\n`);
    const line = await this.#lines.next();
    const problems: shape.Problem[] = [];
    const data = answerShape.read(parsed(line.value ?? ""), [], problems);
    if (problems.length === 0) {
      return { status: data.status, executionCount: data.execution_count, outputs: data.outputs };
    }
    // Code that ended its interpreter, or answered in its place.
    await this.close();
    throw new Refusal("the Python of this session has ended", {
      hint: "the next cell gets a new one, which knows nothing",
    });
  }
}

async function* linesOf(events: AsyncIterable<ProcessEvent>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const event of events) {
    if (event.kind !== "stdout") continue;
    const lines = (rest + decoder.decode(event.data, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (rest.length > LONGEST_ANSWER) return;
    yield* lines;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
