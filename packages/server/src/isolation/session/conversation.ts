import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import type { ShellProcess } from "../backend/backend.ts";
import { cancelled, IsolationError } from "../backend/isolation-error.ts";
import { OutputBuffer } from "../exec/output.ts";
import {
  ANSWER_WORD,
  type CommandState,
  type Dialect,
  dialectOf,
  FRESH_STATE,
  identify,
  type Shell,
  type SpokenCommand,
} from "./dialects.ts";
import type { Outlet } from "./outlet.ts";

/** Says commands to a shell and hears their answers; knows nothing of time or output. */
export class Conversation {
  readonly #commands: ShellProcess["commands"];
  readonly #answers: AnswerReader;
  #dialect: Dialect | undefined;
  #last: CommandState = FRESH_STATE;
  #count = 0;
  #serial = "";
  #saidBytes = 0;
  #answeredBytes = 0;

  constructor(process: ShellProcess) {
    this.#commands = process.commands;
    this.#commands.on("error", () => {}); // a shell that is gone is noticed by its exit
    this.#answers = new AnswerReader(process.status);
  }

  /** Makes the shell ready for commands. */
  async start(shell: Shell): Promise<void> {
    this.#dialect = shell.dialect ?? dialectOf((await this.#say((serial) => identify(serial))).options);
    const dialect = this.#dialect;
    await this.#say((serial) => dialect.startUp(serial));
  }

  run(text: Buffer): Promise<Answer> {
    return this.#say((serial) => this.#spoken.command(text, serial, this.#last));
  }

  /** How much was said so far. */
  get saidBytes(): number {
    return this.#saidBytes;
  }

  /** How much of it the shell had read when it last answered: it reads in the order in which things are said. */
  get answeredBytes(): number {
    return this.#answeredBytes;
  }

  /** Resolves when no earlier signal can hit a later command. */
  async settle(): Promise<void> {
    await this.#say((serial) => this.#spoken.settle(serial));
  }

  /**
   * Asks for the awaited answer again: a signal that comes just when a command ends may have eaten it. A shell that is
   * still busy reads this when it is done, and nobody minds an answer too many.
   */
  remind(): void {
    this.#write(Buffer.from(this.#spoken.settle(this.#serial)));
  }

  /** What the next command shall find in `$?` and as options. */
  remember(state: CommandState): void {
    this.#last = state;
  }

  get #spoken(): Dialect {
    if (this.#dialect === undefined) throw new Error("the shell was not started");
    return this.#dialect;
  }

  async #say(line: (serial: string) => string | SpokenCommand): Promise<Answer> {
    this.#serial = `${++this.#count}.${randomBytes(8).toString("hex")}`;
    const answer = this.#answers.awaitAnswer(this.#serial);
    const said = line(this.#serial);
    // Of lines that only ask for an answer the first may be enough.
    const { bytes, readBytes } = typeof said === "string" ? { bytes: Buffer.from(said), readBytes: 0 } : said;
    const answeredBytes = this.#saidBytes + readBytes;
    this.#write(bytes);
    const heard = await answer;
    this.#answeredBytes = answeredBytes;
    return heard;
  }

  #write(bytes: Buffer): void {
    this.#saidBytes += bytes.length;
    this.#commands.write(bytes);
  }
}

export interface Answer {
  readonly exitStatus: number;
  readonly options: string;
}

/** Longer lines are nobody's answer. */
const LONGEST_LINE = 256;

const LINE = new RegExp(`^${ANSWER_WORD} (\\S+) (\\d{1,3}) (\\S*)$`);

/**
 * Reads the status channel. Serial numbers cannot be guessed, so that a late answer, or what a program in the sandbox
 * writes to the channel, is never taken for the answer that is awaited. Keeps at most one line.
 */
export class AnswerReader {
  #line = "";
  #awaited: { serial: string; arrived: (answer: Answer) => void } | undefined;

  constructor(status: Readable) {
    status.setEncoding("latin1");
    status.on("data", (text: string) => this.#read(text));
    status.on("error", () => {}); // the shell's end tells more
  }

  /** Resolves when the answer arrives. Awaiting another one forgets the former. */
  awaitAnswer(serial: string): Promise<Answer> {
    return new Promise((arrived) => {
      this.#awaited = { serial, arrived };
    });
  }

  #read(text: string): void {
    const lines = text.split("\n");
    for (const [index, part] of lines.entries()) {
      const line = this.#line + part;
      const complete = index < lines.length - 1;
      if (complete) this.#take(line);
      this.#line = complete ? "" : line.slice(0, LONGEST_LINE + 1);
    }
  }

  #take(line: string): void {
    const [, serial, exitStatus, options] = line.length > LONGEST_LINE ? [] : (LINE.exec(line) ?? []);
    if (serial === undefined || serial !== this.#awaited?.serial) return;
    const { arrived } = this.#awaited;
    this.#awaited = undefined;
    arrived({ exitStatus: Number(exitStatus) & 0xff, options: options ?? "" });
  }
}

const READY_TIMEOUT_MS = 10_000;
/** Enough to say why a shell did not start. */
const COMPLAINT_BYTES = 1_000;

/** Waits until the shell takes commands; what it prints on the way is nobody's output. */
export async function awaitReady(
  parts: {
    readonly process: ShellProcess;
    readonly conversation: Conversation;
    readonly stdout: Outlet;
    readonly stderr: Outlet;
  },
  shell: Shell,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { process, conversation, stdout, stderr } = parts;
  const complaint = new OutputBuffer(COMPLAINT_BYTES);
  stdout.open(new OutputBuffer(0));
  stderr.open(complaint);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abandon = () => reject(cancelled(signal?.reason));
  const timer = setTimeout(
    () => reject(new IsolationError("INTERNAL", `the shell was not ready after ${READY_TIMEOUT_MS} ms`)),
    READY_TIMEOUT_MS,
  );
  conversation.start(shell).then(resolve, reject);
  process.exit.then(({ exitCode }) => {
    const said = complaint.take().data.toString().trim();
    const why = said === "" ? "" : `: ${said}`;
    reject(new IsolationError("INTERNAL", `the shell ended with exit code ${exitCode} before it was ready${why}`));
  }, reject);
  if (signal?.aborted) abandon();
  signal?.addEventListener("abort", abandon);
  try {
    await promise;
    await drain(parts);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abandon);
  }
}

/** Hands on what a shell that is gone has left. Where nobody can tell how much that is, its streams end by themselves. */
export async function drainRemains(parts: Parameters<typeof drain>[0]): Promise<void> {
  await drain(parts).catch(() => Promise.all([parts.stdout.finish(Infinity), parts.stderr.finish(Infinity)]));
}

/**
 * Hands on what the command that has just ended still owes. Its answer came after its last output was in the pipes, so
 * everything it wrote is counted there.
 */
export async function drain(parts: {
  readonly process: ShellProcess;
  readonly stdout: Outlet;
  readonly stderr: Outlet;
}): Promise<void> {
  parts.stdout.freeze();
  parts.stderr.freeze();
  const owed = await parts.process.pendingOutput();
  await Promise.all([parts.stdout.finish(owed.stdout), parts.stderr.finish(owed.stderr)]);
}
