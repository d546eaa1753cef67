import { Errno, syscalls } from "@agentfense/fuse";
import { deflatePiece } from "../changes/binary-patch.ts";
import { type CollectSpec, collectChanges, type WriteSpec, writeChanges } from "../changes/collect.ts";
import { type DiffSpec, diffChanges, type FileDiff } from "../changes/diff.ts";
import { discardChanges } from "../changes/discard.ts";
import { type ListSpec, listChanges } from "../changes/list.ts";
import { settleChanges } from "../changes/settle.ts";
import { copyContents, materialise } from "../codebase/copying.ts";
import { inspectStaged, receiveContent, storeContent } from "../codebase/receiving.ts";
import { cleanCodebases, releaseKept, removeDirectory } from "../codebase/removal.ts";
import { runSteps, settleSteps } from "../codebase/steps.ts";
import { listTree } from "../codebase/tree.ts";
import { homeIn } from "../filesystem/delta.ts";
import { closing } from "../filesystem/descriptors.ts";
import { freezeIdle } from "../filesystem/freezing.ts";
import { bytesOf } from "../filesystem/names.ts";
import { Quota, type QuotaUse } from "../filesystem/quota.ts";
import { removeTree } from "../filesystem/remove-tree.ts";
import { atOnce } from "../filesystem/walks.ts";

const { Open } = syscalls;

/** What a job gets beside its input. */
export interface JobContext {
  /** Aborted when the caller no longer wants the result. A job that takes long looks at it. */
  readonly signal: AbortSignal;
}

type Unsignalled<Spec> = Omit<Spec, "signal">;
type Piece = Parameters<typeof deflatePiece>;

/**
 * Work that would hold up the thread of the API: one row per job, run on a thread of its own by `jobs.run(name, input)`.
 * Input and output cross by structured clone; descriptors are numbers that mean the same in every thread of the process,
 * and stay the caller's to close.
 */
export const JOBS = {
  receiveContent,
  storeContent,
  copyContents,
  inspectStaged,
  runSteps,
  settleSteps,
  materialise,
  removeDirectory,
  releaseKept,
  cleanCodebases,
  listTree,
  collectChanges: (spec: Unsignalled<CollectSpec>, { signal }: JobContext) => collectChanges({ ...spec, signal }),
  writeChanges: (spec: Unsignalled<WriteSpec>, { signal }: JobContext) => writeChanges({ ...spec, signal }),
  listChanges: (spec: Unsignalled<ListSpec>, { signal }: JobContext) =>
    Array.fromAsync(listChanges({ ...spec, signal })),
  diffChanges: diffSome,
  deflatePiece: (spec: Piece[0] & Piece[1]) => deflatePiece(spec, spec),
  discardChanges,
  settleChanges,
  measureDelta: (spec: { readonly delta: string }) => measureDelta(spec).bytes,
  measureLayer: measureDelta,
  freezeIdle,
  /** With all that is beside its tree. Absent is fine. */
  removeDelta: ({ delta }: { readonly delta: string }) => removeTree(delta),
} as const satisfies Readonly<Record<string, (input: never, context: JobContext) => unknown>>;

export type JobName = keyof typeof JOBS;
export type JobInput<Name extends JobName> = Parameters<(typeof JOBS)[Name]>[0];
export type JobOutput<Name extends JobName> = Awaited<ReturnType<(typeof JOBS)[Name]>>;

export interface JobRequest {
  readonly name: JobName;
  readonly input: unknown;
}

/** The texts of one answer; whoever wants more asks again for what is missing. */
const MOST_CHARACTERS = 4 << 20;

export interface SomeDiffs {
  readonly diffs: readonly FileDiff[];
  /** False when there was more than one answer should hold; at least one is always there. */
  readonly complete: boolean;
}

/** Compares single entries: the texts cross as a whole. */
async function diffSome(
  spec: Omit<DiffSpec, "exact"> & { readonly paths: readonly string[] },
  { signal }: JobContext,
): Promise<SomeDiffs> {
  const diffs: FileDiff[] = [];
  let characters = 0;
  for await (const one of diffChanges({ ...spec, exact: true })) {
    signal.throwIfAborted();
    diffs.push(one);
    characters += one.text.length;
    if (characters > MOST_CHARACTERS) return { diffs, complete: false };
  }
  return { diffs, complete: true };
}

/** What a delta holds, and the home in it; nothing when there is none. */
function measureDelta({ delta }: { readonly delta: string }): QuotaUse {
  const quota = new Quota({});
  for (const directory of [`${delta}/tree`, homeIn(delta)]) {
    const tree = syscalls.open(bytesOf(directory), Open.PATH | Open.DIRECTORY | Open.NOFOLLOW);
    if (tree === -Errno.ENOENT) continue;
    if (tree < 0) throw new Error("the delta cannot be measured");
    using _open = closing(tree);
    atOnce(new Quota({}, quota).measure(tree));
  }
  const { bytes, files } = quota.used;
  return { bytes, files };
}
