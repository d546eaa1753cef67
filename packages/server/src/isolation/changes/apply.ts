import { syscalls } from "@agentfense/fuse";
import type { Rule } from "@agentfense/permission";
import { Application } from "./application.ts";
import { CodebaseMover, Rehearsal } from "./destination.ts";
import { requireChanges } from "./diff.ts";
import { LockedCodebase, LockedDelta, OpenLayers } from "./places.ts";
import { leavingRules } from "./policy-files.ts";
import type { ApplyReport } from "./report.ts";
import { Selection } from "./selection.ts";

export interface ApplySpec {
  readonly delta: string;
  /** The codebase directory itself, not a symlink to it. */
  readonly lower: string;
  /** Only what these give level `write` is changed, whatever the rules were when the delta was made. */
  readonly rules: readonly Rule[];
  /** Only these, each with all that is below it. One without a change is an error, and nothing is done. */
  readonly paths?: readonly string[];
  readonly signal?: AbortSignal;
  /** Report what would happen and touch nothing. */
  readonly dryRun?: boolean;
  /** Told how many changes were dealt with, after each. */
  readonly onProgress?: (done: number) => void;
}

/**
 * Writes a delta's changes into the codebase. Each entry is decided on its own: one that is refused or fails does not stop
 * the rest. What was applied leaves the delta, so that an old delta never overwrites newer work; the rest stays. When it is
 * interrupted, every file is the old or the new one, and applying again does what is left.
 */
export async function applyChanges(spec: ApplySpec): Promise<ApplyReport> {
  const scope = leavingRules(spec.rules);
  const selection = Selection.of(spec.paths);
  const dryRun = spec.dryRun ?? false;
  using locked = new LockedDelta(spec.delta);
  using codebase = new LockedCodebase(spec.lower);
  if (spec.paths !== undefined) {
    using layers = new OpenLayers(spec.delta, [spec.lower]);
    await requireChanges(layers, selection);
  }
  const { signal } = spec;
  const destination = dryRun ? new Rehearsal() : new CodebaseMover({ delta: locked.delta, signal });
  const application = new Application({ destination, signal, onProgress: spec.onProgress });
  // The descriptor that holds the lock is not the one that is read from: reading moves its position.
  const lower = syscalls.openat(codebase.root, ".", syscalls.Open.RDONLY | syscalls.Open.DIRECTORY);
  try {
    await application.directory({
      delta: locked.delta.tree,
      lower,
      names: [],
      scope,
      selection,
      opaque: undefined,
    });
  } finally {
    syscalls.close(lower);
  }
  return { dryRun, changes: application.changes };
}
