import { Errno, syscalls } from "@agentfense/fuse";
import { type Collection, type CollectSpec, collectChanges as collect } from "../changes/collect.ts";
import { type DiffSpec, diffChanges as diff, type FileDiff } from "../changes/diff.ts";
import { type Change, type ListSpec, listChanges as list } from "../changes/list.ts";
import { type WriteSpec, type WrittenChanges, writeChanges as write } from "../changes/write.ts";
import { Quota } from "../filesystem/quota.ts";
import { removeTree } from "../filesystem/remove-tree.ts";

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

/** Of a few paths: the texts cross as a whole. */
export async function diffChanges(spec: DiffSpec, { signal }: Cancellable): Promise<readonly FileDiff[]> {
  const diffs: FileDiff[] = [];
  for await (const one of diff(spec)) {
    signal.throwIfAborted();
    diffs.push(one);
  }
  return diffs;
}

/** Bytes that a delta holds; 0 when there is none. */
export function measureDelta({ delta }: { readonly delta: string }): number {
  const tree = syscalls.open(
    Buffer.from(`${delta}/tree`).toString("latin1"),
    syscalls.Open.PATH | syscalls.Open.DIRECTORY | syscalls.Open.NOFOLLOW,
  );
  if (tree === -Errno.ENOENT) return 0;
  if (tree < 0) throw new Error("the delta cannot be measured");
  try {
    const quota = new Quota({});
    quota.measure(tree);
    return quota.usedBytes;
  } finally {
    syscalls.close(tree);
  }
}

/** With all that is beside its tree. Absent is fine. */
export async function removeDelta({ delta }: { readonly delta: string }): Promise<void> {
  await removeTree(delta);
}
