import { randomUUID } from "node:crypto";
import { type CommandEnd, type CommandEvent, type ProcessEnd, type ProcessEvent, SandboxError } from "@agentfense/sdk";
import type { Budget } from "../../budget.ts";
import { OutputText } from "./output-text.ts";

/** Kept of each output. */
const OUTPUT_CHARACTERS = 1024 * 1024;

type CommandState =
  | { readonly kind: "running" }
  | { readonly kind: "ended"; readonly end: ProcessEnd & Partial<CommandEnd>; readonly killed: boolean }
  /** It could not be started, or the server lost it. */
  | { readonly kind: "lost"; readonly error: unknown };

/** A command of a shell, or a process. */
export interface Running {
  readonly events: AsyncIterable<CommandEvent | ProcessEvent>;
  /** Absent: it reads no input. */
  write?(input: string): Promise<void>;
  signal(signal: string): Promise<unknown>;
}

/** A command and what it prints, for whoever asks. It goes on when nobody does. */
export class RunningCommand {
  readonly id: string = randomUUID();
  readonly command: string;
  readonly stdout: OutputText;
  readonly stderr: OutputText;
  /** Never rejects. */
  readonly done: Promise<void>;
  readonly #running: Running;
  #state: CommandState = { kind: "running" };
  #killed = false;
  #writing = false;
  #news = Promise.withResolvers<void>();

  constructor(
    command: string,
    running: Running,
    { outputs, budget }: { readonly outputs: "apart" | "together"; readonly budget: Budget },
  ) {
    this.command = command;
    this.stdout = new OutputText(OUTPUT_CHARACTERS, budget);
    this.#running = running;
    this.stderr = outputs === "apart" ? new OutputText(OUTPUT_CHARACTERS, budget) : this.stdout;
    this.done = this.#follow();
  }

  get state(): CommandState {
    return this.#state;
  }

  get isRunning(): boolean {
    return this.#state.kind === "running";
  }

  /** How much of it is in memory. */
  get size(): number {
    return this.stdout.length + this.stderr.length;
  }

  /** Resolves with the next output, or at the end. */
  get news(): Promise<void> {
    return this.isRunning ? this.#news.promise : Promise.resolve();
  }

  /** Resolves to false when a former input is still on its way, or there is none to be had: nothing was sent. */
  async write(input: string): Promise<boolean> {
    if (this.#writing || this.#running.write === undefined) return false;
    this.#writing = true;
    // A command that does not read keeps it waiting, which is nobody's failure.
    const sent = this.#running.write(input).finally(() => {
      this.#writing = false;
    });
    await Promise.race([sent, this.news]);
    sent.catch(() => {});
    return true;
  }

  /** What it makes of a signal is its own. */
  async signal(name: string): Promise<void> {
    if (!this.isRunning) return;
    this.#killed = true;
    await this.#running.signal(name);
  }

  async kill(): Promise<void> {
    await this.signal("SIGKILL");
    await this.done;
  }

  /** Lets go of a command that is over: nobody will ask for it any more. */
  release(): void {
    this.stdout.release();
    this.stderr.release();
  }

  async #follow(): Promise<void> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    try {
      for await (const event of this.#running.events) {
        if (event.kind === "exit") {
          this.#state = { kind: "ended", end: event.end, killed: this.#killed };
          continue;
        }
        const stream = event.kind === "stderr" ? "stderr" : "stdout";
        this[stream].append(decoders[stream].decode(event.data, { stream: true }));
        this.#ring();
      }
    } catch (error) {
      this.#state = { kind: "lost", error };
    }
    if (this.isRunning) {
      const error = new SandboxError("the command ended without saying how", { code: "UNKNOWN" });
      this.#state = { kind: "lost", error };
    }
    this.#ring();
  }

  #ring(): void {
    const heard = this.#news;
    this.#news = Promise.withResolvers();
    heard.resolve();
  }
}
