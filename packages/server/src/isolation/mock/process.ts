import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import type { BoxProcess, ChannelState, InterruptSignal, ProcessExit, ShellProcess } from "../backend/backend.ts";
import { ANSWER_WORD } from "../session/dialects.ts";

const KILLED = 128 + 9;

/** A command that is only acted: it prints what the script says, then ends. */
export class MockProcess implements BoxProcess {
  readonly stdin: Writable | undefined;
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly exit: Promise<ProcessExit>;
  readonly #killed = new AbortController();
  #over = false;

  constructor(answer: MockAnswer, options: { stdin: boolean; onKill: () => void }) {
    const stdin = new PassThrough();
    if (options.stdin) this.stdin = stdin;
    else stdin.end();
    this.#killed.signal.addEventListener("abort", options.onKill, { once: true });
    this.exit = this.#act(answer, stdin).finally(() => {
      this.#over = true;
      this.stdout.end();
      this.stderr.end();
    });
  }

  /** It dies of every signal. */
  async signal(): Promise<void> {
    this.kill();
  }

  kill(): void {
    if (!this.#over) this.#killed.abort();
  }

  async #act(answer: MockAnswer, stdin: PassThrough): Promise<ProcessExit> {
    if (answer.echoesStdin) for await (const chunk of stdin) await write(this.stdout, chunk as Buffer);
    else stdin.resume();
    if (answer.stdout !== undefined) await write(this.stdout, answer.stdout);
    if (answer.stderr !== undefined) await write(this.stderr, answer.stderr);
    const survived = await this.#lives(answer.durationMs ?? 0);
    return { exitCode: survived ? (answer.exitCode ?? 0) : KILLED, outOfMemory: answer.outOfMemory ?? false };
  }

  /** Whether it lived its time out. */
  async #lives(durationMs: number): Promise<boolean> {
    const { signal } = this.#killed;
    if (signal.aborted) return false;
    if (durationMs === 0) return true;
    return await new Promise((resolve) => {
      // No timer waits for ever: it is long enough to be killed.
      const timer = setTimeout(() => resolve(true), Math.min(durationMs, 2 ** 31 - 1));
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve(false);
      });
    });
  }
}

/** A reader that went away is no reason to wait. */
async function write(stream: PassThrough, data: string | Uint8Array): Promise<void> {
  if (stream.destroyed || stream.write(data)) return;
  await Promise.race([once(stream, "drain"), once(stream, "close")]);
}

/** What a scripted command does. */
export interface MockAnswer {
  readonly stdout?: string | Uint8Array;
  readonly stderr?: string | Uint8Array;
  readonly exitCode?: number;
  /** How long it runs; `Infinity` until it is killed. */
  readonly durationMs?: number;
  readonly outOfMemory?: boolean;
  /** Prints back what it reads on stdin, before its own output. */
  readonly echoesStdin?: boolean;
}

const INTERRUPTED = 128 + 2;

/** What bash is told (see session/dialects.ts): the serial number of the answer, and the text of a command. */
const SERIAL = new RegExp(`${ANSWER_WORD} %s [^']*' (\\S+) `);
const COMMAND = /^\\command eval '((?:[^']|'\\'')*)' <\/dev\/null/;
/** Before the text: how a command finds the exit status of the last. */
const LAST_STATUS = /^__agentfense_last\(\)\{.*?\};(?:\{.*?\n|__agentfense_last&&:;)/s;

/** A shell that is only acted. It says it is bash and understands what the session module says to one. */
export class MockShell implements ShellProcess {
  readonly commands: Writable;
  readonly status = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly #end = Promise.withResolvers<ProcessExit>();
  readonly exit = this.#end.promise;
  readonly #answer: (command: string) => MockAnswer;
  #running: MockProcess | undefined;

  constructor(answer: (command: string) => MockAnswer) {
    this.#answer = answer;
    this.commands = new Writable({
      write: (said: Buffer, _encoding, done) => {
        done();
        void this.#hear(said.toString());
      },
      final: (done) => {
        done();
        this.#leave(0);
      },
    });
  }

  async pendingOutput(): Promise<{ stdout: number; stderr: number }> {
    return { stdout: this.stdout.readableLength, stderr: this.stderr.readableLength };
  }

  async signalForeground(_signal: InterruptSignal): Promise<number> {
    if (this.#running === undefined) return 0;
    this.#running.kill();
    return 1;
  }

  async signalShell(): Promise<void> {}

  async channels(): Promise<ChannelState> {
    return { strangers: 0, bytesRead: undefined, bytesUnread: 0 };
  }

  kill(): void {
    this.#leave(KILLED);
  }

  async #hear(said: string): Promise<void> {
    const serial = SERIAL.exec(said)?.[1];
    if (serial === undefined) return;
    const quoted = COMMAND.exec(said)?.[1];
    const text = quoted?.replaceAll("'\\''", "'").replace(LAST_STATUS, "");
    const exitStatus = text === undefined ? 0 : await this.#act(text);
    this.status.write(`${ANSWER_WORD} ${serial} ${exitStatus} bash\n`);
  }

  async #act(text: string): Promise<number> {
    const acted = new MockProcess(this.#answer(text), { stdin: false, onKill: () => {} });
    this.#running = acted;
    acted.stdout.pipe(this.stdout, { end: false });
    acted.stderr.pipe(this.stderr, { end: false });
    const ends = [acted.stdout, acted.stderr].map((stream) => once(stream, "end"));
    const { exitCode } = await acted.exit;
    await Promise.all(ends);
    this.#running = undefined;
    return exitCode === KILLED ? INTERRUPTED : exitCode;
  }

  #leave(exitCode: number): void {
    this.#running?.kill();
    for (const stream of [this.status, this.stdout, this.stderr]) stream.end();
    this.#end.resolve({ exitCode, outOfMemory: false });
  }
}
