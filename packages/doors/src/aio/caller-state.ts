import { Budget } from "../budget.ts";
import type { DoorCaller } from "../door.ts";
import type { Kernel } from "./code/kernel.ts";
import type { BashSession } from "./commands/bash-session.ts";
import { SessionTable } from "./commands/session-table.ts";
import type { ShellSession } from "./commands/shell-session.ts";
import { Refusal } from "./envelope.ts";
import { Edits } from "./files/editor.ts";
import type { Watcher } from "./files/watch.ts";

const MOST_KERNELS = 5;

export interface CallerLimits {
  readonly maxSessions: number;
  readonly idleMs: number;
}

/** What one caller has begun in one sandbox. */
export class CallerState {
  readonly shells: SessionTable<ShellSession>;
  readonly bashes: SessionTable<BashSession>;
  readonly kernels: SessionTable<Kernel>;
  readonly watchers: SessionTable<Watcher>;
  readonly edits: Edits = new Edits();
  readonly idleMs: number;
  /** Shared by all callers. */
  readonly outputs: Budget;
  lastUsedMs = performance.now();

  constructor({ maxSessions, idleMs }: CallerLimits, outputs: Budget) {
    this.idleMs = idleMs;
    this.outputs = outputs;
    this.shells = new SessionTable("session", maxSessions);
    this.bashes = new SessionTable("session", maxSessions);
    this.kernels = new SessionTable("session", MOST_KERNELS);
    this.watchers = new SessionTable("watcher", maxSessions);
  }

  get isBusy(): boolean {
    return [this.shells, this.bashes, this.kernels].some(({ all }) => all.some(([, { isBusy }]) => isBusy));
  }

  async close(): Promise<void> {
    await Promise.all([this.shells.clear(), this.bashes.clear(), this.kernels.clear(), this.watchers.clear()]);
  }
}

const MOST_PLACES = 1000;
const MOST_OF_AN_OWNER = 100;
/** How much output of commands is kept for all callers, in characters. */
const MOST_OUTPUT = 256 * 1024 * 1024;

/**
 * What callers have begun, by sandbox and by caller. Nobody finds what another began: whoever shares it would act with the
 * authority of who opened it. Therefore also two keys of one owner are two callers.
 */
export class CallerStates {
  readonly #places = new Map<string, { readonly ownerId: string | undefined; readonly place: CallerState }>();
  readonly #outputs = new Budget(MOST_OUTPUT);
  readonly #limits: CallerLimits;
  readonly #sweeping: NodeJS.Timeout;

  constructor(limits: CallerLimits) {
    this.#limits = limits;
    this.#sweeping = setInterval(() => void this.#sweep(), Math.min(limits.idleMs, 60_000)).unref();
  }

  of(caller: DoorCaller, sandboxId: string): CallerState {
    const { ownerId } = caller;
    const key = keyOf(caller, sandboxId);
    const known = this.#places.get(key)?.place;
    if (known !== undefined) {
      known.lastUsedMs = performance.now();
      return known;
    }
    // Idle ones are gone from here at once, and closed in the background.
    if (this.#isFull(ownerId)) void this.#sweep();
    if (this.#isFull(ownerId)) throw new Refusal("too many sandboxes are in use here", { status: 429 });
    const place = new CallerState(this.#limits, this.#outputs);
    this.#places.set(key, { ownerId, place });
    return place;
  }

  /** The sandbox is gone, or this caller may not know of it. */
  async drop(caller: DoorCaller, sandboxId: string): Promise<void> {
    const key = keyOf(caller, sandboxId);
    const known = this.#places.get(key);
    this.#places.delete(key);
    await known?.place.close();
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    const all = [...this.#places.values()];
    this.#places.clear();
    await Promise.allSettled(all.map(({ place }) => place.close()));
  }

  #isFull(ownerId: string | undefined): boolean {
    if (this.#places.size >= MOST_PLACES) return true;
    return [...this.#places.values()].filter((each) => each.ownerId === ownerId).length >= MOST_OF_AN_OWNER;
  }

  async #sweep(): Promise<void> {
    const since = performance.now() - this.#limits.idleMs;
    const idle = [...this.#places].filter(([, { place }]) => place.lastUsedMs < since && !place.isBusy);
    for (const [key] of idle) this.#places.delete(key);
    await Promise.allSettled(idle.map(([, { place }]) => place.close()));
  }
}

function keyOf({ ownerId, role, keyId }: DoorCaller, sandboxId: string): string {
  return JSON.stringify([sandboxId, ownerId ?? null, role, keyId ?? null]);
}
