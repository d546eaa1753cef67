import type { ExecEvent, ExecOutcome } from "../exec/api.ts";

/** Waiting events may weigh so much before the command has to wait at a full pipe. */
const HIGH_WATER_BYTES = 256 * 1024;
/** What an event costs besides its data: tiny ones count too. */
const EVENT_BYTES = 128;

/** The output of one command on its way to a reader who may be slow. */
export class EventQueue {
  readonly #events: ExecEvent[] = [];
  readonly #onDrained: () => void;
  #weight = 0;
  #full = false;
  #discarding = false;
  #lost = false;
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(onDrained: () => void) {
    this.#onDrained = onDrained;
  }

  get truncated(): boolean {
    return this.#lost;
  }

  /** A sink for one of the two streams. */
  sink(kind: "stdout" | "stderr"): { write(data: Buffer): boolean; lost(): void } {
    return {
      write: (data) => this.#push({ kind, data }),
      lost: () => {
        this.#lost = true;
      },
    };
  }

  finish(outcome: ExecOutcome): void {
    this.#events.push({ kind: "exit", outcome });
    this.#end = {};
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#end = { error };
    this.#wake?.();
  }

  /** The reader is gone: what comes is dropped. */
  discard(): void {
    this.#discarding = true;
    this.#events.length = 0;
    this.#onDrained();
  }

  async *read(): AsyncGenerator<ExecEvent, void, undefined> {
    while (true) {
      for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
        this.#release(event);
        yield event;
      }
      if (this.#end !== undefined) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    if ("error" in this.#end) throw this.#end.error;
  }

  #push(event: ExecEvent & { readonly data: Buffer }): boolean {
    if (this.#discarding) return true;
    this.#events.push(event);
    this.#weight += EVENT_BYTES + event.data.length;
    this.#full = this.#weight >= HIGH_WATER_BYTES;
    this.#wake?.();
    return !this.#full;
  }

  #release(event: ExecEvent): void {
    if (event.kind === "exit") return;
    this.#weight -= EVENT_BYTES + event.data.length;
    if (!this.#full || this.#weight >= HIGH_WATER_BYTES / 2) return;
    this.#full = false;
    this.#onDrained();
  }
}
