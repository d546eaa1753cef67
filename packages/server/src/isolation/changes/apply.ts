import { Application, type ApplicationOptions } from "./application.ts";
import type { ApplyReport } from "./destination.ts";
import { CodebaseMover } from "./destination.ts";
import { LockedCodebase, LockedDelta } from "./places.ts";

/** Only what the rules give level `write` is changed. */
export interface ApplySpec extends Omit<ApplicationOptions, "destination"> {
  readonly delta: string;
  /** The codebase directory itself, not a symlink to it. */
  readonly lower: string;
  /** Report what would happen and touch nothing. */
  readonly dryRun?: boolean;
}

/**
 * Writes a delta's changes into the codebase. Each entry is decided on its own: one that is refused or fails does not stop
 * the rest. What was applied leaves the delta, so that an old delta never overwrites newer work; the rest stays. When it is
 * interrupted, every file is the old or the new one, and applying again does what is left.
 */
export async function applyChanges(spec: ApplySpec): Promise<ApplyReport> {
  const { signal, dryRun = false } = spec;
  using locked = new LockedDelta(spec.delta);
  using codebase = new LockedCodebase(spec.lower);
  const destination = dryRun ? {} : new CodebaseMover({ delta: locked.delta, signal });
  const application = new Application({ ...spec, destination });
  await application.run({ tree: locked.delta.tree, lowers: [codebase.root] });
  return { dryRun, changes: application.changes };
}
