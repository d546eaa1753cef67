import type { EventDraft, EventLevel, EventMetadata } from "../store/store.ts";
import type { AuditEntry } from "./api.ts";
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

/** One event as the operator's log has it: what it is about beside level, time and type, and its data as further members. */
export interface AuditLine {
  readonly level: EventLevel;
  /** ISO 8601, UTC. */
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A command line may be megabytes long; what is kept of a text is this many UTF-16 units. */
const LONGEST_TEXT = 8 * 1024;
/** The largest data of an event, as JSON. */
const LARGEST_DATA = 64 * 1024;

/** A copy, cut to size, of what may change or be too large. Never throws. `size`: about what it takes in memory. */
export function draftOf(entry: AuditEntry, timeMs: number): { readonly draft: EventDraft; readonly size: number } {
  const { data, size } = boundedData(entry.data ?? {});
  const draft: EventDraft = {
    timeMs,
    type: entry.type,
    level: entry.level ?? "info",
    ownerId: entry.ownerId ?? "",
    keyId: entry.keyId ?? "",
    sandboxId: entry.sandboxId ?? "",
    codebaseId: entry.codebaseId ?? "",
    sessionId: entry.sessionId ?? "",
    data,
  };
  return { draft, size };
}

export function lineOf(event: EventDraft): AuditLine {
  const subject = {
    sandbox_id: event.sandboxId,
    codebase_id: event.codebaseId,
    user_id: event.ownerId,
    session_id: event.sessionId,
    key_id: event.keyId,
  };
  return {
    level: event.level,
    time: new Date(event.timeMs).toISOString(),
    msg: event.type,
    ...Object.fromEntries(Object.entries(subject).filter(([, id]) => id !== "")),
    // What the event says about itself never passes for one of the members above.
    ...Object.fromEntries(
      Object.entries(event.data).filter(
        ([name]) => !Object.hasOwn(subject, name) && !["level", "time", "msg"].includes(name),
      ),
    ),
  };
}

function boundedData(data: Readonly<Record<string, unknown>>): {
  readonly data: EventDraft["data"];
  readonly size: number;
} {
  let cut = false;
  const shorten = (_name: string, value: unknown): unknown => {
    if (typeof value === "bigint") return value.toString();
    if (typeof value !== "string") return value;
    cut ||= value.length > LONGEST_TEXT;
    return value.slice(0, LONGEST_TEXT).toWellFormed();
  };
  try {
    const text = JSON.stringify(data, shorten);
    if (text.length > LARGEST_DATA) return { data: { truncated: true }, size: 0 };
    const copy = JSON.parse(text) as Record<string, unknown>;
    return { data: cut ? { ...copy, truncated: true } : copy, size: text.length };
  } catch (error) {
    // A cycle, for one. That something happened is worth more than what it said.
    return { data: { unreadable: error instanceof Error ? error.message : String(error) }, size: 0 };
  }
}
