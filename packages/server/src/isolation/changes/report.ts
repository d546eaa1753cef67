import type { EntryType } from "./diff.ts";
import type { ChangeKind } from "./walk.ts";

/**
 * What became of one change.
 *
 *   applied   the codebase has it (in a dry run: would have it), and the delta no longer does
 *   refused   the rules forbid it, or it is nothing that is ever carried over; it stays in the delta
 *   failed    the host said no: disk full, permissions, a file that changed meanwhile; it stays in the delta
 */
export type Outcome = "applied" | "refused" | "failed";

export interface ChangeReport {
  readonly outcome: Outcome;
  readonly kind: ChangeKind;
  /** "/src/a.ts"; bytes that are not UTF-8 are lone surrogates U+DC80 to U+DCFF. */
  readonly path: string;
  readonly type: EntryType;
  /** Why it was not applied, or what else there is to know. */
  readonly reason?: string;
  /** The host may run or trust it without being asked to, or it is a link out of the workspace. */
  readonly sensitive: boolean;
  /** The codebase's file had changed after the sandbox made its own version of it. */
  readonly overwroteNewer: boolean;
}

export interface ApplyReport {
  readonly dryRun: boolean;
  /** In the order of their paths; that of a directory's mode comes after what is in it. */
  readonly changes: readonly ChangeReport[];
}
