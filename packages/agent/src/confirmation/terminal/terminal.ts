import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { askUntilExpiry, type Reply } from "../ask.ts";
import type { ConfirmationAnswer, ConfirmationRequest, ConfirmationService } from "../confirmation.ts";
import { requestDocument } from "./document.ts";

export interface TerminalConfirmationOptions {
  /** Default: standard input. Nobody else may read it while a question is open. */
  readonly input?: (Readable & { readonly isTTY?: boolean }) | undefined;
  /** Default: standard error; standard output often carries data. */
  readonly output?:
    | (Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number })
    | undefined;
  /** Answers may come from something that is no terminal. Default: such a question is denied. */
  readonly allowNonInteractive?: boolean | undefined;
}

const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

/**
 * Asks whoever sits at the terminal, one question at a time. Everything that will be done is shown, page by page where it is
 * long; only after the last page can it be approved, by the word "yes".
 */
export class TerminalConfirmationService implements ConfirmationService {
  readonly #input: NonNullable<TerminalConfirmationOptions["input"]>;
  readonly #output: NonNullable<TerminalConfirmationOptions["output"]>;
  readonly #allowNonInteractive: boolean;
  /** The questions asked so far are done with. */
  #turns: Promise<void> = Promise.resolve();

  constructor(options: TerminalConfirmationOptions = {}) {
    this.#input = options.input ?? process.stdin;
    this.#output = options.output ?? process.stderr;
    this.#allowNonInteractive = options.allowNonInteractive ?? false;
  }

  request(
    request: ConfirmationRequest,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ConfirmationAnswer> {
    return askUntilExpiry(request, options, (signal) => this.#inTurn(() => this.#ask(request, signal)));
  }

  async #inTurn(ask: () => Promise<Reply>): Promise<Reply> {
    const before = this.#turns;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#turns = before.then(() => done);
    await before;
    return await ask().finally(resolve);
  }

  async #ask(request: ConfirmationRequest, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    if (!this.#isInteractive && !this.#allowNonInteractive) {
      return { decision: "denied", comment: "there is no terminal to ask at" };
    }
    const ignoreError = (): void => {};
    // A terminal that went away fails the write, which denies; it must not end the process as well.
    this.#output.on("error", ignoreError);
    try {
      const approved = await this.#show(request, signal);
      await this.#write(approved ? "Approved.\n" : "Denied.\n", signal);
      return { decision: approved ? "approved" : "denied", reviewer: "terminal" };
    } catch (error) {
      if (!signal.aborted) return { decision: "denied", comment: "the terminal does not work" };
      this.#output.write("\nNo longer asked: denied.\n");
      throw error;
    } finally {
      // A write that failed is told of in two ways, one after the other.
      setImmediate(() => this.#output.off("error", ignoreError));
    }
  }

  async #show(request: ConfirmationRequest, signal: AbortSignal): Promise<boolean> {
    // A terminal that does not know its size says 0.
    const rows = requestDocument(request, Math.max(this.#output.columns || DEFAULT_COLUMNS, 40));
    // Who has no terminal cannot turn pages.
    const rowsPerPage = this.#isInteractive ? Math.max((this.#output.rows || DEFAULT_ROWS) - 2, 10) : rows.length;
    for (let shown = 0; shown < rows.length; shown += rowsPerPage) {
      await this.#write(`${rows.slice(shown, shown + rowsPerPage).join("\n")}\n`, signal);
      const left = rows.length - shown - rowsPerPage;
      if (left <= 0) break;
      const typed = await this.#prompt(`=== ${left} more lines: Enter shows them, anything else denies === `, signal);
      if (typed !== "") return false;
    }
    const typed = await this.#prompt("=== type yes to approve, anything else denies: ", signal);
    return typed?.trim() === "yes";
  }

  async #prompt(text: string, signal: AbortSignal): Promise<string | undefined> {
    if (this.#isInteractive) await discardTypedAhead(this.#input, signal);
    await this.#write(text, signal);
    return await readLine(this.#input, signal);
  }

  get #isInteractive(): boolean {
    return this.#input.isTTY === true && this.#output.isTTY === true;
  }

  /** A terminal that is held (Ctrl-S) takes nothing for as long as it likes: nobody waits for it beyond the signal. */
  async #write(text: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#output.write(text, (error) => (error ? reject(error) : resolve()));
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}

/** Nobody types more to answer a question. */
const LONGEST_LINE = 1000;
const LINE_END = /[\r\n]/;

/** The next line; undefined at the end of the input and for a line that is too long. What follows stays in the stream. */
async function readLine(input: Readable, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted();
  if (input.readableEnded || input.destroyed) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  let line = "";
  const onData = (chunk: Buffer | string): void => {
    // Only "yes" and an empty line mean something: latin1 has a character for each byte, and no state between chunks.
    const text = typeof chunk === "string" ? chunk : chunk.toString("latin1");
    const end = text.search(LINE_END);
    line += end === -1 ? text : text.slice(0, end);
    if (end === -1 && line.length <= LONGEST_LINE) return;
    stop();
    if (end !== -1 && end + 1 < text.length) input.unshift(chunk.slice(end + 1));
    resolve(line.length > LONGEST_LINE ? undefined : line);
  };
  const onEnd = (): void => resolve(undefined);
  const onAbort = (): void => reject(signal.reason);
  const stop = (): void => {
    input.pause();
    input.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onEnd);
    signal.removeEventListener("abort", onAbort);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  input.on("end", onEnd).on("close", onEnd).on("error", onEnd).on("data", onData).resume();
  try {
    return await promise;
  } finally {
    stop();
  }
}

/** Long enough for what the terminal already holds to arrive. */
const TYPED_AHEAD_MS = 100;

/** Forgets what was typed before there was a question. */
async function discardTypedAhead(input: Readable, signal: AbortSignal): Promise<void> {
  const ignore = (): void => {};
  input.on("data", ignore).on("error", ignore).resume();
  try {
    await sleep(TYPED_AHEAD_MS, undefined, { signal });
  } finally {
    input.pause();
    input.off("data", ignore).off("error", ignore);
  }
}
