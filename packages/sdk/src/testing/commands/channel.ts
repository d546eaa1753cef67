import { setImmediate } from "node:timers/promises";
import { Bell } from "../bell.ts";

/** The command was ended from outside: by a signal, a timeout, or because nobody wants it any more. */
export class Killed extends Error {
  constructor() {
    super("killed");
    this.name = "Killed";
  }
}

/** Nobody reads any more: what SIGPIPE tells a process. */
export class BrokenPipe extends Error {
  constructor() {
    super("broken pipe");
    this.name = "BrokenPipe";
  }
}

const ROOM_BYTES = 64 * 1024;
/**
 * Timers and other callers get their turn after so many writes: a program that writes for ever must not starve them.
 */
const WRITES_A_TURN = 16;

interface Sized {
  readonly data: Uint8Array;
}

/** A pipe: whoever writes waits while what is unread fills it. */
export class Channel<Item extends Sized> {
  readonly #items: Item[] = [];
  readonly #bell = new Bell();
  readonly #signal: AbortSignal;
  #bytes = 0;
  #writes = 0;
  #ended = false;
  #abandoned = false;

  /** The signal ends the writer; what was written can still be read. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async push(item: Item): Promise<void> {
    this.#writes += 1;
    if (this.#writes % WRITES_A_TURN === 0) await setImmediate();
    while (this.#bytes >= ROOM_BYTES && !this.#abandoned && !this.#signal.aborted) await this.#bell.heard(this.#signal);
    if (this.#signal.aborted) throw new Killed();
    if (this.#abandoned) throw new BrokenPipe();
    if (item.data.length === 0) return;
    this.#items.push(item);
    this.#bytes += item.data.length;
    this.#bell.ring();
  }

  end(): void {
    this.#ended = true;
    this.#bell.ring();
  }

  /** The next one; undefined at the end, and when the reader's own signal aborts. */
  async take(signal?: AbortSignal): Promise<Item | undefined> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) {
        this.#bytes -= item.data.length;
        this.#bell.ring();
        return item;
      }
      if (this.#ended || signal?.aborted) return undefined;
      await this.#bell.heard(signal);
    }
  }

  /** The reader goes. */
  abandon(): void {
    this.#abandoned = true;
    this.#items.length = 0;
    this.#bytes = 0;
    this.#bell.ring();
  }
}
