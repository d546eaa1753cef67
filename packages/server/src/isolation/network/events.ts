import type { MessagePort } from "node:worker_threads";
import type { GateEvent, OwnerAnswer, OwnerQuestion } from "./gate.ts";

/** The same is told again after so long. */
const AGAIN_AFTER_MS = 60_000;
/** How many different events are told in a minute; the rest of that minute is one event without a host. */
const MOST_AT_A_TIME = 200;
/** Whose program is looked for: that takes the server's time. */
const MOST_LOOKS = 10;
/** Whoever is refused waits for it. */
const LOOK_MS = 250;

export type UncountedEvent = Omit<GateEvent, "count">;

/**
 * Tells of the first of its kind at once, and of those that followed within a minute together when it is over: a box may make any number of them. One
 * that let something through is told once for each name and port, and so is the use of a secret.
 */
export class EventFold implements Disposable {
  readonly #tell: (event: GateEvent) => void;
  readonly #seen = new Map<string, { readonly event: UncountedEvent; more: number }>();
  readonly #allowed = new Set<string>();
  readonly #looking = new Map<string, Promise<void>>();
  #looks = 0;
  #untold = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(tell: (event: GateEvent) => void) {
    this.#tell = tell;
  }

  add(event: UncountedEvent): void {
    const key = keyOf(event);
    if (event.kind === "allowed" || event.kind === "secret_used") {
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

  /**
   * The same with the name of the program, for the first of its kind. What comes back resolves when it is told: as long the program has
   * to be there.
   */
  addWith(event: UncountedEvent, program: (() => Promise<string | undefined>) | undefined): Promise<void> | undefined {
    const key = keyOf(event);
    const looking = this.#looking.get(key);
    if (looking !== undefined) {
      void looking.then(() => this.add(event)); // one that waits is enough
      return undefined;
    }
    const isNew = !this.#seen.has(key) && this.#seen.size < MOST_AT_A_TIME;
    if (program === undefined || !isNew || this.#looks >= MOST_LOOKS) {
      this.add(event);
      return undefined;
    }
    this.#looks += 1;
    const told = program().then((found) => {
      this.#looking.delete(key);
      this.add(found === undefined ? event : { ...event, program: found });
    });
    this.#looking.set(key, told);
    return told;
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
    this.#looks = 0;
  }

  [Symbol.dispose](): void {
    this.flush();
  }
}

const MOST_ALLOWED = 10_000;

function keyOf({ kind, host, port, secret, sentence }: UncountedEvent): string {
  return `${kind} ${host} ${port} ${secret ?? sentence}`;
}

/** Asks the server's other end, which knows the box, for the program that has a socket. */
export class SocketOwners {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, (program: string | undefined) => void>();
  #next = 1;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on("message", ({ id, program }: OwnerAnswer) => this.#waiting.get(id)?.(program));
    port.unref();
  }

  async of(protocol: "tcp" | "udp", port: number): Promise<string | undefined> {
    const id = this.#next++;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const patience = setTimeout(resolve, LOOK_MS, undefined).unref();
    this.#waiting.set(id, resolve);
    this.#port.postMessage({ id, protocol, port } satisfies OwnerQuestion);
    return await promise.finally(() => {
      clearTimeout(patience);
      this.#waiting.delete(id);
    });
  }
}
