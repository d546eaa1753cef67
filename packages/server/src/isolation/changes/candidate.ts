import type { syscalls } from "@agentfense/fuse";
import type { Scope } from "@agentfense/permission";
import type { Place } from "./comparison.ts";
import type { Selection } from "./selection.ts";

/** A directory of the delta and the one of the codebase that it changes. */
export interface Pair {
  readonly delta: number;
  /** -1 where the codebase lacks it: when nothing is written there. */
  readonly lower: number;
  readonly names: readonly string[];
  readonly scope: Scope;
  readonly selection: Selection;
  /** The mark that shuts this directory, or one above, against the codebase: nothing of the codebase's shows here. */
  readonly opaque: syscalls.Stat | undefined;
}

/** One entry of the delta, on its way into the codebase. */
export interface Candidate {
  readonly names: readonly string[];
  readonly scope: Scope;
  readonly selection: Selection;
  readonly source: Place;
  readonly target: Place;
  readonly isDeletion: boolean;
  /** In the delta: the entry, the whiteout, or the mark that deletes everything in its directory. */
  readonly now: syscalls.Stat;
  readonly old: syscalls.Stat | undefined;
}
