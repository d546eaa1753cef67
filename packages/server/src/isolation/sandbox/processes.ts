import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import type { Box, BoxCommand, BoxProcess, ProcessExit, TerminalProcess, TerminalSize } from "../backend/backend.ts";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { cancelled, IsolationError } from "../backend/isolation-error.ts";
import { type Cancellable, type ExecOutcome, outcomeOf } from "../exec/api.ts";
import { startInTime } from "../exec/execute.ts";
import { effectiveTimeout } from "../exec/request.ts";
import type { AttachOptions, ProcessEvent, ProcessKind, SandboxProcess, SpawnRequest } from "./api.ts";
import { OutputLog, type OutputName, OutputRoom } from "./output-log.ts";

/** Kept of the output of all processes of a sandbox together. */
const SANDBOX_OUTPUT_BYTES = 16 * 1024 ** 2;
/** Processes that have ended and can still be asked for their output and end. */
const MOST_ENDED = 100;
/** Input that a process has not read. */
const MOST_INPUT_BYTES = 4 * 1024 ** 2;
/** What a process takes of the server's: its two outputs and its status, and an input. A terminal is no more. */
const DESCRIPTORS = 3;
const SIGKILL = constants.signals.SIGKILL;

/** What the table needs of its sandbox. */
export interface ProcessesPlace {
  readonly box: Box;
  readonly descriptors: DescriptorRoom;
  nextNumber(): number;
  /** What to run; throws when the sandbox does not take it. */
  plan(request: SpawnRequest): Promise<BoxCommand>;
  onOutcome(outcome: ExecOutcome, timeoutMs: number | undefined): void;
}

interface Description {
  readonly kind: ProcessKind;
  readonly command: string | readonly string[];
  readonly tag?: string | undefined;
}

/** What runs in a sandbox, and what ended in it lately; numbers and tags are its own. */
export class Processes {
  readonly #place: ProcessesPlace;
  readonly #output = new OutputRoom(SANDBOX_OUTPUT_BYTES);
  readonly #living = new Map<number, ListedProcess>();
  readonly #ended = new Map<number, SpawnedProcess>();
  #descriptors = 0;

  constructor(place: ProcessesPlace) {
    this.#place = place;
  }

  /** Starts a process that lives until it ends, its timeout, or the sandbox's end. The signal is about its start alone. */
  async spawn(request: SpawnRequest, { signal }: Cancellable = {}): Promise<SandboxProcess> {
    const { box, descriptors } = this.#place;
    const timeoutMs = effectiveTimeout(request.timeoutMs, {});
    const command = await this.#place.plan(request);
    const { terminal } = request;
    const needed = DESCRIPTORS + (command.stdin ? 1 : 0);
    if (!descriptors.takeShare(needed, this.#descriptors)) throw tooMany();
    this.#descriptors += needed;
    const release = (): void => {
      this.#descriptors -= needed;
      descriptors.giveBack(needed);
    };
    try {
      const streams = await startInTime(async (either): Promise<Streams> => {
        if (terminal === undefined) return pipeStreams(await box.run(command, { signal: either }));
        return terminalStreams(await box.openTerminal({ ...command, size: terminal }, { signal: either }));
      }, signal);
      const description = { kind: "started", command: request.command, tag: request.tag } as const;
      const process = new SpawnedProcess(this.#place.nextNumber(), description, streams, this.#output, timeoutMs);
      this.#living.set(process.number, process);
      void process.ended.then((outcome) => {
        this.#living.delete(process.number);
        this.#ended.set(process.number, process);
        this.#forgetOldest();
        this.#place.onOutcome(outcome, timeoutMs);
      });
      void process.drained.then(release);
      return process;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** The same box, whose next command is listed while it runs. */
  listing(command: string | readonly string[]): Pick<Box, "run"> {
    return {
      run: async (...given) => {
        const process = await this.#place.box.run(...given);
        this.list({ kind: "command", command }, process.exit, signaller(process));
        return process;
      },
    };
  }

  /** Lists something that runs until `exit`. */
  list(description: Description, exit: Promise<unknown>, signal: Signaller): void {
    const process = new ListedProcess(this.#place.nextNumber(), description, exit.then(outcomeOfOther), signal);
    this.#living.set(process.number, process);
    const forget = (): boolean => this.#living.delete(process.number);
    process.ended.then(forget, forget);
  }

  /** What runs, by number, with commands, sessions and terminals; then spawned processes that ended lately, in that order. */
  all(): readonly SandboxProcess[] {
    return [...this.#living.values(), ...[...this.#ended.values()].sort((one, other) => one.number - other.number)];
  }

  /** Finds one by its number, or the newest with the tag, living before ended. PROCESS_NOT_FOUND when there is none. */
  find(which: number | string): SandboxProcess {
    if (typeof which === "number") {
      const process = this.#living.get(which) ?? this.#ended.get(which);
      if (process !== undefined) return process;
      throw new IsolationError("PROCESS_NOT_FOUND", `there is no process ${which}, or its end was forgotten`);
    }
    const tagged = [this.#living, this.#ended].map((processes) =>
      [...processes.values()].findLast(({ tag }) => tag === which),
    );
    const process = tagged[0] ?? tagged[1];
    if (process === undefined) throw new IsolationError("PROCESS_NOT_FOUND", `no process has the tag ${which}`);
    return process;
  }

  #forgetOldest(): void {
    const [oldest] = this.#ended.values();
    if (this.#ended.size <= MOST_ENDED || oldest === undefined) return;
    this.#ended.delete(oldest.number);
    oldest.forget();
  }
}

type Signaller = (signal: number) => Promise<void>;

/** Any process of the table. Those that somebody else holds in hand take a signal and nothing else. */
class ListedProcess implements SandboxProcess {
  readonly number: number;
  readonly kind: ProcessKind;
  readonly command: string | readonly string[];
  readonly tag: string;
  readonly startedAtMs = Date.now();
  readonly ended: Promise<ExecOutcome>;
  endedAtMs: number | undefined;
  outcome: ExecOutcome | undefined;
  readonly #signal: Signaller;

  constructor(
    number: number,
    { kind, command, tag = "" }: Description,
    ended: Promise<ExecOutcome>,
    signal: Signaller,
  ) {
    this.number = number;
    this.kind = kind;
    this.command = command;
    this.tag = tag;
    this.#signal = signal;
    this.ended = ended.then((outcome) => {
      this.endedAtMs = Date.now();
      this.outcome = outcome;
      return outcome;
    });
    this.ended.catch(() => {}); // awaited by whoever cares
  }

  attach(_options?: AttachOptions): AsyncIterable<ProcessEvent> {
    throw this.notOurs("its output");
  }

  async write(_data: Uint8Array, _options?: Cancellable): Promise<void> {
    throw this.notOurs("its input");
  }

  async closeInput(): Promise<void> {
    throw this.notOurs("its input");
  }

  async resize(_size: TerminalSize): Promise<void> {
    throw this.notOurs("its terminal");
  }

  async signal(signal: number): Promise<void> {
    this.requireLiving();
    await this.#signal(signal);
  }

  protected requireLiving(): void {
    if (this.outcome !== undefined) throw unsuitable(`process ${this.number} has ended`);
  }

  private notOurs(what: string): IsolationError {
    return unsuitable(`process ${this.number} is a ${this.kind}: whoever opened it has ${what}`);
  }
}

/** How a process is talked to. */
interface Streams {
  readonly outputs: Partial<Record<OutputName, Readable>>;
  readonly input: Writable | undefined;
  readonly exit: Promise<ProcessExit>;
  readonly resize: ((size: TerminalSize) => Promise<void>) | undefined;
  readonly kill: () => void;
  readonly signal: Signaller;
}

/** A process that nobody has to hold in hand. */
class SpawnedProcess extends ListedProcess {
  /** Resolves when all of its output is in the log. */
  readonly drained: Promise<void>;
  readonly #streams: Streams;
  readonly #log: OutputLog;
  #unreadInput = 0;
  #isInputClosed = false;

  constructor(
    number: number,
    description: Description,
    streams: Streams,
    room: OutputRoom,
    timeoutMs: number | undefined,
  ) {
    super(number, description, outcomeInTime(streams, timeoutMs), streams.signal);
    this.#streams = streams;
    const outputs = Object.entries(streams.outputs) as [OutputName, Readable][];
    this.#log = new OutputLog(
      outputs.map(([name]) => name),
      room,
    );
    const pumping = outputs.map(([name, output]) => this.#pump(name, output));
    this.drained = Promise.all([this.ended, ...pumping]).then(() => this.#log.end());
    streams.input?.on("error", () => {}); // a process that does not read is no error of ours
  }

  override async *attach(options: AttachOptions = {}): AsyncGenerator<ProcessEvent> {
    using output = this.#log.attach(options);
    yield { kind: "attached" };
    yield* output;
    yield { kind: "exit", outcome: await this.ended };
  }

  override async write(data: Uint8Array, { signal }: Cancellable = {}): Promise<void> {
    const input = this.#openInput();
    if (this.#unreadInput > 0 && this.#unreadInput + data.length > MOST_INPUT_BYTES) {
      throw new IsolationError("RESOURCES_EXHAUSTED", `process ${this.number} has not read its earlier input`);
    }
    this.#unreadInput += data.length;
    const left = Promise.withResolvers<never>();
    const leave = (): void => left.reject(cancelled(signal?.reason));
    signal?.addEventListener("abort", leave);
    const written = new Promise<void>((resolve, reject) => {
      input.write(data, (error) => {
        this.#unreadInput -= data.length;
        if (error) reject(unsuitable(`process ${this.number} reads no input any more`, error));
        else resolve();
      });
    });
    written.catch(() => {}); // who left does not look any more
    await Promise.race([written, left.promise]).finally(() => signal?.removeEventListener("abort", leave));
  }

  override async closeInput(): Promise<void> {
    if (this.#streams.resize !== undefined) {
      throw unsuitable(`process ${this.number} has a terminal, whose input ends with the character 4 (^D)`);
    }
    if (this.#isInputClosed) return;
    const input = this.#openInput();
    this.#isInputClosed = true;
    input.end();
  }

  override async resize(size: TerminalSize): Promise<void> {
    this.requireLiving();
    if (this.#streams.resize === undefined) throw unsuitable(`process ${this.number} has no terminal`);
    await this.#streams.resize(size);
  }

  forget(): void {
    this.#log.release();
  }

  #openInput(): Writable {
    this.requireLiving();
    const { input } = this.#streams;
    if (input === undefined) throw unsuitable(`process ${this.number} was started without an input`);
    if (this.#isInputClosed) throw unsuitable(`the input of process ${this.number} is closed`);
    return input;
  }

  async #pump(name: OutputName, output: Readable): Promise<void> {
    try {
      for await (const data of output) await this.#log.push(name, data as Buffer);
    } catch {
      // The box broke: that it ended is told.
    }
  }
}

function pipeStreams(process: BoxProcess): Streams {
  const { stdin: input, stdout, stderr, exit } = process;
  const signal = signaller(process);
  return { outputs: { stdout, stderr }, input, exit, resize: undefined, kill: () => process.kill(), signal };
}

function terminalStreams(process: TerminalProcess): Streams {
  const { input, output: terminal, exit } = process;
  const resize = (size: TerminalSize): Promise<void> => process.resize(size);
  return { outputs: { terminal }, input, exit, resize, kill: () => process.kill(), signal: signaller(process) };
}

/** SIGKILL is the one that leaves nothing: who forks faster than it is delivered ends, too. */
export function signaller(process: Pick<BoxProcess, "signal" | "kill">): Signaller {
  return async (signal) => {
    if (signal === SIGKILL) process.kill();
    else await process.signal(signal);
  };
}

async function outcomeInTime({ exit, kill }: Streams, timeoutMs: number | undefined): Promise<ExecOutcome> {
  const startedAtMs = performance.now();
  let timedOut = false;
  const timeOut = (): void => {
    timedOut = true;
    kill();
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(timeOut, timeoutMs);
  timer?.unref();
  // When the box broke, nothing in it lives.
  const end = await exit.catch(() => ({ exitCode: 128 + SIGKILL, outOfMemory: false }));
  clearTimeout(timer);
  return outcomeOf(end, { durationMs: performance.now() - startedAtMs, timedOut });
}

/** The outcome of what somebody else waits for, too: here only that it ended counts, and its exit code if it has one. */
function outcomeOfOther(end: unknown): ExecOutcome {
  const { exitCode = 0, outOfMemory = false } = (end ?? {}) as Partial<ProcessExit>;
  return outcomeOf({ exitCode, outOfMemory });
}

function unsuitable(message: string, cause?: unknown): IsolationError {
  return new IsolationError("PROCESS_UNSUITABLE", message, { cause });
}

function tooMany(): IsolationError {
  return new IsolationError("RESOURCES_EXHAUSTED", "the sandbox has as many processes as it may hold open", {
    hint: "end some of those that were started, or raise the server's limit on open files",
  });
}
