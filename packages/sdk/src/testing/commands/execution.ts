import { constants } from "node:os";
import { cancelled } from "../faults.ts";
import { Channel, Killed } from "./channel.ts";
import { BytePipe, type ByteSource, type Stdio } from "./stdio.ts";

/** Runs a command and gives its exit code. */
export type CommandWork = (stdio: Stdio) => Promise<number>;

export interface CommandEnding {
  readonly exitCode: number;
  /** "SIGKILL" …, when the exit code speaks of one; else "". */
  readonly signal: string;
  readonly timedOut: boolean;
  readonly durationMs: number;
}

interface OutputPart {
  readonly kind: "stdout" | "stderr";
  readonly data: Uint8Array;
}

export type CommandPart = OutputPart | { readonly kind: "exit"; readonly ending: CommandEnding };

export interface CommandTerms {
  /** Fixed input, or a stream of it. */
  readonly stdin: ByteSource | AsyncIterable<Uint8Array>;
  /** Undefined: as long as it likes. */
  readonly timeoutMs: number | undefined;
  /** The caller's. */
  readonly signal: AbortSignal;
  /** Aborts when the sandbox, or the session, goes. */
  readonly ended: AbortSignal;
  /** What a timeout ends it with: a session interrupts the command and lives on. */
  readonly timeoutSignal: "SIGKILL" | "SIGINT";
}

export const TIME_LIMITS = { defaultMs: 30_000, largestMs: 600_000 } as const;
/** Kept of each stream of a command, unless the sandbox says otherwise. */
export const OUTPUT_BYTES = 10 * 1024 * 1024;

/** 128 + n after signal n. */
export function exitCodeOf(signal: string): number {
  return 128 + (constants.signals[signal as NodeJS.Signals] ?? 0);
}

function signalOf(exitCode: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return found?.[0] ?? "";
}

/** Output as it comes, then the end. A reader that is slow slows the command down; one that leaves kills it. */
export async function* runCommand(work: CommandWork, terms: CommandTerms): AsyncGenerator<CommandPart> {
  const { signal, ended } = terms;
  if (signal.aborted) throw cancelled();
  const kill = new AbortController();
  const killed = () => kill.abort();
  let timedOut = false;
  const timeOut = () => {
    timedOut = true;
    kill.abort();
  };
  const timer = terms.timeoutMs === undefined ? undefined : setTimeout(timeOut, terms.timeoutMs);
  const output = new Channel<OutputPart>(kill.signal);
  const startedAtMs = performance.now();
  const stdio: Stdio = {
    stdin: "read" in terms.stdin ? terms.stdin : pumped(terms.stdin, kill.signal),
    stdout: { write: (data) => output.push({ kind: "stdout", data }) },
    stderr: { write: (data) => output.push({ kind: "stderr", data }) },
    signal: kill.signal,
  };
  const killCode = () => exitCodeOf(timedOut ? terms.timeoutSignal : "SIGKILL");
  // What pays no heed to its signal is left behind, as a process is that cannot be waited for.
  const running = Promise.race([work(stdio), whenAborted(kill.signal)])
    .catch((error: unknown) => {
      if (error instanceof Killed) return killCode();
      throw error;
    })
    .finally(() => output.end());
  running.catch(() => {}); // told below
  for (const each of [signal, ended]) each.addEventListener("abort", killed);
  if (ended.aborted) kill.abort();
  try {
    for (let part = await output.take(); part !== undefined; part = await output.take()) yield part;
    const exitCode = await running;
    if (signal.aborted) throw cancelled();
    const durationMs = performance.now() - startedAtMs;
    yield { kind: "exit", ending: { exitCode, signal: signalOf(exitCode), timedOut, durationMs } };
  } finally {
    clearTimeout(timer);
    for (const each of [signal, ended]) each.removeEventListener("abort", killed);
    kill.abort();
    output.abandon();
  }
}

export interface CollectedOutput {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly truncated: boolean;
}

/** Keeps the first bytes of each stream; the rest is read and dropped. */
export class Collector {
  readonly #limit: number;
  readonly #kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  readonly #bytes = { stdout: 0, stderr: 0 };
  #truncated = false;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  add({ kind, data }: OutputPart): void {
    const room = this.#limit - this.#bytes[kind];
    if (data.length > room) this.#truncated = true;
    if (room <= 0) return;
    const piece = data.subarray(0, room);
    this.#kept[kind].push(piece);
    this.#bytes[kind] += piece.length;
  }

  result(): CollectedOutput {
    const { stdout, stderr } = this.#kept;
    return { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), truncated: this.#truncated };
  }
}

function pumped(input: AsyncIterable<Uint8Array>, signal: AbortSignal): ByteSource {
  const pipe = new BytePipe(signal);
  const pump = async (): Promise<void> => {
    for await (const data of input) await pipe.write(data);
  };
  // A command that reads no more, or an input that breaks off: for the command it is the end.
  void pump()
    .catch(() => {})
    .finally(() => pipe.end());
  return pipe;
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(new Killed());
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}
