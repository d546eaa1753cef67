import type { Sandbox } from "@agentfense/sdk";
import type { Budget } from "../../budget.ts";
import { signalIfItLives } from "../../processes.ts";
import { Refusal } from "../envelope.ts";
import { RunningCommand } from "./running-command.ts";

const MOST_RUNNING = 8;
/** How many commands that are over are kept; and what they may take together, in characters. */
const MOST_KEPT = 16;
const MOST_KEPT_CHARACTERS = 4 * 1024 * 1024;

interface BashRequest {
  readonly command: string;
  readonly directory?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
}

/** Commands that have nothing in common but their directory. */
export class BashSession {
  readonly workingDirectory: string;
  readonly createdAt: Date = new Date();
  lastUsedAt: Date = new Date();
  readonly #budget: Budget;
  readonly #commands = new Map<string, RunningCommand>();
  #starting = 0;
  #count = 0;

  constructor(workingDirectory: string, budget: Budget) {
    this.workingDirectory = workingDirectory;
    this.#budget = budget;
  }

  get isBusy(): boolean {
    return this.#starting > 0 || this.running.length > 0;
  }

  get running(): readonly RunningCommand[] {
    return [...this.#commands.values()].filter(({ isRunning }) => isRunning);
  }

  get latest(): RunningCommand | undefined {
    return [...this.#commands.values()].at(-1);
  }

  /** How many were started. */
  get count(): number {
    return this.#count;
  }

  find(id: string | undefined): RunningCommand {
    const command = id === undefined ? this.latest : this.#commands.get(id);
    if (command !== undefined) return command;
    throw new Refusal(id === undefined ? "the session has run nothing yet" : `command not found: ${id}`, {
      status: 404,
    });
  }

  async start(sandbox: Sandbox, request: BashRequest): Promise<RunningCommand> {
    if (this.#starting + this.running.length >= MOST_RUNNING) {
      throw new Refusal(`the session runs ${MOST_RUNNING} commands already`, { status: 429, hint: "kill one first" });
    }
    this.#starting += 1;
    try {
      const { command, directory = this.workingDirectory, env, timeoutMs } = request;
      const process = await sandbox.spawn(command, { workdir: directory, env, timeoutMs, stdin: true });
      const made = {
        events: process.output(),
        write: (input: string) => process.write(input),
        signal: (name: string) => signalIfItLives(process, name),
      };
      const running = new RunningCommand(command, made, { outputs: "apart", budget: this.#budget });
      this.#commands.set(running.id, running);
      this.#count += 1;
      this.#forgetOld();
      return running;
    } finally {
      this.#starting -= 1;
    }
  }

  /** What they printed can still be asked for. */
  async signal(name: string): Promise<void> {
    const { running } = this;
    await Promise.all(running.map((command) => command.signal(name)));
    // Nothing survives that, and who asks next is to be told so.
    if (name === "SIGKILL") await Promise.all(running.map(({ done }) => done));
  }

  async close(): Promise<void> {
    await this.signal("SIGKILL");
    for (const command of this.#commands.values()) command.release();
  }

  /** The oldest that are over make room. The newest one is kept in any case. */
  #forgetOld(): void {
    const over = [...this.#commands.values()].filter(({ isRunning }) => !isRunning);
    let size = over.reduce((sum, command) => sum + command.size, 0);
    for (const [at, command] of over.entries()) {
      if (over.length - at <= MOST_KEPT && size <= MOST_KEPT_CHARACTERS) return;
      this.#commands.delete(command.id);
      size -= command.size;
      command.release();
    }
  }
}
