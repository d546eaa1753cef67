import { type Readable, Writable } from "node:stream";
import type { BoxProcess, ChannelState, ProcessExit } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import { CommandTree, KILLED, startFailure } from "./command-tree.ts";
import type { ProcessHome } from "./container.ts";
import { whatFailed } from "./engine.ts";
import { describeExecFailure, type Exec, exitCodeOf, settledWithin } from "./exec.ts";
import { commandLine } from "./scripts.ts";
import {
  Demultiplexer,
  FrameScanner,
  firstLine,
  newSecrets,
  type OutputName,
  Outputs,
  type Piece,
  type Secrets,
} from "./streams.ts";
import type { Warden } from "./warden.ts";

/** More in one stream than in the other can only be forged. */
const MOST_STATUSES = 1000;
/** How long a command that nobody wants any more may take to say that it has started: its script has nothing else to do. */
const START_MS = 5_000;
/** So much output does not overtake the frame which says that the command has started. */
const MOST_EARLY_BYTES = 32 * 1024 ** 2;
/** What an engine says instead of starting a process is no longer. */
const LONGEST_COMPLAINT = 4096;

export interface ProcessCommand {
  readonly script: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly stdin: boolean;
}

/** Hears what the script of a session's shell has to say. */
export interface ShellListener {
  onShell(pid: number): void;
  onStatus(line: string): void;
}

export interface ProcessOptions {
  readonly signal?: AbortSignal | undefined;
  readonly listener?: ShellListener;
  /** For a command on a terminal, whose one output is `stderr`: makes it ready before the command starts. */
  readonly prepareTerminal?: (exec: Exec) => Promise<void>;
}

/** One command, below a docker-init of its own (see scripts.ts), until it has ended: what it leaves is then its home's. */
export class ContainerProcess implements BoxProcess {
  readonly stdin?: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly exit: Promise<ProcessExit>;
  readonly #home: ProcessHome;
  readonly #exec: Exec;
  readonly #seal: string;
  readonly outputs: Outputs;
  readonly #scanners: Record<OutputName, FrameScanner>;
  /** The streams that have not come to their end. */
  readonly #open: Set<OutputName>;
  readonly #statuses: Record<OutputName, string[]> = { stdout: [], stderr: [] };
  readonly #options: ProcessOptions;
  readonly #started = Promise.withResolvers<CommandTree>();
  readonly #exited = Promise.withResolvers<ProcessExit>();
  /** What overtook the frame which says that the command has started, or what the engine said instead. */
  readonly #early: { readonly name: OutputName; readonly piece: Piece }[] = [];
  #earlyBytes = 0;
  #isHopeless = false;
  /** The terminal that it waits for. */
  #prepareTerminal: ProcessOptions["prepareTerminal"];
  /** That of the container in which it was started. */
  readonly #warden: Warden;
  #tree: CommandTree | undefined;
  #over = false;
  #killing: Promise<void> | undefined;

  private constructor(
    home: ProcessHome,
    exec: Exec,
    { secrets, stdin, ...options }: ProcessOptions & { secrets: Secrets; stdin: boolean },
  ) {
    const { mark, seal } = secrets;
    this.#home = home;
    this.#warden = home.warden;
    this.#prepareTerminal = options.prepareTerminal;
    this.#exec = exec;
    this.#options = options;
    this.#seal = seal;
    this.#scanners = { stdout: new FrameScanner(mark), stderr: new FrameScanner(mark) };
    this.outputs = new Outputs(exec.connection);
    this.stdout = this.outputs.open();
    this.stderr = this.outputs.open();
    if (stdin) this.stdin = inputOf(exec);
    this.exit = this.#exited.promise;
    this.exit.catch(() => {});
    this.#started.promise.catch(() => {});
    const isTerminal = options.prepareTerminal !== undefined;
    this.#open = new Set(isTerminal ? ["stderr"] : ["stdout", "stderr"]);
    const demultiplexer = new Demultiplexer((name, bytes) => this.#receive(name, bytes));
    exec.connection.on("data", (chunk: Buffer) =>
      isTerminal ? this.#receive("stderr", chunk) : demultiplexer.feed(chunk),
    );
    exec.connection.on("error", () => {});
    exec.connection.on("close", () => void this.#disconnected());
    exec.connection.write(firstLine(secrets)); // a terminal's echo of it comes before the command starts
  }

  static async start(
    home: ProcessHome,
    command: ProcessCommand,
    options: ProcessOptions = {},
  ): Promise<ContainerProcess> {
    const exec = await home.startCommand(
      {
        commandLine: commandLine(command.script, command),
        env: command.env,
        stdin: true,
        terminal: options.prepareTerminal !== undefined,
      },
      options.signal,
    );
    const process = new ContainerProcess(home, exec, { ...options, secrets: newSecrets(), stdin: command.stdin });
    await process.#start(options.signal);
    return process;
  }

  get isOver(): boolean {
    return this.#over;
  }

  async signal(signalNumber: number): Promise<void> {
    if (!this.#over) await (await this.#started.promise).signal(signalNumber);
  }

  kill(): void {
    if (!this.#over) this.#killAll();
  }

  #killAll(): void {
    this.#killing ??= this.#kill().catch((error: unknown) => this.#logFailure(error));
  }

  #logFailure(error: unknown): void {
    this.#home.log({ level: "error", message: `a command could not be killed: ${whatFailed(error)}` });
  }

  /** See ShellProcess. */
  async channels(shell: number): Promise<ChannelState> {
    if (this.#over) return { strangers: 0, bytesRead: undefined, bytesUnread: 0 };
    return await (await this.#started.promise).channels(shell);
  }

  async #kill(): Promise<void> {
    const tree = await this.#started.promise;
    await tree.kill({ exit: this.exit, drain: () => this.outputs.drain() });
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    const cancelled = Promise.withResolvers<never>();
    const cancel = () =>
      cancelled.reject(new SandboxError("CANCELLED", "the call was cancelled", { cause: signal?.reason }));
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await Promise.race([this.#started.promise, cancelled.promise]);
    } catch (error) {
      this.#home.awake(() => this.#abandon()).catch((reason: unknown) => this.#logFailure(reason));
      this.stdout.destroy();
      this.stderr.destroy();
      throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  /** It may have started meanwhile, or be about to; and may even have ended by then, and left something. */
  async #abandon(): Promise<void> {
    const killed = this.#started.promise.then(() => this.#killAll());
    if (!(await settledWithin(START_MS, killed))) this.#giveUp();
  }

  /** Somebody in the box keeps the script from its work. Once let go it would run the command, and nobody knows where it is. */
  #giveUp(): void {
    if (this.#isHopeless) return;
    this.#isHopeless = true;
    this.#early.length = 0;
    this.#home.restart(this.#warden).catch((error: unknown) => this.#logFailure(error));
  }

  #receive(name: OutputName, bytes: Buffer): void {
    if (this.#isHopeless) return;
    for (const piece of this.#scanners[name].scan(bytes)) {
      // The first frame on stderr tells whether there is a command; all of stdout may have overtaken it.
      if (this.#tree !== undefined || (name === "stderr" && piece.kind === "frame")) this.#take(name, piece);
      else this.#early.push({ name, piece });
    }
    if (this.#tree !== undefined) return;
    this.#earlyBytes += bytes.length;
    if (this.#earlyBytes > MOST_EARLY_BYTES) this.#giveUp();
  }

  #take(name: OutputName, piece: Piece): void {
    if (piece.kind === "frame") this.#onFrame(name, piece.text);
    else this.outputs.push(this[name], piece.data);
  }

  #onFrame(name: OutputName, text: string): void {
    const [verb, ...rest] = text.split(" ");
    const failure = startFailure(verb);
    if (failure !== undefined) {
      this.#started.reject(failure);
    } else if (verb === "ready") {
      void this.#prepare();
    } else if (verb === "started" && this.#tree === undefined) {
      this.#tree = new CommandTree(this.#home, rest);
      // What a terminal showed so far is the echo of our own words.
      const early = this.#options.prepareTerminal === undefined ? this.#early.splice(0) : [];
      for (const { name, piece } of early) this.#take(name, piece);
      this.#started.resolve(this.#tree);
    } else if (verb === "shell") {
      this.#options.listener?.onShell(Number(rest[0]));
    } else if (verb === "status") {
      this.#statuses[name].push(text.slice("status ".length));
      this.#passStatusOn();
      if (this.#statuses[name].length > MOST_STATUSES) this.kill();
    } else if (verb === "ended" && rest[0] === this.#seal && this.#tree !== undefined) {
      const [exitCode = KILLED, oomKills = 0] = rest.slice(1).map(Number);
      this.outputs.end(this[name]);
      if (this.#open.delete(name) && this.#open.size === 0) this.#ended(this.#tree, exitCode, oomKills);
    }
  }

  async #prepare(): Promise<void> {
    const { connection } = this.#exec;
    const prepare = this.#prepareTerminal;
    this.#prepareTerminal = undefined; // who says so again is somebody else
    if (prepare === undefined) return;
    try {
      await prepare(this.#exec);
      connection.write("go\n");
    } catch (error) {
      this.#started.reject(error);
      connection.end("no\n");
    }
  }

  /** A status is passed on once it was seen in both streams: all output from before it is then here. */
  #passStatusOn(): void {
    const { stdout, stderr } = this.#statuses;
    while (stdout.length > 0 && stderr.length > 0) {
      stderr.shift();
      this.#options.listener?.onStatus(stdout.shift()!);
    }
  }

  /** Nothing is the command's any more, of what comes from now on. */
  #ended(tree: CommandTree, exitCode: number, oomKills: number): void {
    this.#exec.connection.removeAllListeners("data");
    this.#finish({ exitCode: isExitCode(exitCode) ? exitCode : KILLED, outOfMemory: tree.killedForMemory(oomKills) });
    tree.leave(this.#exec.connection);
  }

  /** The connection closed before the script said that the command has ended: somebody killed it, or the box. */
  async #disconnected(): Promise<void> {
    if (this.#over) return;
    if (this.#tree === undefined) {
      this.#over = true;
      const said = this.#early.map(({ piece }) => (piece.kind === "data" ? piece.data.toString("latin1") : ""));
      const complaint = said.join("").slice(0, LONGEST_COMPLAINT);
      this.#started.reject(describeExecFailure(new Error(complaint || "the connection was closed"), complaint));
      this.#finish({ exitCode: KILLED, outOfMemory: false });
      return;
    }
    for (const name of this.#open) {
      const rest = this.#scanners[name].rest();
      if (rest.length > 0) this.outputs.push(this[name], rest);
    }
    try {
      const exitCode = (await exitCodeOf(this.#home.engine, this.#exec.id)) ?? KILLED;
      this.#finish({ exitCode, ...(await this.#tree.clearUp()) });
    } catch (error) {
      this.#fail(new SandboxError("INTERNAL", "the engine went away under a command", { cause: error }));
    }
  }

  #finish(exit: ProcessExit): void {
    this.#over = true;
    this.outputs.end(this.stdout);
    this.outputs.end(this.stderr);
    this.stdin?.destroy();
    this.#exited.resolve(exit);
  }

  #fail(error: SandboxError): void {
    this.#over = true;
    this.stdout.destroy(error);
    this.stderr.destroy(error);
    this.stdin?.destroy();
    this.#exited.reject(error);
  }
}

// A forged frame may say anything.
function isExitCode(code: number): boolean {
  return Number.isInteger(code) && code >= 0 && code <= 255;
}

/** Ending it closes our half of the connection, which is the command's end of file. */
function inputOf(exec: Exec): Writable {
  const { connection } = exec;
  const input = new Writable({
    // A command that ended takes no more input; that is its right and nobody's error.
    write: (chunk: Buffer, _encoding, done) => void connection.write(chunk, () => done()),
    final: (done) => void connection.end(() => done()),
  });
  input.on("error", () => {});
  connection.on("close", () => input.destroy());
  return input;
}
