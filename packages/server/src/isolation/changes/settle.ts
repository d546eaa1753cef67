import { syscalls } from "@agentfense/fuse";
import type { Delta } from "../filesystem/delta.ts";
import { namesOf } from "../filesystem/names.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";
import {
  letGo,
  letGoDirectory,
  openDirectories,
  openToCodebase,
  type SettlingPlace,
} from "../filesystem/settlement.ts";
import { atOnce, turn, type Walk } from "../filesystem/walks.ts";
import { LockedDelta, OpenLayers } from "./places.ts";

const { Open } = syscalls;

export interface SettleSpec {
  readonly delta: string;
  /** Codebase directories, top first. */
  readonly lowers: readonly string[];
  readonly entries: readonly SettledEntry[];
}

/**
 * Takes entries that the codebase has too out of a delta that nobody has mounted; directories that nothing is left in follow.
 * Gives the paths of those that are no longer what they were, and stay.
 */
export async function settleChanges({ delta: path, lowers, entries }: SettleSpec): Promise<readonly string[]> {
  using locked = new LockedDelta(path);
  using layers = new OpenLayers(path, lowers);
  const { delta } = locked;
  const stayed: string[] = [];
  const emptied = new Map<string, readonly string[]>();
  for (const { path: entryPath, stamp } of atOnce(deepestFirst(entries))) {
    await new Promise((resolve) => setImmediate(resolve));
    const names = namesOf(entryPath);
    if (names === undefined || names.length === 0) continue;
    const outcome = within(delta, layers.lowers, names, (place) => atOnce(letGo(place, stamp)).outcome);
    if (outcome === "stays") stayed.push(entryPath);
    if (outcome === "left") emptied.set(names.slice(0, -1).join("/"), names.slice(0, -1));
  }
  for (const start of [...emptied.values()].sort((a, b) => b.length - a.length)) {
    for (let names = start; names.length > 0; names = names.slice(0, -1)) {
      if (within(delta, layers.lowers, names, (place) => atOnce(letGoDirectory(place)).outcome) !== "left") break;
    }
  }
  return stayed;
}

/** What is in a directory leaves before the directory. */
export function* deepestFirst(entries: readonly SettledEntry[]): Walk<SettledEntry[]> {
  const byDepth: SettledEntry[][] = [];
  for (const entry of entries) {
    turn.entries += 1;
    yield;
    const depth = entry.path.split("/").length;
    while (byDepth.length <= depth) byDepth.push([]);
    byDepth[depth]!.push(entry);
  }
  return byDepth.reverse().flat();
}

type Outcome = "left" | "stays" | "nothing";

/** Runs with the place of a path's last name; a directory on the way that is shut against the codebase is opened to it. */
function within(
  delta: Delta,
  roots: readonly number[],
  names: readonly string[],
  run: (place: SettlingPlace) => Outcome,
): Outcome {
  let directory = syscalls.dup(delta.tree);
  let lowers: readonly number[] = roots.map((root) => syscalls.dup(root));
  try {
    for (const name of names.slice(0, -1)) {
      const below = openDirectories(lowers, name);
      const next = syscalls.openat(directory, name, Open.PATH | Open.DIRECTORY);
      for (const fd of [directory, ...lowers]) syscalls.close(fd);
      [directory, lowers] = [next, below];
      if (directory < 0) return "nothing";
      if (atOnce(openToCodebase(delta, directory, lowers)) < 0) return "stays";
    }
    return run({ delta, directory, lowers, name: names.at(-1)! });
  } finally {
    for (const fd of [directory, ...lowers]) if (fd >= 0) syscalls.close(fd);
  }
}
