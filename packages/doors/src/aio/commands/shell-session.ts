import type { Session } from "@agentfense/sdk";
import { shellWord } from "@agentfense/sdk/engine";
import type { Budget } from "../../budget.ts";
import { Refusal } from "../envelope.ts";
import { RunningCommand } from "./running-command.ts";

/** A shell with the command that it runs, or ran last. */
export class ShellSession {
  readonly workingDirectory: string;
  readonly createdAt: Date = new Date();
  lastUsedAt: Date = new Date();
  noChangeMs: number;
  readonly #session: Session;
  readonly #budget: Budget;
  #current: RunningCommand | undefined;
  #starting = false;

  constructor(
    session: Session,
    options: { readonly workingDirectory: string; readonly noChangeMs: number; readonly budget: Budget },
  ) {
    this.#session = session;
    this.#budget = options.budget;
    this.workingDirectory = options.workingDirectory;
    this.noChangeMs = options.noChangeMs;
  }

  get current(): RunningCommand | undefined {
    return this.#current;
  }

  get isBusy(): boolean {
    return this.#starting || this.#current?.isRunning === true;
  }

  /** Its shell has ended. */
  get isGone(): boolean {
    const state = this.#current?.state;
    return (
      this.#session.closed || state?.kind === "lost" || (state?.kind === "ended" && state.end.sessionClosed === true)
    );
  }

  async start(
    command: string,
    options: { readonly directory?: string | undefined; readonly timeoutMs: number },
  ): Promise<RunningCommand> {
    if (this.isBusy) {
      throw new Refusal("the session still runs a command", {
        status: 409,
        hint: "wait for it, kill it, or use a session of your own",
      });
    }
    this.#starting = true;
    try {
      if (options.directory !== undefined) await this.#enter(options.directory);
      const execution = await this.#session.stream(command, { timeoutMs: options.timeoutMs });
      this.#current?.release();
      const running = { events: execution, signal: () => execution.kill() };
      this.#current = new RunningCommand(command, running, { outputs: "together", budget: this.#budget });
      return this.#current;
    } finally {
      this.#starting = false;
    }
  }

  async close(): Promise<void> {
    await this.#current?.kill();
    this.#current?.release();
    await this.#session.close();
  }

  async #enter(directory: string): Promise<void> {
    const { exitCode } = await this.#session.exec(`cd -- ${shellWord(directory)}`);
    if (exitCode !== 0) throw new Refusal(`exec_dir cannot be entered: ${directory}`, { status: 400 });
  }
}
