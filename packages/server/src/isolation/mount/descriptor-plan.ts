import { readFileSync } from "node:fs";

/** How the server's descriptors are shared out. */
export interface DescriptorPlan {
  /** Open files and orphans of all workspaces together. */
  readonly openings: number;
  /** Directories that each mount thread keeps open. */
  readonly directories: number;
}

/** More directories than this are kept open for nobody's sake. */
const MOST_DIRECTORIES = 2048;

/**
 * One half is for what the sandboxes have open, a quarter for directories on the way there. The last quarter is never theirs:
 * connections, commands, and the end of a command need it.
 */
export function planDescriptors(limit: number, threads: number): DescriptorPlan {
  return {
    openings: Math.floor(limit / 2),
    directories: Math.min(MOST_DIRECTORIES, Math.floor(limit / 4 / threads)),
  };
}

/** What the kernel allows this process, which has raised it as far as it may when it started. */
export function descriptorLimit(): number {
  const limits = readFileSync("/proc/self/limits", "latin1");
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN) || 1024;
}
