import { readFileSync } from "node:fs";

/** How the server's descriptors are shared out. */
export interface DescriptorPlan {
  /** Open files and orphans of all workspaces together. */
  readonly openings: number;
  /** Directories that each engine keeps open. */
  readonly directories: number;
}

/** More directories than this are kept open for nobody's sake. */
const MOST_DIRECTORIES = 2048;
/** One sandbox has at most so many times what is still free. */
const SHARES = 7;

/**
 * One half is for what the sandboxes have open, a quarter for directories on the way there. The last quarter is never theirs:
 * connections, commands, and the end of a command need it.
 */
export function planDescriptors(limit: number, engines: number): DescriptorPlan {
  return {
    openings: Math.floor(limit / 2),
    directories: Math.min(MOST_DIRECTORIES, Math.floor(limit / 4 / engines)),
  };
}

/** What the kernel allows this process, which has raised it as far as it may when it started. */
export function descriptorLimit(): number {
  const limits = readFileSync("/proc/self/limits", "latin1");
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN) || 1024;
}

/**
 * A part of the server's descriptors that all sandboxes share for one purpose; others need the rest. What cannot be let go of is
 * counted also beyond it.
 */
export class DescriptorRoom {
  #free: number;

  constructor(descriptors: number) {
    this.#free = descriptors;
  }

  get isFull(): boolean {
    return this.#free <= 0;
  }

  /** For one who has so many already: nobody gets all of it, whoever comes later finds some. */
  takeShare(count: number, own: number): boolean {
    if (own + count > SHARES * (this.#free - count)) return false;
    this.hold(count);
    return true;
  }

  take(): boolean {
    if (this.isFull) return false;
    this.hold();
    return true;
  }

  hold(count = 1): void {
    this.#free -= count;
  }

  giveBack(count = 1): void {
    this.#free += count;
  }
}
