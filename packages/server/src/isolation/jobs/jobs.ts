import { discardChanges } from "../changes/discard.ts";
import { settleChanges } from "../changes/settle.ts";
import { copyContents } from "../codebase/copying.ts";
import { materialise } from "../codebase/pinning.ts";
import { receiveContent } from "../codebase/receiving.ts";
import { cleanCodebases, releaseKept, removeDirectory } from "../codebase/removal.ts";
import { inspectStaged } from "../codebase/staging.ts";
import { runSteps } from "../codebase/steps.ts";
import { listTree } from "../codebase/tree.ts";
import {
  collectChanges,
  deflatePiece,
  diffChanges,
  listChanges,
  measureDelta,
  removeDelta,
  writeChanges,
} from "./deltas.ts";

/** What a job gets beside its input. */
export interface JobContext {
  /** Aborted when the caller no longer wants the result. A job that takes long looks at it. */
  readonly signal: AbortSignal;
}

/**
 * Work that would hold up the thread of the API: one row per job, run on a thread of its own by `jobs.run(name, input)`.
 * Input and output cross by structured clone; descriptors are numbers that mean the same in every thread of the process,
 * and stay the caller's to close.
 */
export const JOBS = {
  receiveContent,
  copyContents,
  inspectStaged,
  runSteps,
  materialise,
  removeDirectory,
  releaseKept,
  cleanCodebases,
  listTree,
  collectChanges,
  writeChanges,
  listChanges,
  diffChanges,
  deflatePiece,
  discardChanges,
  settleChanges,
  measureDelta,
  removeDelta,
} as const satisfies Readonly<Record<string, (input: never, context: JobContext) => unknown>>;

export type JobName = keyof typeof JOBS;
export type JobInput<Name extends JobName> = Parameters<(typeof JOBS)[Name]>[0];
export type JobOutput<Name extends JobName> = Awaited<ReturnType<(typeof JOBS)[Name]>>;

export interface JobRequest {
  readonly name: JobName;
  readonly input: unknown;
}
