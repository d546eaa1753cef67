import { syscalls } from "@agentfense/fuse";
import { Application } from "./application.ts";
import { Collecting, type Collection, type CollectSpec } from "./collect.ts";
import { CodebaseWriter } from "./destination.ts";
import { requireChanges } from "./diff.ts";
import { LockedCodebase, OpenLayers } from "./places.ts";
import { leavingRules } from "./policy-files.ts";
import { Selection } from "./selection.ts";

export interface WriteSpec extends Omit<CollectSpec, "staging" | "maxBytes"> {
  /** Tell what would happen and touch nothing. */
  readonly dryRun?: boolean | undefined;
}

export interface WrittenChanges extends Collection {
  /** Where the codebase's file had changed after the sandbox made its own version of it. */
  readonly overwritten: readonly string[];
}

/**
 * Writes the changes of a delta that may be in use into its codebase, deciding about each as applyChanges does. The delta
 * keeps them: what may leave it is told, each with the stamp of what was written, and leaves when it is settled, unless it
 * changed again meanwhile. When it is interrupted, every file is the old or the new one, and writing again does the rest.
 */
export async function writeChanges(spec: WriteSpec): Promise<WrittenChanges> {
  const scope = leavingRules(spec.rules);
  const selection = Selection.of(spec.paths);
  const { signal } = spec;
  using layers = new OpenLayers(spec.delta, [spec.lower]);
  using codebase = spec.dryRun ? undefined : new LockedCodebase(spec.lower);
  if (spec.paths !== undefined) await requireChanges(layers, selection);
  const collecting = new Collecting({ codebase: codebase && new CodebaseWriter(signal) });
  const application = new Application({ destination: collecting, signal });
  // Not the descriptor that holds the lock: reading moves its position. Through the layers' own: the name may lead elsewhere
  // by now.
  const lower = syscalls.openat(layers.lowers[0] ?? -1, ".", syscalls.Open.RDONLY | syscalls.Open.DIRECTORY);
  try {
    await application.directory({
      delta: layers.tree,
      lower,
      names: [],
      scope,
      selection,
      opaque: undefined,
    });
  } finally {
    if (lower >= 0) syscalls.close(lower);
  }
  const overwritten = application.changes.filter(({ overwroteNewer }) => overwroteNewer).map(({ path }) => path);
  return { changes: collecting.changes, settled: collecting.settled, overwritten };
}
