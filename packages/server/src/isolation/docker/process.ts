import { type Readable, Writable } from "node:stream";
import type { BoxProcess, ChannelState, ProcessExit } from "../backend/backend.ts";
import { cancelled, IsolationError } from "../backend/isolation-error.ts";
import { settledWithin } from "../waiting.ts";
import type { ProcessHome } from "./container.ts";
import type { ContainerHelper, Root } from "./container-helper.ts";
import { describeExecFailure, type Exec, exitCodeOf, whatFailed } from "./daemon.ts";
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

/** What the shell would say of a command that was killed; ours for one whose end nobody saw. */
const KILLED = 137;
/** How long a script may take to say that its command has ended, once everything below it was killed. */
const FAREWELL_MS = 300;
/** How long the daemon may take to tell that a process was killed: two seconds where others hold the streams, and some. */
const RELEASE_MS = 4_000;
/** More in one stream than in the other can only be forged. */
const MOST_STATUSES = 1000;
/** How long a command that nobody wants any more may take to say that it has started: its script has nothing else to do. */
const START_MS = 5_000;
/** So much output does not overtake the frame which says that the command has started. */
const MOST_EARLY_BYTES = 32 * 1024 ** 2;
/** What a daemon says instead of starting a process is no longer. */
const LONGEST_COMPLAINT = 4096;

export interface ProcessCommand {
  readonly script: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly stdin: boolean;
}

export interface ProcessOptions {
  readonly signal?: AbortSignal | undefined;
  /** The script is that of a session's shell. */
  readonly isShell?: boolean;
  /** For a command on a terminal, whose one output is `stderr`: makes it ready before the command starts. */
  readonly prepareTerminal?: (exec: Exec) => Promise<void>;
}

/** The processes of one command: a docker-init, the script below it, and below that whatever the command started. */
interface Tree {
  readonly root: Root;
  /** How often the kernel had killed for memory when the command started. */
  readonly oomKills: number;
}

/** One command, below a docker-init of its own (see scripts.ts), until it has ended: what it leaves is then its home's. */
export class ContainerProcess implements BoxProcess {
  readonly stdin?: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly #exited = Promise.withResolvers<ProcessExit>();
  readonly exit = this.#exited.promise;
  /** What a session's shell writes to descriptor 3; like any output, it stops the shell when nobody reads. */
  readonly status: Readable | undefined;
  readonly #shell = Promise.withResolvers<number>();
  /** The process of a session's shell. */
  readonly shellPid = this.#shell.promise;
  readonly #home: ProcessHome;
  readonly #exec: Exec;
  readonly #seal: string;
  readonly outputs: Outputs;
  readonly #scanners: Record<OutputName, FrameScanner>;
  /** The streams that have not come to their end. */
  readonly #open: Set<OutputName>;
  readonly #statuses: Record<OutputName, string[]> = { stdout: [], stderr: [] };
  readonly #options: ProcessOptions;
  readonly #started = Promise.withResolvers<Tree>();
  /** What overtook the frame which says that the command has started, or what the daemon said instead. */
  readonly #early: { readonly name: OutputName; readonly piece: Piece }[] = [];
  #earlyBytes = 0;
  #isHopeless = false;
  /** The terminal that it waits for. */
  #prepareTerminal: ProcessOptions["prepareTerminal"];
  /** That of the container in which it was started. */
  readonly #helper: ContainerHelper;
  #tree: Tree | undefined;
  #over = false;
  #killing: Promise<void> | undefined;

  private constructor(
    home: ProcessHome,
    exec: Exec,
    { secrets, stdin, ...options }: ProcessOptions & { secrets: Secrets; stdin: boolean },
  ) {
    const { mark, seal } = secrets;
    this.#home = home;
    this.#helper = home.helper;
    this.#prepareTerminal = options.prepareTerminal;
    this.#exec = exec;
    this.#options = options;
    this.#seal = seal;
    this.#scanners = { stdout: new FrameScanner(mark), stderr: new FrameScanner(mark) };
    this.outputs = new Outputs(exec.connection);
    this.stdout = this.outputs.open();
    this.stderr = this.outputs.open();
    this.status = options.isShell ? this.outputs.open() : undefined;
    this.shellPid.catch(() => {});
    if (stdin) this.stdin = inputOf(exec);
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
    if (!this.#over) await this.#helper.signalTree(signalNumber, (await this.#started.promise).root);
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
    return await this.#helper.channels(shell, (await this.#started.promise).root);
  }

  /**
   * Kills whatever the command started; the script then reports its end. Only if something survives, or a second helper does
   * not answer either, the whole container is restarted: every process in it dies, also those that earlier commands left in
   * the background, and /tmp is empty, but the box lives on.
   */
  async #kill(): Promise<void> {
    const { root } = await this.#started.promise;
    await this.#home.awake(async () => {
      const left = await this.#helper.clear(root).catch(() => undefined);
      if (left !== 0) await this.#home.restart(this.#helper);
      // Nothing writes any more, so what is left to fetch is bounded; and the end comes behind it.
      this.outputs.drain();
      if (await settledWithin(FAREWELL_MS, this.exit)) return;
      await this.#helper.release(root).catch(() => {});
      // A helper that was tampered with says what the command wants; the daemon cannot be.
      if (!(await settledWithin(RELEASE_MS, this.exit))) await this.#home.restart(this.#helper);
    });
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    const left = Promise.withResolvers<never>();
    const cancel = () => left.reject(cancelled(signal?.reason));
    if (signal?.aborted) cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await Promise.race([this.#started.promise, left.promise]);
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
    this.#home.restart(this.#helper).catch((error: unknown) => this.#logFailure(error));
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
      const [root = 0, wrapper = 0, oomKills = 0] = rest.map(Number);
      this.#tree = { root: { root, wrapper }, oomKills };
      // What a terminal showed so far is the echo of our own words.
      const early = this.#options.prepareTerminal === undefined ? this.#early.splice(0) : [];
      for (const { name, piece } of early) this.#take(name, piece);
      this.#started.resolve(this.#tree);
    } else if (verb === "shell") {
      this.#shell.resolve(Number(rest[0]));
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
      const line = Buffer.from(`${stdout.shift()}\n`);
      if (this.status !== undefined) this.outputs.push(this.status, line);
    }
  }

  /** Nothing is the command's any more, of what comes from now on. */
  #ended(tree: Tree, exitCode: number, oomKills: number): void {
    this.#exec.connection.removeAllListeners("data");
    this.#finish({ exitCode: isExitCode(exitCode) ? exitCode : KILLED, outOfMemory: oomKills > tree.oomKills });
    this.#home.leave(tree.root, this.#exec.connection, this.#helper);
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
      const exitCode = (await exitCodeOf(this.#home.daemon, this.#exec.id)) ?? KILLED;
      this.#finish({ exitCode, outOfMemory: await this.#clearUp(this.#tree) });
    } catch (error) {
      this.#fail(new IsolationError("INTERNAL", "the engine went away under a command", { cause: error }));
    }
  }

  /** Ends what the command left behind, which cannot be told from what earlier commands lost in the same way. */
  async #clearUp({ oomKills }: Tree): Promise<boolean> {
    const left = await this.#helper.killOrphans().catch(() => undefined);
    if (left !== 0) await this.#home.restart(this.#helper);
    return await this.#helper.oomKills().then(
      (now) => now > oomKills,
      () => this.#home.ranOutOfMemory(),
    );
  }

  #endShell(): void {
    this.#shell.reject(new IsolationError("INTERNAL", "the shell ended before it began"));
    if (this.status !== undefined) this.outputs.end(this.status);
  }

  #finish(exit: ProcessExit): void {
    this.#over = true;
    this.#endShell();
    this.outputs.end(this.stdout);
    this.outputs.end(this.stderr);
    this.stdin?.destroy();
    this.#exited.resolve(exit);
  }

  #fail(error: IsolationError): void {
    this.#over = true;
    this.#endShell();
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

/** The error behind a frame that says why nothing was started; undefined for any other frame. */
function startFailure(verb: string | undefined): IsolationError | undefined {
  if (verb === "workdir") {
    return new IsolationError("WORKDIR_UNUSABLE", "the working directory does not exist in the sandbox, or is none");
  }
  if (verb === "program") return new IsolationError("PROGRAM_NOT_FOUND", "the program does not exist in the sandbox");
  return undefined;
}
