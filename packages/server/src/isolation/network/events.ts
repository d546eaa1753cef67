import type { GateEvent } from "./gate.ts";

/** The same is told again after so long. */
const AGAIN_AFTER_MS = 60_000;
/** Of so many different ones; the rest of that minute is one event without a host. */
const MOST_AT_A_TIME = 200;

export type Happening = Omit<GateEvent, "count">;

/**
 * Tells of the first of its kind at once, and of those that followed within a minute together when it is over: a box may make any number of them. One
 * that let something through is told once for each name and port.
 */
export class EventFold implements Disposable {
  readonly #tell: (event: GateEvent) => void;
  readonly #seen = new Map<string, { readonly event: Happening; more: number }>();
  readonly #allowed = new Set<string>();
  #untold = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(tell: (event: GateEvent) => void) {
    this.#tell = tell;
  }

  add(event: Happening): void {
    const key = `${event.kind} ${event.host} ${event.port} ${event.sentence}`;
    if (event.kind === "allowed") {
      if (this.#allowed.has(key)) return;
      if (this.#allowed.size >= MOST_ALLOWED) this.#allowed.clear();
      this.#allowed.add(key);
      this.#tell({ ...event, count: 1 });
      return;
    }
    this.#timer ??= setTimeout(() => this.flush(), AGAIN_AFTER_MS).unref();
    const same = this.#seen.get(key);
    if (same !== undefined) same.more += 1;
    else if (this.#seen.size >= MOST_AT_A_TIME) this.#untold += 1;
    else {
      this.#seen.set(key, { event, more: 0 });
      this.#tell({ ...event, count: 1 });
    }
  }

  /** Tells of all that followed, and begins anew. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { event, more } of this.#seen.values()) if (more > 0) this.#tell({ ...event, count: more });
    if (this.#untold > 0) {
      const sentence = "many other names were refused; they are not on this sandbox's list";
      this.#tell({ kind: "denied", host: "", port: 0, sentence, count: this.#untold });
    }
    this.#seen.clear();
    this.#untold = 0;
  }

  [Symbol.dispose](): void {
    this.flush();
  }
}

const MOST_ALLOWED = 10_000;
