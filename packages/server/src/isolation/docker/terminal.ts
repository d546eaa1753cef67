import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { ProcessExit, TerminalCommand, TerminalProcess, TerminalSize } from "../backend/backend.ts";
import type { ProcessHome } from "./container.ts";
import { type Engine, isStatus } from "./engine.ts";
import type { Exec } from "./exec.ts";
import { ContainerProcess } from "./process.ts";
import { TERMINAL_SCRIPT } from "./scripts.ts";

const RESIZE_ATTEMPTS = 50;
const RESIZE_PAUSE_MS = 20;

/** A command on a terminal the engine made. Both outputs are one stream. */
export class ContainerTerminal implements TerminalProcess {
  readonly input: Writable;
  readonly output: Readable;
  readonly exit: Promise<ProcessExit>;
  readonly #process: ContainerProcess;
  readonly #resize: (size: TerminalSize) => Promise<void>;

  private constructor(process: ContainerProcess, resize: (size: TerminalSize) => Promise<void>) {
    this.#process = process;
    this.#resize = resize;
    this.input = process.stdin!;
    this.output = process.stderr;
    this.exit = process.exit;
  }

  static async start(
    home: ProcessHome,
    { argv, env, workdir, size }: TerminalCommand,
    signal: AbortSignal | undefined,
  ): Promise<ContainerTerminal> {
    let resize: (size: TerminalSize) => Promise<void> = async () => {};
    const prepareTerminal = async (exec: Exec) => {
      resize = (newSize) => resizeExec(home.engine, exec.id, newSize);
      await resize(size);
    };
    const command = { script: TERMINAL_SCRIPT, argv, env, workdir, stdin: true };
    return new ContainerTerminal(await ContainerProcess.start(home, command, { signal, prepareTerminal }), resize);
  }

  async resize(size: TerminalSize): Promise<void> {
    if (!this.#process.isOver) await this.#resize(size);
  }

  async signal(signalNumber: number): Promise<void> {
    await this.#process.signal(signalNumber);
  }

  kill(): void {
    this.#process.kill();
  }
}

/** The engine refuses for a moment after it said that the process runs. */
async function resizeExec(engine: Engine, execId: string, size: TerminalSize): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await engine.json({
        method: "POST",
        path: `/exec/${execId}/resize`,
        query: { h: String(size.rows), w: String(size.columns) },
      });
      return;
    } catch (error) {
      if (isStatus(error, 404, 409)) return; // it has ended
      if (!isStatus(error, 500) || attempt === RESIZE_ATTEMPTS) throw error;
      await delay(RESIZE_PAUSE_MS);
    }
  }
}
