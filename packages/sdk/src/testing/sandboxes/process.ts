import { Bell } from "../bell.ts";
import { Fault } from "../faults.ts";
import type { ExecEnd, ExecPart } from "./commands.ts";

type Output = Extract<ExecPart, { readonly data: Uint8Array }>;

/** Starts the work; it ends when the signal aborts. */
type Work = (input: AsyncIterable<Uint8Array>, killed: AbortSignal) => AsyncIterable<ExecPart>;

export interface MockProcessFacts {
  readonly number: number;
  readonly tag: string;
  readonly command: string | readonly string[];
  readonly hasInput: boolean;
  readonly isTerminal: boolean;
}

/** A process that outlives its call. Of its output everything is kept. */
export class MockProcess {
  readonly facts: MockProcessFacts;
  readonly startedAtMs = Date.now();
  endedAtMs: number | undefined;
  end: Pick<ExecEnd, "exitCode" | "signal" | "timedOut"> | undefined;
  readonly #output: Output[] = [];
  readonly #input: Uint8Array[] = [];
  readonly #killed = new AbortController();
  readonly #bell = new Bell();
  #inputEnded: boolean;

  constructor(facts: MockProcessFacts, work: Work) {
    this.facts = facts;
    this.#inputEnded = !(facts.hasInput || facts.isTerminal);
    void this.#run(work);
  }

  async *attach(signal: AbortSignal): AsyncGenerator<Output> {
    for (let next = 0; ; ) {
      const part = this.#output[next];
      if (part !== undefined) {
        next += 1;
        yield part;
      } else if (this.end !== undefined || signal.aborted) return;
      else await this.#bell.heard(signal);
    }
  }

  async ended(signal: AbortSignal): Promise<void> {
    while (this.end === undefined && !signal.aborted) await this.#bell.heard(signal);
  }

  write(data: Uint8Array): void {
    this.#requireInput();
    this.#input.push(data);
    this.#bell.ring();
  }

  closeInput(): void {
    if (this.facts.isTerminal) throw unsuitable(`process ${this.facts.number} has a terminal`);
    if (!this.#inputEnded) this.#requireInput();
    else if (!this.facts.hasInput) throw unsuitable(`process ${this.facts.number} was started without an input`);
    this.#inputEnded = true;
    this.#bell.ring();
  }

  /** Nothing here minds a signal: it dies of every one. */
  kill(): void {
    this.requireLiving();
    this.#killed.abort();
  }

  requireLiving(): void {
    if (this.end !== undefined) throw unsuitable(`process ${this.facts.number} has ended`);
  }

  async #run(work: Work): Promise<void> {
    try {
      for await (const part of work(this.#typed(), this.#killed.signal)) {
        if (part.kind === "exit") this.end = part.end;
        else this.#output.push(part);
        this.#bell.ring();
      }
    } catch {
      // As a box that broke: it is over.
    }
    this.end ??= { exitCode: 137, signal: "SIGKILL", timedOut: false };
    this.endedAtMs = Date.now();
    this.#bell.ring();
  }

  async *#typed(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const data = this.#input.shift();
      if (data !== undefined) yield data;
      else if (this.#inputEnded || this.end !== undefined) return;
      else await this.#bell.heard(this.#killed.signal);
      if (this.#killed.signal.aborted) return;
    }
  }

  #requireInput(): void {
    this.requireLiving();
    const { number, hasInput, isTerminal } = this.facts;
    if (!hasInput && !isTerminal) throw unsuitable(`process ${number} was started without an input`);
    if (this.#inputEnded) throw unsuitable(`the input of process ${number} is closed`);
  }
}

export function unsuitable(message: string): Fault {
  return new Fault("PROCESS_UNSUITABLE", message);
}
