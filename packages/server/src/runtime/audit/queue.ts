import type { EventDraft } from "../store/store.ts";

/** An event on its way to the store. Serials count what was queued since the log was opened. */
export interface QueuedEvent {
  readonly serial: number;
  readonly size: number;
  readonly draft: EventDraft;
}

export interface QueueLimits {
  readonly events: number;
  /** In UTF-16 units of data. */
  readonly size: number;
}

const QUEUE_LIMITS: QueueLimits = { events: 10_000, size: 16 * 1024 * 1024 };

/**
 * Holds events until the store has them, within limits. When the store falls behind, the denials of a sandbox come
 * together in one (an agent can make any number of them); when nothing else helps, events are dropped and counted.
 */
export class EventQueue {
  readonly #limits: QueueLimits;
  readonly #events: QueuedEvent[] = [];
  #size = 0;
  #taken = 0;
  #serial = 0;
  #dropped: Record<string, number> = {};

  constructor(limits: QueueLimits = QUEUE_LIMITS) {
    this.#limits = limits;
  }

  get lastSerial(): number {
    return this.#serial;
  }

  get length(): number {
    return this.#events.length;
  }

  /** False: it has no place of its own. */
  push(draft: EventDraft, size: number): boolean {
    if (draft.type === "permission_denied" && this.#isCrowded(0.5) && this.#merge(draft)) return false;
    if (this.#isCrowded(1)) {
      this.#dropped[draft.type] = (this.#dropped[draft.type] ?? 0) + 1;
      return false;
    }
    this.#append(draft, size);
    return true;
  }

  /** How many of each type were dropped since this was last asked; undefined: none. */
  takeDropped(): Readonly<Record<string, number>> | undefined {
    const dropped = this.#dropped;
    this.#dropped = {};
    return Object.keys(dropped).length === 0 ? undefined : dropped;
  }

  /** Past the limits: for the event that tells of the dropped ones. */
  force(draft: EventDraft): void {
    this.#append(draft, 0);
  }

  /** The oldest. They stay queued until `stored` says that they are safe; asking again gives them again. */
  take(limit: number): readonly QueuedEvent[] {
    const taken = this.#events.slice(0, limit);
    this.#taken = taken.length;
    return taken;
  }

  /** Those taken last are in the store. */
  stored(): void {
    for (const { size } of this.#events.splice(0, this.#taken)) this.#size -= size;
    this.#taken = 0;
  }

  #append(draft: EventDraft, size: number): void {
    this.#serial += 1;
    this.#size += size;
    this.#events.push({ serial: this.#serial, size, draft });
  }

  #isCrowded(share: number): boolean {
    return this.#events.length >= this.#limits.events * share || this.#size >= this.#limits.size * share;
  }

  /** Counts a denial with the newest of its sandbox that is not on its way. */
  #merge(draft: EventDraft): boolean {
    const index = this.#events.findLastIndex(
      ({ draft: { type, sandboxId } }) => type === "permission_denied" && sandboxId === draft.sandboxId,
    );
    const queued = this.#events[index];
    if (queued === undefined || index < this.#taken) return false;
    const suppressed = suppressedBy(queued.draft) + 1 + suppressedBy(draft);
    const data = { ...queued.draft.data, suppressed };
    this.#events[index] = { ...queued, draft: { ...queued.draft, data } };
    return true;
  }
}

function suppressedBy({ data }: EventDraft): number {
  return typeof data.suppressed === "number" ? data.suppressed : 0;
}
