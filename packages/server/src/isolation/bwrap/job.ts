import { readlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { processes, syscalls } from "@agentfense/fuse";
import type { ChannelState } from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { Owner } from "../filesystem/presentation.ts";
import { channelState } from "./channels.ts";
import { DescriptorSet, readFrom, writeTo } from "./descriptors.ts";
import { explainFailure } from "./failure.ts";
import {
  childrenOf,
  commandLine,
  findProcess,
  type HostProcess,
  hasChildren,
  holdProcess,
  isBoxInit,
  isSameProcess,
  waitUntilGone,
  withDescendants,
} from "./host-processes.ts";
import type { JobLine, Terminal } from "./launcher.ts";
import type { Nest } from "./nest.ts";

const SIGKILL = 9;
const KILLED = 128 + SIGKILL;
const GONE_TIMEOUT_MS = 5_000;
/** After so long a command counts as started even when nothing proves it. */
const PROOF_TIMEOUT_MS = 5_000;
const FAILURE_TEXT_BYTES = 16 * 1024;

/** What one run of bwrap is given; see JobLine for the rest. */
export interface JobRequest {
  readonly options: readonly string[];
  /** Programs that prepare the process and then become the command: limits, a terminal. */
  readonly prefix: readonly string[];
  readonly argv: readonly string[];
  readonly owner: Owner;
  readonly becomes: "owner" | "same-user";
  readonly streams:
    | { readonly kind: "pipes"; readonly stdin: boolean; readonly channel: boolean }
    | { readonly kind: "terminal"; readonly terminal: Terminal; readonly output: Socket };
  readonly seccomp: number;
  /** What the box needs from outside while bwrap waits in it, before the command runs; closed when the box is gone. */
  readonly attach?: ((initPid: number) => Promise<Attachment>) | undefined;
  /**
   * How the start of the command shows: `false` when it never ran and never will. Without this the process table is
   * watched.
   */
  readonly startOf?: ((job: Job) => Promise<boolean>) | undefined;
  readonly files: readonly number[];
  /** An argument that only bwrap itself has on its command line. */
  readonly marker: string;
}

/** What was done to a box from outside. */
export interface Attachment {
  /** Whether it would be done the same way now. */
  isCurrent(): boolean;
  close(): void;
}

/** How it ended. `failure`: it never ran, or bwrap was gone without telling how it went. */
export type JobEnd = { readonly exitCode: number } | { readonly failure: SandboxError };

/**
 * One bwrap and everything in it. The status pipe tells its story: `{}` from the launcher once all is open, bwrap's
 * `child-pid` (process 1 of the box, as the host counts), its `exit-code`, given only when the command did run, and the
 * end of file, when bwrap is gone.
 */
export class Job {
  readonly stdin: Socket | undefined;
  readonly stdout: Socket | undefined;
  readonly stderr: Socket | undefined;
  readonly channel: Socket | undefined;
  /** Resolves when the command itself runs; rejects when it never will. */
  readonly started: Promise<void>;
  /** Resolves when the command and all it started have ended. */
  readonly ended: Promise<JobEnd>;
  /** Resolves a moment later, when nothing of the box is left in the process table. */
  readonly gone: Promise<void>;
  readonly nest: Nest;
  readonly #request: JobRequest;
  readonly #lent: DescriptorSet;
  readonly #start = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<JobEnd>();
  readonly #disappearance = Promise.withResolvers<void>();
  /**
   * Resolves when the status pipe has told of process 1. A start that was announced waits for it: the announcement comes
   * through another pipe and may be read first, and whoever has a command that runs shall be able to signal it.
   */
  readonly #acquaintance = Promise.withResolvers<void>();
  readonly #descriptors = { stdin: -1, stdout: -1, stderr: -1, channel: -1 };
  #init: HostProcess | undefined;
  /** Held from the start: killing must not need a descriptor when there is none left. */
  #grip = -1;
  /** The box is gone: whoever kills it now needs no descriptor, and nobody would close it. */
  #hasLetGo = false;
  #main: HostProcess | undefined;
  #exitCode: number | undefined;
  #isStarted = false;
  #isKilled = false;
  #isLost = false;
  #isOver = false;
  #line = "";
  #gate = -1;
  #attached: Attachment | undefined;
  #attachFailure: SandboxError | undefined;
  readonly #announcement: Promise<boolean> | undefined;
  #neverRan = false;

  constructor(nest: Nest, request: JobRequest) {
    this.nest = nest;
    this.#request = request;
    this.started = this.#start.promise;
    this.ended = this.#end.promise;
    this.gone = this.#disappearance.promise;
    this.started.catch(() => {}); // who cares awaits it
    const lent = new DescriptorSet();
    this.#lent = lent;
    try {
      const status = lent.pipe();
      const line = {
        user: request.becomes === "owner" ? request.owner : undefined,
        status: status.writeEnd,
        seccomp: request.seccomp,
        options: lent.list("options", request.options),
        command: lent.list("command", [...request.prefix, ...request.argv]),
        block: request.attach === undefined ? undefined : this.#makeGate(),
        files: request.files,
      };
      let streams: Pick<JobLine, "stdin" | "stdout" | "stderr" | "channel">;
      if (request.streams.kind === "terminal") {
        const { terminal } = request.streams;
        streams = { stdin: terminal, stdout: terminal, stderr: terminal, channel: undefined };
      } else {
        const stdin = request.streams.stdin ? lent.pipe() : undefined;
        const stdout = lent.pipe();
        const stderr = lent.pipe();
        const channel = request.streams.channel ? lent.pipe() : undefined;
        streams = {
          stdin: stdin?.readEnd ?? "none",
          stdout: stdout.writeEnd,
          stderr: stderr.writeEnd,
          channel: channel?.writeEnd,
        };
        if (stdin !== undefined) this.stdin = writeTo(lent.release(stdin.writeEnd));
        this.stdout = readFrom(lent.release(stdout.readEnd));
        this.stderr = readFrom(lent.release(stderr.readEnd));
        this.#descriptors = {
          stdin: stdin?.writeEnd ?? -1,
          stdout: stdout.readEnd,
          stderr: stderr.readEnd,
          channel: channel?.readEnd ?? -1,
        };
        if (channel !== undefined) this.channel = readFrom(lent.release(channel.readEnd));
      }
      this.#announcement = request.startOf?.(this);
      void Promise.all([this.#announcement, this.#acquaintance.promise]).then(([isRunning]) => {
        if (isRunning) this.#hasStarted();
      });
      this.#listen(readFrom(lent.release(status.readEnd)));
      nest.submit({ ...line, ...streams });
    } catch (error) {
      lent.close();
      if (this.#gate >= 0) syscalls.close(this.#gate);
      this.#destroyStreams();
      throw error;
    }
  }

  /** The command's process as the host sees it, once it has started. */
  get main(): HostProcess | undefined {
    if (this.#main === undefined && this.#isStarted && this.#init !== undefined) {
      const [first] = childrenOf(this.#init.pid);
      if (isSameProcess(this.#init)) this.#main = first; // the number was still its own when we looked
    }
    return this.#main;
  }

  /** It is over, and its command is known not to have run at all. */
  get neverRan(): boolean {
    return this.#neverRan;
  }

  /** False when what was attached to the box is no longer what it would be now. */
  get isCurrent(): boolean {
    return this.#attached?.isCurrent() ?? true;
  }

  get initPid(): number | undefined {
    return this.#init?.pid;
  }

  /** Ends the whole pid namespace with its first process; before that is known, as soon as it is. */
  kill(): void {
    if (this.#isOver) return;
    this.#isKilled = true;
    this.#killBox();
  }

  /** The nest died, and bwrap with it. */
  lost(): void {
    this.#isLost = true;
    this.#lent.close();
    this.#killBox();
  }

  /** Output that the command wrote and the consumer of the stream has not been given: in the pipe, or in our buffer. */
  pendingOutput(): { stdout: number; stderr: number } {
    const count = (stream: Socket | undefined, fd: number): number =>
      stream === undefined || stream.destroyed ? 0 : Math.max(0, processes.bytesWaiting(fd)) + stream.readableLength;
    return {
      stdout: count(this.stdout, this.#descriptors.stdout),
      stderr: count(this.stderr, this.#descriptors.stderr),
    };
  }

  /** Who has the input and the channel of a shell besides it. */
  async channels(): Promise<ChannelState> {
    const { stdin, channel } = this.#descriptors;
    const [shell, init] = [this.main, this.#init];
    const isGone = this.#isOver || this.stdin?.destroyed !== false;
    if (isGone || shell === undefined || init === undefined)
      return { strangers: 0, bytesRead: undefined, bytesUnread: 0 };
    const channels = new Set([stdin, channel].map((fd) => readlinkSync(`/proc/self/fd/${fd}`)));
    const others = withDescendants(childrenOf(init.pid)).filter(({ pid }) => pid !== shell.pid);
    const state = await channelState(shell, others, channels);
    return { ...state, bytesUnread: Math.max(0, processes.bytesWaiting(stdin)) + (this.stdin?.writableLength ?? 0) };
  }

  #listen(status: Socket): void {
    status.setEncoding("latin1");
    status.on("data", (text: string) => {
      const lines = (this.#line + text).split("\n");
      this.#line = lines.pop() ?? "";
      for (const line of lines) this.#hear(line);
    });
    status.once("close", () => void this.#finish());
  }

  #hear(line: string): void {
    const report = parseReport(line);
    this.#lent.close(); // whatever it says, by now the other side has what it needs or never will
    if (report["exit-code"] !== undefined) {
      this.#exitCode = report["exit-code"];
    } else if (report["child-pid"] !== undefined) {
      this.#init = findProcess(report["child-pid"]);
      this.#hold();
      this.#acquaintance.resolve();
      if (this.#isKilled || this.#isLost) this.#killBox();
      else void this.#open();
    }
  }

  /** A pipe that lets bwrap go on. */
  #makeGate(): number {
    const gate = this.#lent.pipe();
    this.#gate = this.#lent.release(gate.writeEnd);
    return gate.readEnd;
  }

  async #open(): Promise<void> {
    const { attach } = this.#request;
    if (attach !== undefined && this.#init !== undefined) {
      try {
        this.#attached = await attach(this.#init.pid);
      } catch (error) {
        this.#attachFailure =
          error instanceof SandboxError
            ? error
            : new SandboxError("INTERNAL", "the box has no network", { cause: error });
        this.#killBox();
        return;
      }
      if (this.#isOver) this.#attached.close();
      else syscalls.write(this.#gate, Buffer.from("\n"), 1);
    }
    if (this.#announcement === undefined) await this.#watchStart();
  }

  // bwrap tells when it made the box, not when the command runs in it; that shows in the process table. Most commands are
  // over before this looks for the first time.
  async #watchStart(): Promise<void> {
    const deadline = performance.now() + PROOF_TIMEOUT_MS;
    for (let delay = 3; !this.#isOver && !this.#isStarted; delay = Math.min(50, delay * 2)) {
      await new Promise((resolve) => setTimeout(resolve, delay));
      if (this.#isOver) return;
      const main = this.#init === undefined ? undefined : childrenOf(this.#init.pid)[0];
      if (main === undefined) continue;
      const words = commandLine(main.pid);
      if (words.length === 0) continue; // on its way out
      const { prefix, marker } = this.#request;
      const isPreparing = words.includes(marker) || (prefix.length > 0 && prefix.every((word, i) => words[i] === word));
      if (isPreparing && performance.now() < deadline) continue;
      this.#main = main;
      this.#hasStarted();
    }
  }

  #hasStarted(): void {
    this.#isStarted = true;
    this.#start.resolve();
  }

  #hold(): void {
    const init = this.#init;
    if (init === undefined || this.#hasLetGo || this.#grip >= 0) return;
    if (isBoxInit(init.pid, this.#request.owner.uid)) this.#grip = holdProcess(init);
  }

  #killBox(): void {
    this.#hold(); // when it could not be done at first
    if (this.#grip >= 0) processes.pidfdSendSignal(this.#grip, SIGKILL);
  }

  async #finish(): Promise<void> {
    this.#isOver = true;
    this.#lent.close();
    this.#attached?.close();
    if (this.#gate >= 0) syscalls.close(this.#gate);
    this.stdin?.destroy(); // nobody reads it any more, and its writer may not know
    if (this.#exitCode === undefined) this.#killBox(); // bwrap died before it could arrange that the box dies with it
    // Process 1 takes a millisecond to tear its namespaces down; the command's result waits for that only when there are
    // others that may still do something.
    const isEmpty = this.#exitCode !== undefined && (this.#init === undefined || !hasChildren(this.#init.pid));
    const disappearing = this.#init === undefined ? undefined : waitUntilGone(this.#init, GONE_TIMEOUT_MS);
    const isUnannounced = this.#announcement !== undefined && !this.#isStarted;
    if (!isEmpty || isUnannounced) await disappearing;
    if (isUnannounced) await this.#lastWord();
    const end = await this.#judge();
    if (!this.#isStarted && ("failure" in end || this.#isKilled)) {
      this.#destroyStreams();
      this.#start.reject("failure" in end ? end.failure : new SandboxError("CANCELLED", "the command was killed"));
    } else {
      this.#hasStarted();
    }
    this.#end.resolve(end);
    await disappearing;
    if (this.#grip >= 0) syscalls.close(this.#grip);
    this.#grip = -1;
    this.#hasLetGo = true;
    this.#disappearance.resolve();
  }

  /** The announcement may still be on its way; with the last process of the box its channel ends, and all is known. */
  async #lastWord(): Promise<void> {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, GONE_TIMEOUT_MS, undefined).unref());
    const isRunning = await Promise.race([this.#announcement, late]);
    if (isRunning) this.#hasStarted();
    this.#neverRan = isRunning === false;
  }

  async #judge(): Promise<JobEnd> {
    if (this.#announcement !== undefined && !this.#isStarted && !this.#isKilled) {
      return { failure: this.#attachFailure ?? new SandboxError("INTERNAL", "the box ended before its command ran") };
    }
    if (this.#exitCode !== undefined) {
      const isSuspect = !this.#isStarted && this.#request.prefix.length > 0 && [126, 127].includes(this.#exitCode);
      const text = isSuspect ? await this.#peek() : "";
      if (/^(agentfense: cannot run |setsid: failed to execute )/.test(text)) return { failure: explainFailure(text) };
      return { exitCode: this.#exitCode };
    }
    if (this.#attachFailure !== undefined) return { failure: this.#attachFailure };
    if (this.#isKilled) return { exitCode: KILLED };
    if (this.#isLost || this.#isStarted) {
      return { failure: new SandboxError("INTERNAL", "the box broke while the command ran") };
    }
    return { failure: explainFailure(await this.#failureText()) };
  }

  get #complaints(): Socket | undefined {
    return this.#request.streams.kind === "terminal" ? this.#request.streams.output : this.stderr;
  }

  /** The first output without taking it away from its reader. */
  async #peek(): Promise<string> {
    const stream = this.#complaints;
    if (stream === undefined) return "";
    if (stream.readableLength === 0 && !stream.readableEnded) {
      await Promise.race([
        new Promise((resolve) => stream.once("readable", resolve)),
        new Promise((resolve) => setTimeout(resolve, 100)),
      ]);
    }
    const chunk = stream.read() as Buffer | null;
    if (chunk === null) return "";
    stream.unshift(chunk);
    return chunk.toString("utf8");
  }

  async #failureText(): Promise<string> {
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      for await (const chunk of this.#complaints ?? []) {
        chunks.push(chunk as Buffer);
        size += (chunk as Buffer).length;
        if (size > FAILURE_TEXT_BYTES) break;
      }
    } catch {
      // A terminal whose other side is gone ends with an error; what came before it counts.
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  #destroyStreams(): void {
    for (const stream of [this.stdin, this.stdout, this.stderr, this.channel]) stream?.destroy();
  }
}

interface Report {
  readonly "child-pid"?: number;
  readonly "exit-code"?: number;
}

function parseReport(line: string): Report {
  try {
    return JSON.parse(line) as Report;
  } catch {
    return {};
  }
}
