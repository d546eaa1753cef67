import type { EventMetadata, EventRecord } from "../store/store.ts";
import { type EventSelection, isSelected } from "./visibility.ts";

/** How many events wait for a slow watcher; after that it reads what it missed from the store. */
const BUFFERED_EVENTS = 256;
const READ_AT_ONCE = 100;

export interface StoredEvent {
  /** Its place in the queue it came from. */
  readonly serial: number;
  readonly record: EventRecord;
}

export type WatchStart =
  /** Everything stored after this one. */
  | { readonly afterSequence: number }
  /** What was recorded after this place in the queue. */
  | { readonly afterSerial: number };

/** Everybody who follows the log. */
export class Watchers {
  readonly #watchers = new Set<Watcher>();
  /** The newest event that everybody was told of. */
  #announced: number | undefined;

  /** From here on it misses nothing; whoever joins must leave (`using`). */
  join(selection: EventSelection, start: WatchStart): Watcher {
    const watcher: Watcher = new Watcher(selection, start, this.#announced, () => this.#watchers.delete(watcher));
    this.#watchers.add(watcher);
    return watcher;
  }

  /** In the order of the log, after they were stored. */
  announce(events: readonly StoredEvent[]): void {
    const first = events[0]?.record.sequence;
    const last = events.at(-1)?.record.sequence;
    if (first === undefined || last === undefined) return;
    const before = this.#announced ?? first - 1;
    for (const watcher of this.#watchers) watcher.offer(events, before);
    this.#announced = last;
  }
}

/**
 * One who follows. Events come from the buffer as they happen; whenever the buffer cannot have had them all (at the start of
 * a watch from the past, after an overflow, when another process appended), from the store. It listens before it reads:
 * what is stored during the reading waits in the buffer, and the cursor removes what came both ways.
 */
class Watcher implements Disposable {
  readonly #selection: EventSelection;
  readonly #afterSerial: number;
  readonly #leave: () => void;
  #buffer: EventRecord[] = [];
  #behind: boolean;
  /** Everything up to here was delivered, or is not for this watcher. Undefined until the first event. */
  #cursor: number | undefined;
  #wake = (): void => {};

  constructor(selection: EventSelection, start: WatchStart, announced: number | undefined, leave: () => void) {
    this.#selection = selection;
    this.#leave = leave;
    this.#behind = "afterSequence" in start;
    this.#afterSerial = "afterSerial" in start ? start.afterSerial : 0;
    this.#cursor = "afterSequence" in start ? start.afterSequence : announced;
  }

  async *follow(store: EventMetadata, signal: AbortSignal): AsyncGenerator<EventRecord> {
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    while (!signal.aborted) {
      if (this.#behind) {
        for await (const event of this.#missed(store)) {
          yield event;
          if (signal.aborted) return;
        }
        continue;
      }
      const event = this.#buffer.shift();
      if (event === undefined) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
      } else if (this.#advance(event)) yield event;
    }
  }

  /** `before`: the event that these follow, unless another process stored some in between. */
  offer(events: readonly StoredEvent[], before: number): void {
    this.#cursor ??= before;
    if (events[0]?.record.sequence !== before + 1) this.#behind = true;
    for (const { serial, record } of events) {
      if (serial <= this.#afterSerial) this.#cursor = record.sequence;
      else if (isSelected(this.#selection, record)) this.#buffer.push(record);
    }
    if (this.#buffer.length > BUFFERED_EVENTS) this.#behind = true;
    if (this.#behind) this.#buffer = [];
    this.#wake();
  }

  [Symbol.dispose](): void {
    this.#leave();
  }

  async *#missed(store: EventMetadata): AsyncGenerator<EventRecord> {
    this.#behind = false;
    let page: readonly EventRecord[];
    do {
      const query = { ...this.#selection, afterSequence: this.#cursor ?? 0, limit: READ_AT_ONCE };
      page = await store.listEvents(query);
      for (const event of page) if (this.#advance(event)) yield event;
    } while (page.length === READ_AT_ONCE);
  }

  #advance(event: EventRecord): boolean {
    if (event.sequence <= (this.#cursor ?? 0)) return false;
    this.#cursor = event.sequence;
    return true;
  }
}
