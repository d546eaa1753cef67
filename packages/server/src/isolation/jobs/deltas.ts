import { Errno, syscalls } from "@agentfense/fuse";
import { deflatePiece as deflate, type PatchFile } from "../changes/binary-patch.ts";
import {
  type Collection,
  type CollectSpec,
  collectChanges as collect,
  type WriteSpec,
  type WrittenChanges,
  writeChanges as write,
} from "../changes/collect.ts";
import { type DiffSpec, diffChanges as diff, type FileDiff } from "../changes/diff.ts";
import { type Change, type ListSpec, listChanges as list } from "../changes/list.ts";
import { homeIn } from "../filesystem/delta.ts";
import { bytesOf } from "../filesystem/names.ts";
import { Quota } from "../filesystem/quota.ts";
import { removeTree } from "../filesystem/remove-tree.ts";
import { atOnce } from "../filesystem/walks.ts";

const { Open } = syscalls;

/** As in jobs.ts, which this file cannot import. */
interface Cancellable {
  readonly signal: AbortSignal;
}

export async function collectChanges(spec: Omit<CollectSpec, "signal">, { signal }: Cancellable): Promise<Collection> {
  return await collect({ ...spec, signal });
}

export async function writeChanges(spec: Omit<WriteSpec, "signal">, { signal }: Cancellable): Promise<WrittenChanges> {
  return await write({ ...spec, signal });
}

export async function listChanges(spec: Omit<ListSpec, "signal">, { signal }: Cancellable): Promise<readonly Change[]> {
  return await Array.fromAsync(list({ ...spec, signal }));
}

/** The texts of one answer; whoever wants more asks again for what is missing. */
const MOST_CHARACTERS = 4 << 20;

export interface SomeDiffs {
  readonly diffs: readonly FileDiff[];
  /** False when there was more than one answer should hold; at least one is always there. */
  readonly complete: boolean;
}

/** Of single entries: the texts cross as a whole. */
export async function diffChanges(
  spec: Omit<DiffSpec, "exact"> & { readonly paths: readonly string[] },
  { signal }: Cancellable,
): Promise<SomeDiffs> {
  const diffs: FileDiff[] = [];
  let characters = 0;
  for await (const one of diff({ ...spec, exact: true })) {
    signal.throwIfAborted();
    diffs.push(one);
    characters += one.text.length;
    if (characters > MOST_CHARACTERS) return { diffs, complete: false };
  }
  return { diffs, complete: true };
}

/** A piece of a patch that is too long to be held. */
export async function deflatePiece(spec: {
  readonly delta: string;
  readonly lowers: readonly string[];
  readonly file: PatchFile;
  readonly offset: number;
}): Promise<Uint8Array> {
  return await deflate(spec, spec);
}

/** Bytes that a delta holds, and the home in it; 0 when there is none. */
export function measureDelta({ delta }: { readonly delta: string }): number {
  const quota = new Quota({});
  for (const directory of [`${delta}/tree`, homeIn(delta)]) {
    const tree = syscalls.open(bytesOf(directory), Open.PATH | Open.DIRECTORY | Open.NOFOLLOW);
    if (tree === -Errno.ENOENT) continue;
    if (tree < 0) throw new Error("the delta cannot be measured");
    try {
      atOnce(new Quota({}, quota).measure(tree));
    } finally {
      syscalls.close(tree);
    }
  }
  return quota.used.bytes;
}

/** With all that is beside its tree. Absent is fine. */
export async function removeDelta({ delta }: { readonly delta: string }): Promise<void> {
  await removeTree(delta);
}
