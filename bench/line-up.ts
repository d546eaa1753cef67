import { canRunNode, hasFuse, isRoot } from "./account.ts";
import { type Identity, run } from "./client.ts";
import type { Options } from "./options.ts";
import { copySeed, type Seed } from "./seed.ts";
import { TARGETS, type TargetKind } from "./targets/table.ts";
import type { Target } from "./targets/target.ts";
import type { WorkDirectory } from "./work-directory.ts";

export interface LeftOut {
  readonly target: string;
  readonly reason: string;
}

/** Which of the wanted targets this machine can measure. */
export async function available(
  names: readonly string[],
  user: Identity | undefined,
): Promise<{ able: string[]; leftOut: LeftOut[] }> {
  const verdicts = await Promise.all(
    names.map(async (target) => ({ target, reason: await obstacle(TARGETS[target]!, user) })),
  );
  return {
    able: verdicts.filter(({ reason }) => reason === undefined).map(({ target }) => target),
    leftOut: verdicts.flatMap(({ target, reason }) => (reason === undefined ? [] : [{ target, reason }])),
  };
}

export interface LineUp extends AsyncDisposable {
  readonly targets: readonly Target[];
  readonly leftOut: readonly LeftOut[];
}

/**
 * Starts every target once per placement. All stand at the same time, idle but for the one being sampled, so that the
 * samples of both placements are taken in turn too.
 */
export async function lineUp(
  names: readonly string[],
  seed: Seed,
  work: WorkDirectory,
  user: Identity | undefined,
  { placements, freshProcess }: Options,
): Promise<LineUp> {
  const copies = new Map<string, Promise<string>>();
  const copyOfTree = (name: string) => {
    const path = work.at(`copy-for-${name}`);
    const copy = copies.get(name) ?? copySeed(seed, path).then(() => path);
    copies.set(name, copy);
    return copy;
  };
  await using started = new AsyncDisposableStack();
  const targets: Target[] = [];
  const leftOut: LeftOut[] = [];
  for (const name of names) {
    for (const pinned of placements) {
      const own = work.at(`${name}-${pinned ? "pinned" : "free"}`);
      const ground = { tree: seed.directory, copyOfTree, directory: own, pinned, user, freshProcess };
      const target = await TARGETS[name]!.make(ground);
      started.defer(() => target.stop());
      try {
        await target.start();
        targets.push(target);
      } catch (error) {
        leftOut.push({ target: name, reason: error instanceof Error ? error.message : String(error) });
        break;
      }
    }
  }
  const standing = started.move();
  return { targets, leftOut, [Symbol.asyncDispose]: () => standing.disposeAsync() };
}

/** Why this kind of target cannot be measured here. */
async function obstacle(kind: TargetKind, user: Identity | undefined): Promise<string | undefined> {
  if (kind.needs.includes("root") && !isRoot()) return "needs root";
  if (kind.needs.includes("fuse") && !hasFuse()) return "needs /dev/fuse";
  if (kind.needs.includes("user") && user !== undefined && !(await canRunNode(user))) {
    return "the ordinary user cannot start the Node of this repository";
  }
  if (kind.program === undefined) return undefined;
  const found = await run(["which", kind.program], { pinned: false }).catch(() => undefined);
  return found === undefined ? `${kind.program} is not installed` : undefined;
}
