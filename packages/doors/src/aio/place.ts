import type { Budget } from "../budget.ts";
import type { Kernel } from "./code/kernel.ts";
import type { BashSession } from "./commands/bash-session.ts";
import { SessionTable } from "./commands/session-table.ts";
import type { ShellSession } from "./commands/shell-session.ts";
import { Edits } from "./files/edits.ts";
import type { Watcher } from "./files/watcher.ts";

const MOST_KERNELS = 5;

export interface PlaceLimits {
  readonly maxSessions: number;
  readonly idleMs: number;
}

/** What one caller has begun in one sandbox. */
export class Place {
  readonly shells: SessionTable<ShellSession>;
  readonly bashes: SessionTable<BashSession>;
  readonly kernels: SessionTable<Kernel>;
  readonly watchers: SessionTable<Watcher>;
  readonly edits: Edits = new Edits();
  readonly idleMs: number;
  /** Shared by all callers. */
  readonly outputs: Budget;
  lastUsedMs = performance.now();

  constructor({ maxSessions, idleMs }: PlaceLimits, outputs: Budget) {
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
