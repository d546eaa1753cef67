import type { EventMetadata } from "../store/store.ts";
import type { EventQueue } from "./queue.ts";
import type { StoredEvent } from "./watch.ts";

const BATCH = 256;
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5_000;

interface Waiting {
  readonly serial: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface WriterParts {
  readonly queue: EventQueue;
  readonly store: EventMetadata;
  /** Before anybody who waits for them goes on. */
  onStored(events: readonly StoredEvent[]): void;
  onFailure(error: unknown): void;
}

/** Moves events from the queue to the store, in order, as many at a time as have come together. */
export class EventWriter {
  readonly #parts: WriterParts;
  readonly #queue: EventQueue;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #storedSerial = 0;
  #start = (): void => {};
  #retryNow = (): void => {};
  #stopped = false;

  constructor(parts: WriterParts) {
    this.#parts = parts;
    this.#queue = parts.queue;
  }

  /** There is something in the queue. What is recorded in the same turn goes together, unless somebody waits for it. */
  wake(): void {
    if (this.#running !== undefined || this.#stopped) return;
    const { promise: now, resolve: start } = Promise.withResolvers<void>();
    const turn = setImmediate(start);
    this.#start = () => {
      clearImmediate(turn);
      start();
    };
    this.#running = now
      .then(() => this.#write())
      .finally(() => {
        this.#running = undefined;
        if (this.#queue.length > 0) this.wake();
      });
  }

  /** What is queued now is stored; rejects when the store refuses it this time (it is tried again all the same). */
  async flush(): Promise<void> {
    const serial = this.#queue.lastSerial;
    if (serial <= this.#storedSerial) return;
    if (this.#stopped) throw new Error("the audit log is closed");
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ serial, resolve, reject });
    this.#retryNow();
    this.wake();
    this.#start();
    await promise;
  }

  /** After the attempt that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#retryNow();
    await this.#running;
  }

  async #write(): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (this.#queue.length > 0 && !this.#stopped) {
      const batch = this.#queue.take(BATCH);
      try {
        const records = await this.#parts.store.appendEvents(batch.map(({ draft }) => draft));
        this.#queue.stored();
        retryMs = FIRST_RETRY_MS;
        this.#storedSerial = batch.at(-1)?.serial ?? this.#storedSerial;
        this.#parts.onStored(records.map((record, at) => ({ serial: batch[at]!.serial, record })));
        const isStored = ({ serial }: Waiting): boolean => serial <= this.#storedSerial;
        const stored = this.#waiting.filter(isStored);
        this.#waiting = this.#waiting.filter((waiting) => !isStored(waiting));
        for (const { resolve } of stored) resolve();
      } catch (error) {
        this.#parts.onFailure(error);
        for (const { reject } of this.#waiting.splice(0)) reject(error);
        await this.#pause(retryMs);
        retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
      }
    }
  }

  async #pause(durationMs: number): Promise<void> {
    if (this.#stopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, durationMs);
    timer.unref();
    this.#retryNow = resolve;
    await promise;
    clearTimeout(timer);
    this.#retryNow = () => {};
  }
}
