import { readlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { Errno, errnoName, processes, syscalls } from "@agentfense/fuse";
import type { ChannelState } from "../backend/backend.ts";
import { asIsolationError, IsolationError, type IsolationErrorCode } from "../backend/isolation-error.ts";
import { channelState } from "./channels.ts";
import { killTrees } from "./command-tree.ts";
import { DescriptorSet, readFrom, writeTo } from "./descriptors.ts";
import { childrenOf, type HostProcess, innerPid, signalProcess, withDescendants } from "./host-processes.ts";
import type { Sending } from "./orders.ts";
import { PipeOutput } from "./pipe-output.ts";

const SIGKILL = 9;
const SIGCONT = 18;
const NUDGE_MS = 250;
const KILLED = 128 + SIGKILL;
const LONGEST_LINE = 256;

export interface CommandRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  /** Limits by the kernel's numbers; asked for when the order is given. */
  readonly rlimits: () => readonly { readonly resource: number; readonly value: number }[];
  /** A terminal is the descriptor of its other side. The owner of pipes may open them anew; not those of a shell's channels. */
  readonly streams:
    | {
        readonly kind: "pipes";
        readonly stdin: boolean;
        readonly channel: boolean;
        readonly owner: { uid: number; gid: number } | undefined;
      }
    | { readonly kind: "terminal"; readonly terminal: number };
}

/** What a command needs of the box it runs in. */
export interface CommandPlace {
  /** The waiter that has this number inside. */
  waiterOf(inner: number): HostProcess | undefined;
  /** False when the box is gone, or about to. */
  isLiving(): boolean;
  /** Ends all that belongs to no waiter. */
  sweep(): Promise<void>;
  /** The box runs, also when it is paused, as long as the work takes, if that is needed to end something in it. */
  ending<T>(work: () => Promise<T>): Promise<T>;
  /** Ends the box as a whole: it has something in it that could not be ended by itself. */
  breakDown(): void;
  /** Takes a pipe that processes write to whose command has ended. */
  adopt(pipe: Socket): void;
  readonly ended: Promise<void>;
  /** All processes of the box that are not ours. */
  programs(): readonly HostProcess[];
}

/** How it ended. `failure`: it never ran, or the box broke under it. */
export type CommandEnd = { readonly exitCode: number } | { readonly failure: IsolationError };

/** One command in a box, from the order to the end of the last process it started; see perl/keeper.pl for what its status says. */
export class Command {
  readonly stdin: Socket | undefined;
  readonly stdout: PipeOutput | undefined;
  readonly stderr: PipeOutput | undefined;
  readonly channel: Socket | undefined;
  readonly #begin = Promise.withResolvers<void>();
  readonly #start = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<CommandEnd>();
  readonly #disappearance = Promise.withResolvers<void>();
  /** Resolves when the keeper has taken the order, or never will. */
  readonly begun = this.#begin.promise;
  /** Resolves when the command itself runs; rejects when it never will. */
  readonly started = this.#start.promise;
  /** Resolves when the command has ended; when it was killed, with all it started. */
  readonly ended = this.#end.promise;
  /** Resolves when nothing it started is left. */
  readonly gone = this.#disappearance.promise;
  #leavesNothing = false;
  readonly #place: CommandPlace;
  readonly #fields: () => (string | number)[];
  /** What the order hands over. */
  readonly #lent = new DescriptorSet();
  readonly #descriptors: number[] = [];
  readonly #status: number = -1;
  readonly #channels = { stdin: -1, channel: -1 };
  #waiterPid: number | undefined;
  /** The pid of the standing waiter that was given the order. */
  #expectedPid: number | undefined;
  #waiter: HostProcess | undefined;
  #mainPid: number | undefined;
  #isStarted = false;
  #main: HostProcess | undefined;
  #failure: IsolationError | undefined;
  #isKilled = false;
  #killing: Promise<unknown> | undefined;
  #hasEnded = false;
  #isGone = false;

  constructor(request: CommandRequest, place: CommandPlace) {
    this.#place = place;
    this.started.catch(() => {}); // who cares awaits it
    const lent = this.#lent;
    try {
      const status = lent.pipe();
      this.#status = lent.release(status.readEnd);
      this.#descriptors.push(status.writeEnd);
      let input = "none";
      if (request.streams.kind === "terminal") {
        input = "terminal";
        const { terminal } = request.streams;
        this.#descriptors.push(terminal, terminal, terminal);
      } else {
        const { owner } = request.streams;
        if (request.streams.stdin) {
          input = "pipe";
          const stdin = lent.pipe(request.streams.channel ? undefined : owner);
          this.#descriptors.push(stdin.readEnd);
          this.#channels.stdin = stdin.writeEnd;
          this.stdin = writeTo(lent.release(stdin.writeEnd));
        }
        const [stdout, stderr] = [lent.pipe(owner), lent.pipe(owner)];
        this.#descriptors.push(stdout.writeEnd, stderr.writeEnd);
        this.stdout = new PipeOutput(lent.release(stdout.readEnd), (pipe) => place.adopt(pipe));
        this.stderr = new PipeOutput(lent.release(stderr.readEnd), (pipe) => place.adopt(pipe));
        if (request.streams.channel) {
          const channel = lent.pipe();
          this.#descriptors.push(channel.writeEnd);
          this.#channels.channel = channel.readEnd;
          this.channel = readFrom(lent.release(channel.readEnd));
        }
      }
      this.#fields = () => {
        const rlimits = request.rlimits();
        const env = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
        const limits = rlimits.flatMap(({ resource, value }) => [resource, value]);
        return [request.workdir, input, rlimits.length, ...limits, env.length, ...env, ...request.argv];
      };
    } catch (error) {
      lent[Symbol.dispose]();
      if (this.#status >= 0) syscalls.close(this.#status);
      this.#destroyStreams();
      throw error;
    }
  }

  /** The waiter's number inside the box, while it lives. */
  get waiterPid(): number | undefined {
    return this.#isGone ? undefined : this.#waiterPid;
  }

  /** The waiter as the host sees it, where that was looked up already. */
  get knownWaiter(): HostProcess | undefined {
    return this.#isGone ? undefined : this.#waiter;
  }

  /** Its box or its waiter ended before that came to it: nothing of it ever ran. */
  get neverBegan(): boolean {
    return this.#isGone && this.#waiterPid === undefined && this.#failure === undefined && !this.#isKilled;
  }

  /** A standing waiter got the order, which somebody in the box may have killed just before. */
  get wasGivenToStanding(): boolean {
    return this.#expectedPid !== undefined;
  }

  /** The command's process as the host sees it, once it has started. */
  get main(): HostProcess | undefined {
    if (this.#main === undefined && this.#waiterPid !== undefined && !this.#hasEnded) {
      const waiter = this.#findWaiter();
      this.#main = waiter && childrenOf(waiter.pid).find(({ pid }) => innerPid(pid) === this.#mainPid);
    }
    return this.#main;
  }

  /** Hands everything over; `send` may be tried again when there was no room. A command that was killed is not ordered. */
  order(send: (fields: readonly (string | number)[], descriptors: readonly number[]) => Sending): Sending | "needless" {
    if (this.#isKilled) {
      this.lost();
      return "needless";
    }
    let sending: Sending;
    try {
      sending = send(this.#fields(), this.#descriptors);
    } catch (error) {
      this.#failure = asIsolationError(error, "the command could not be started");
      this.lost();
      return "needless";
    }
    if (sending === "sent") this.#lent[Symbol.dispose]();
    return sending;
  }

  /** The waiter that has the order, by its number inside. It may have been stopped. */
  givenTo(waiterPid: number): void {
    this.#expectedPid = waiterPid;
    this.#nudge();
  }

  /** To be called once, after the order: the keeper is at work meanwhile. */
  listen(): void {
    const status = readFrom(this.#status);
    let rest = "";
    status.setEncoding("latin1");
    status.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = (lines.pop() ?? "").slice(0, LONGEST_LINE);
      for (const line of lines) this.#hear(line.split(" "));
    });
    status.once("close", () => void this.#waiterGone());
  }

  /** It will not be ordered any more: its status ends now, as does whatever else it had. */
  lost(): void {
    this.#lent[Symbol.dispose]();
  }

  /** Kills the command and all it started, however it hid. */
  kill(): void {
    if (this.#hasEnded || this.#isKilled) return;
    this.#isKilled = true;
    if (this.#waiterPid !== undefined) this.#killTree();
  }

  /** Signals the command and all it started, as far as it lives; not the waiter. */
  signal(signalNumber: number): void {
    const waiter = this.#hasEnded ? undefined : this.#findWaiter();
    if (waiter === undefined) return;
    for (const process of withDescendants(childrenOf(waiter.pid))) signalProcess(process, signalNumber);
  }

  /** The box is about to be ended as a whole. */
  killedWithBox(): void {
    this.#isKilled = true;
  }

  /** Who has the input and the channel of a shell besides it. */
  async channels(): Promise<ChannelState> {
    const shell = this.main;
    if (this.#hasEnded || this.stdin?.destroyed !== false || shell === undefined)
      return { strangers: 0, bytesRead: undefined, bytesUnread: 0 };
    const { stdin, channel } = this.#channels;
    const names = new Set([stdin, channel].map((fd) => readlinkSync(`/proc/self/fd/${fd}`)));
    const others = (): HostProcess[] => this.#place.programs().filter(({ pid }) => pid !== shell.pid);
    const state = await channelState(shell, others, names);
    return { ...state, bytesUnread: Math.max(0, processes.bytesWaiting(stdin)) + (this.stdin?.writableLength ?? 0) };
  }

  /** It has ended, and its waiter said that nothing is left. */
  get leavesNothing(): boolean {
    return this.#leavesNothing;
  }

  #hear([word, first = "", second = ""]: readonly string[]): void {
    this.#begin.resolve();
    const number = Number.parseInt(first, 10);
    switch (word) {
      case "w":
        this.#waiterPid ??= number;
        if (this.#isKilled) this.#killTree();
        else if (this.#expectedPid === undefined) this.#nudge();
        break;
      case "s":
        this.#mainPid ??= number;
        if (this.#failure === undefined) this.#hasStarted();
        break;
      case "f":
        this.#failure ??= explain(number, second);
        break;
      case "x":
      case "k":
        this.#leavesNothing = second === "last";
        if (!this.#isKilled && this.#failure === undefined)
          this.#finish({ exitCode: (word === "x" ? 0 : 128) + (number & 0xff) });
        break;
    }
  }

  #hasStarted(): void {
    this.#isStarted = true;
    this.#start.resolve();
  }

  /** A command may have stopped its waiter before that said that it runs. */
  #nudge(): void {
    const timer = setInterval(() => {
      const waiter = this.#findWaiter();
      if (waiter !== undefined) signalProcess(waiter, SIGCONT);
    }, NUDGE_MS);
    const stop = (): void => clearInterval(timer);
    this.started.then(stop, stop);
    timer.unref();
  }

  #findWaiter(): HostProcess | undefined {
    const number = this.#waiterPid ?? this.#expectedPid;
    if (this.#isGone || number === undefined) return undefined;
    this.#waiter ??= this.#place.waiterOf(number);
    return this.#waiter;
  }

  #killTree(): void {
    const roots = (): readonly HostProcess[] => {
      const waiter = this.#findWaiter();
      return waiter === undefined ? [] : [waiter];
    };
    this.#killing ??= this.#place
      .ending(() => killTrees(roots))
      .then((isDone) => {
        if (!isDone) this.#place.breakDown();
      });
  }

  /** With the waiter went all that it waited for, unless somebody in the box killed it. */
  async #waiterGone(): Promise<void> {
    this.#isGone = true;
    this.#begin.resolve();
    await this.#killing;
    const isRefused = this.#failure !== undefined && !this.#isStarted;
    if (!this.#hasEnded && !isRefused && this.#waiterPid !== undefined && this.#place.isLiving()) {
      await this.#place.sweep();
      if (!this.#isKilled) this.#hasStarted(); // only what runs in the box can have ended it
      this.#isKilled = true;
    }
    if (!this.#hasEnded && !this.#place.isLiving()) await this.#place.ended;
    if (!this.#hasEnded) this.#finish(this.#verdict());
    this.#disappearance.resolve();
  }

  #verdict(): CommandEnd {
    if (this.#failure !== undefined) return { failure: this.#failure };
    if (this.#isKilled) return { exitCode: KILLED };
    return { failure: new IsolationError("INTERNAL", "the box broke while the command ran") };
  }

  #finish(end: CommandEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.stdin?.destroy(); // nobody reads it any more, and its writer may not know
    if (!this.#isStarted) {
      this.#destroyStreams();
      this.#start.reject("failure" in end ? end.failure : new IsolationError("CANCELLED", "the command was killed"));
    }
    this.stdout?.commandEnded();
    this.stderr?.commandEnded();
    this.#end.resolve(end);
  }

  #destroyStreams(): void {
    for (const stream of [this.stdin, this.stdout, this.stderr, this.channel]) stream?.destroy();
  }
}

const SHORTAGES: ReadonlySet<number> = new Set([Errno.EAGAIN, Errno.ENOMEM, Errno.EMFILE, Errno.ENFILE, Errno.ENOSPC]);

function explain(errno: number, stage: string): IsolationError {
  const cause = new Error(`${stage}: ${errnoName(errno)}`);
  const because = (code: IsolationErrorCode, message: string, hint?: string): IsolationError =>
    new IsolationError(code, message, { hint, cause });
  if (SHORTAGES.has(errno)) {
    const message = "a limit of the sandbox or of the host left no room for another process";
    return because(
      "RESOURCES_EXHAUSTED",
      message,
      "the sandbox's other commands may use all the processes it may have",
    );
  }
  if (errno === Errno.E2BIG) return because("INVALID_ARGUMENT", "the arguments and variables are too long");
  if (stage === "directory") {
    return because("WORKDIR_UNUSABLE", "the working directory does not exist in the sandbox, or is none");
  }
  if (stage === "program") {
    return because("PROGRAM_NOT_FOUND", "the program does not exist in the sandbox, or cannot be executed");
  }
  return because("INTERNAL", "the command could not be started");
}
