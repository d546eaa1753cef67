import { type Sandbox, SandboxError, type Session } from "@agentfense/sdk";
import { z } from "zod";
import { Refusal } from "../envelope.ts";
import { KERNEL_CLIENT, KERNEL_DRIVER, KERNEL_START } from "./kernel-programs.ts";

/** One line of a shell takes 128 KiB. */
const CHUNK = 96 * 1024;

const outputShape = z.object({
  output_type: z.string(),
  name: z.string().optional(),
  text: z.string().optional(),
  data: z.record(z.string(), z.string()).optional(),
  metadata: z.object({}).optional(),
  execution_count: z.number().optional(),
  ename: z.string().optional(),
  evalue: z.string().optional(),
  traceback: z.array(z.string()).optional(),
});

const answerShape = z.object({
  status: z.enum(["ok", "error"]),
  execution_count: z.number(),
  outputs: z.array(outputShape).max(16),
});

export interface CellResult {
  readonly status: "ok" | "error" | "timeout";
  readonly executionCount: number | null;
  readonly outputs: readonly z.output<typeof outputShape>[];
}

/** A Python that remembers, in a shell of its own. */
export class Kernel {
  lastUsedAt: Date = new Date();
  readonly workingDirectory: string;
  readonly #session: Session;
  #isBusy = false;
  #isOver = false;

  static async open(sandbox: Sandbox, workingDirectory: string): Promise<Kernel> {
    const env = { AIO_DRIVER: KERNEL_DRIVER, AIO_CLIENT: KERNEL_CLIENT };
    const session = await sandbox.session({ workdir: workingDirectory, env });
    const { exitCode } = await session.exec(KERNEL_START);
    if (exitCode === 0) return new Kernel(session, workingDirectory);
    await session.close();
    throw new Refusal("there is no Python in this sandbox that could be started");
  }

  private constructor(session: Session, workingDirectory: string) {
    this.#session = session;
    this.workingDirectory = workingDirectory;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Its time was up, or its shell is gone; and with it all that it knew. */
  get isOver(): boolean {
    return this.#isOver;
  }

  async run(code: string, { timeoutMs }: { readonly timeoutMs: number | undefined }): Promise<CellResult> {
    if (this.#isBusy) throw new Refusal("the session still runs a cell", { status: 409 });
    this.#isBusy = true;
    try {
      await this.#put(code);
      const { timedOut, stdout, truncated } = await this.#session.exec('python3 -c "$AIO_CLIENT"', { timeoutMs });
      if (timedOut) {
        await this.close();
        return { status: "timeout", executionCount: null, outputs: [] };
      }
      return await this.#answer(truncated ? "" : stdout);
    } catch (error) {
      if (error instanceof SandboxError) await this.close();
      throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#session.close();
  }

  async #put(code: string): Promise<void> {
    const packed = Buffer.from(code).toString("base64");
    await this.#session.exec(': > "$AIO_PLACE/code"');
    // A multiple of four characters is a multiple of three bytes: each piece can be unpacked by itself.
    for (let at = 0; at < packed.length; at += CHUNK) {
      const piece = packed.slice(at, at + CHUNK);
      await this.#session.exec(`printf %s '${piece}' | base64 -d >> "$AIO_PLACE/code"`, { check: true });
    }
  }

  async #answer(line: string): Promise<CellResult> {
    const { data } = z.preprocess(parsed, answerShape).safeParse(line);
    if (data !== undefined) return { status: data.status, executionCount: data.execution_count, outputs: data.outputs };
    // Code that ended its interpreter, or answered in its place.
    await this.close();
    throw new Refusal("the Python of this session has ended", {
      hint: "the next cell gets a new one, which knows nothing",
    });
  }
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}
