import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { ProcessExit, TerminalCommand, TerminalProcess, TerminalSize } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import { CommandTree, KILLED, startFailure } from "./command-tree.ts";
import type { ProcessHome } from "./container.ts";
import { type Engine, isStatus, whatFailed } from "./engine.ts";
import { describeExecFailure, type Exec, exitCodeOf } from "./exec.ts";
import { FrameScanner, firstLine, newSecrets, type Secrets } from "./frames.ts";
import { Outputs } from "./outputs.ts";
import { inputOf } from "./process.ts";
import { commandLine, TERMINAL_SCRIPT } from "./scripts.ts";

const RESIZE_ATTEMPTS = 50;
const RESIZE_PAUSE_MS = 20;

/** A command on a terminal the engine made. Both outputs are one stream; what comes before the command starts is ours. */
export class ContainerTerminal implements TerminalProcess {
  readonly input: Writable;
  readonly output: Readable;
  readonly exit: Promise<ProcessExit>;
  readonly #home: ProcessHome;
  readonly #exec: Exec;
  readonly #outputs: Outputs;
  readonly #scanner: FrameScanner;
  readonly #ready = Promise.withResolvers<void>();
  readonly #started = Promise.withResolvers<CommandTree>();
  readonly #exited = Promise.withResolvers<ProcessExit>();
  #complaint = "";
  #tree: CommandTree | undefined;
  #over = false;
  #killing: Promise<void> | undefined;

  private constructor(home: ProcessHome, exec: Exec, secrets: Secrets) {
    this.#home = home;
    this.#exec = exec;
    this.#scanner = new FrameScanner(secrets.mark);
    this.#outputs = new Outputs(exec.connection);
    this.output = this.#outputs.open();
    this.input = inputOf(exec);
    this.exit = this.#exited.promise;
    for (const promise of [this.exit, this.#ready.promise, this.#started.promise]) promise.catch(() => {});
    exec.connection.on("data", (chunk: Buffer) => this.#receive(chunk));
    exec.connection.on("error", () => {});
    exec.connection.on("close", () => void this.#disconnected());
    exec.connection.write(firstLine(secrets)); // the terminal's echo of it comes before the command starts
  }

  static async start(
    home: ProcessHome,
    command: TerminalCommand,
    signal: AbortSignal | undefined,
  ): Promise<ContainerTerminal> {
    const exec = await home.startExec(
      {
        commandLine: commandLine(TERMINAL_SCRIPT, { stdin: true, subreaper: home.subreaper }, command),
        env: command.env,
        stdin: true,
        terminal: true,
      },
      signal,
    );
    const terminal = new ContainerTerminal(home, exec, newSecrets());
    try {
      await terminal.#ready.promise;
      await terminal.resize(command.size);
      terminal.input.write("\n");
      await terminal.#started.promise;
      if (signal?.aborted) throw new SandboxError("CANCELLED", "the call was cancelled", { cause: signal.reason });
      return terminal;
    } catch (error) {
      if (terminal.#tree !== undefined) terminal.kill();
      else exec.connection.destroy(); // the script reads an end of file, and finds nobody to tell
      throw error;
    }
  }

  async resize(size: TerminalSize): Promise<void> {
    if (this.#over) return;
    await resizeExec(this.#home.engine, this.#exec.id, size);
  }

  kill(): void {
    this.#killing ??= this.#kill().catch((error: unknown) => {
      this.#home.log({ level: "error", message: `a terminal could not be killed: ${whatFailed(error)}` });
    });
  }

  /** Once the command runs nothing is a frame any more. */
  #receive(bytes: Buffer): void {
    if (this.#tree !== undefined) {
      this.#outputs.push(this.output, bytes);
      return;
    }
    for (const piece of this.#scanner.scan(bytes)) {
      if (piece.kind === "frame") this.#onFrame(piece.text);
      else if (this.#tree !== undefined) this.#outputs.push(this.output, piece.data);
      else this.#complaint += piece.data.toString("latin1");
    }
    if (this.#tree === undefined) return;
    const rest = this.#scanner.rest();
    if (rest.length > 0) this.#outputs.push(this.output, rest);
  }

  #onFrame(text: string): void {
    const [verb, ...rest] = text.split(" ");
    const failure = startFailure(verb);
    if (failure !== undefined) {
      this.#started.reject(failure);
    } else if (verb === "ready") {
      this.#ready.resolve();
    } else if (verb === "started" && this.#tree === undefined) {
      this.#tree = new CommandTree(this.#home, rest);
      this.#started.resolve(this.#tree);
    }
  }

  async #disconnected(): Promise<void> {
    this.#over = true;
    const failure = describeExecFailure(new Error(this.#complaint || "the connection was closed"), this.#complaint);
    this.#ready.reject(failure);
    this.#started.reject(failure);
    this.#outputs.end(this.output);
    try {
      const exitCode = (await exitCodeOf(this.#home.engine, this.#exec.id)) ?? KILLED;
      // Only a killed script leaves something behind.
      const aftermath = exitCode > 128 ? await this.#tree?.clearUp() : undefined;
      this.#exited.resolve({ exitCode, outOfMemory: aftermath?.outOfMemory ?? false });
    } catch (error) {
      this.#exited.reject(new SandboxError("INTERNAL", "the engine went away under a terminal", { cause: error }));
    }
  }

  async #kill(): Promise<void> {
    const tree = await this.#started.promise;
    await tree.kill({ exit: this.exit, isOver: () => this.#over, drain: () => this.#outputs.drain() });
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
