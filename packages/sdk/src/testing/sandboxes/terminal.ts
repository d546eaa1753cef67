import { setImmediate } from "node:timers/promises";
import { Bell } from "../bell.ts";
import { Killed } from "../commands/channel.ts";
import type { Stdio } from "../commands/stdio.ts";
import { ExitRequest } from "../shell/program.ts";
import type { ShellState } from "../shell/state.ts";

const PROMPT = "$ ";
const INTERRUPT = "\u0003";
const END_OF_INPUT = "\u0004";
const ERASE = /[\u007f\b]/;

/** Runs one line of the terminal, or the program it was opened for. */
export type TerminalWork = (line: string | undefined, state: ShellState, stdio: Stdio) => Promise<number>;

/**
 * A terminal without a kernel behind it: what is typed is echoed and edited by the line; a whole line goes to the
 * program that runs, else to the shell. ^C ends what runs, ^D at the beginning of a line is the end of the input.
 */
export class LineTerminal {
  readonly #state: ShellState;
  readonly #work: TerminalWork;
  /** Whole lines that nobody has read; undefined is an end of the input. */
  readonly #lines: (string | undefined)[] = [];
  readonly #bell = new Bell();
  #typed = "";
  #isBusy = false;
  #interruption = new AbortController();
  #echo: (text: string) => Promise<void> = async () => {};

  constructor(state: ShellState, work: TerminalWork) {
    this.#state = state;
    this.#work = work;
  }

  /** Gives the exit code, when the shell or the program ends. */
  async run({ stdout, signal }: Stdio, options: { readonly isShell: boolean }): Promise<number> {
    this.#echo = (text) => stdout.write(Buffer.from(text.replace(/\n/g, "\r\n")));
    if (!options.isShell) return await this.#one(undefined, signal);
    await this.#echo(PROMPT);
    for (;;) {
      const line = await this.#nextLine(signal);
      if (line === undefined) {
        await this.#echo("exit\n");
        return this.#state.status;
      }
      try {
        await this.#one(line, signal);
      } catch (error) {
        if (error instanceof ExitRequest) return error.exitCode;
        throw error;
      }
      await this.#echo(PROMPT);
    }
  }

  async type(data: Uint8Array): Promise<void> {
    for (const key of Buffer.from(data).toString("utf8")) await this.#press(key);
    await setImmediate();
  }

  async #press(key: string): Promise<void> {
    if (key === "\r" || key === "\n") {
      await this.#echo("\n");
      this.#enter(this.#typed);
      this.#typed = "";
    } else if (key === INTERRUPT) {
      this.#typed = "";
      await this.#echo("^C\n");
      this.#interruption.abort();
      if (!this.#isBusy) await this.#echo(PROMPT);
    } else if (key === END_OF_INPUT) {
      if (this.#typed === "") this.#enter(undefined);
    } else if (ERASE.test(key)) {
      if (this.#typed !== "") await this.#echo("\b \b");
      this.#typed = [...this.#typed].slice(0, -1).join("");
    } else {
      this.#typed += key;
      await this.#echo(key);
    }
  }

  #enter(line: string | undefined): void {
    this.#lines.push(line);
    this.#bell.ring();
  }

  async #one(line: string | undefined, signal: AbortSignal): Promise<number> {
    if (line?.trim() === "") return 0;
    const interruption = new AbortController();
    this.#interruption = interruption;
    const either = AbortSignal.any([signal, interruption.signal]);
    const stdin = { read: () => this.#read(either), close: () => {} };
    const output = { write: (data: Uint8Array) => this.#printed(data, either) };
    this.#isBusy = true;
    try {
      return await this.#work(line, this.#state, { stdin, stdout: output, stderr: output, signal: either });
    } catch (error) {
      if (!(error instanceof Killed) || signal.aborted) throw error;
      this.#state.status = 130;
      return 130;
    } finally {
      this.#isBusy = false;
    }
  }

  async #read(signal: AbortSignal): Promise<Uint8Array | undefined> {
    const line = await this.#nextLine(signal);
    return line === undefined ? undefined : Buffer.from(`${line}\n`);
  }

  async #nextLine(signal: AbortSignal): Promise<string | undefined> {
    while (this.#lines.length === 0 && !signal.aborted) await this.#bell.heard(signal);
    if (signal.aborted) throw new Killed();
    return this.#lines.shift();
  }

  async #printed(data: Uint8Array, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new Killed();
    await this.#echo(Buffer.from(data).toString("utf8"));
  }
}
