import { errnoName, syscalls } from "@agentfense/fuse";
import { LEVEL, type Policy, type Scope } from "@agentfense/permission";
import { type DeltaDirectory, readDeltaDirectory } from "../filesystem/delta-directory.ts";
import { textOf } from "../filesystem/names.ts";
import { namesIn } from "../filesystem/opaque.ts";
import { copyState } from "../filesystem/origin.ts";
import { ownRights } from "../filesystem/own-rights.ts";
import { isBornLater, isUnchanged, MODE_BITS, type Place, statOf } from "./comparison.ts";
import { ChangesError } from "./errors.ts";
import type { OpenLayers } from "./places.ts";
import type { Selection } from "./selection.ts";

const { FileType, Open } = syscalls;

export type ChangeKind = "added" | "modified" | "deleted";

/** A side of a change: where it is, and what stat says of it. Good until the walk goes on. */
export interface Side {
  readonly place: Place;
  readonly stat: syscalls.Stat;
}

export interface FoundChange {
  readonly kind: ChangeKind;
  /** Byte strings, from the root down. */
  readonly names: readonly string[];
  readonly old?: Side;
  readonly now?: Side;
  /** A directory of the delta that could not be read, or lies too deep: what it changes is not told. */
  readonly unread?: true;
}

/** Directories above an entry; a path of so many has long been too long for the kernel, and an agent has all day. */
export const DEPTH_LIMIT = 1000;

interface Level {
  readonly delta: number;
  readonly lowers: readonly number[];
  readonly names: readonly string[];
  readonly selection: Selection;
  /** Undefined where everything is told. */
  readonly scope: Scope | undefined;
  /** A directory above is shut against the codebase, so nothing of it shows here either. */
  readonly opaque: boolean;
}

/**
 * What the delta changes, in path order, restricted to a selection and, with a policy, to what the sandbox may read. No
 * symlink is followed on either side.
 */
export async function* walkChanges(
  layers: OpenLayers,
  selection: Selection,
  policy?: Policy,
): AsyncGenerator<FoundChange> {
  using _rights = ownRights(layers.tree);
  const root = readDeltaDirectory(layers.tree);
  if (typeof root === "number")
    throw new ChangesError("DELTA_UNUSABLE", `the delta cannot be read: ${errnoName(-root)}`);
  yield* changesIn(
    { delta: layers.tree, lowers: layers.lowers, names: [], selection, scope: policy?.root, opaque: false },
    root,
  );
}

async function* changesIn(level: Level, directory: DeltaDirectory): AsyncGenerator<FoundChange> {
  // Between directories others get their turn: a delta can be large.
  await new Promise((resolve) => setImmediate(resolve));
  const opaque = level.opaque || directory.opaque;
  const names = new Set([...directory.names, ...directory.whiteouts.keys(), ...(opaque ? namesIn(level.lowers) : [])]);
  for (const name of [...names].sort()) {
    const selection = level.selection.child(name);
    if (selection.standing === "outside") continue;
    const path = [...level.names, name];
    const scope = level.scope?.child(textOf(name));
    if (scope?.level === LEVEL.none && !scope.mayShowBelow) continue;
    const old = find(level.lowers, name);
    const within = selection.standing === "within" && tells(scope);
    if (directory.names.has(name)) yield* changesAt({ ...level, opaque, selection, scope, names: path }, name, old);
    else if (old !== undefined && within) yield { kind: "deleted", names: path, old };
  }
}

function tells(scope: Scope | undefined): boolean {
  return scope === undefined || scope.level >= LEVEL.read;
}

/** `level` is that of the directory, but for names, selection and scope, which are the entry's own. */
async function* changesAt(level: Level, name: string, old: Side | undefined): AsyncGenerator<FoundChange> {
  const now = find([level.delta], name);
  if (now === undefined) return;
  const change = {
    kind: old ? ("modified" as const) : ("added" as const),
    names: level.names,
    now,
    ...(old && { old }),
  };
  const within = level.selection.standing === "within" && tells(level.scope);
  if (now.stat.type !== FileType.DIRECTORY) {
    if (!within || (old !== undefined && (await isUnchanged(now.place, old.place)))) return;
    const isOvertaken = old === undefined || isBornLater(old.stat, now.stat);
    const state = isOvertaken ? copyState(level.delta, name, level.names.join("/"), now.stat) : "written";
    if (state !== "untouched") yield change;
    return;
  }
  const merged = old?.stat.type === FileType.DIRECTORY;
  const [delta = -1, ...lowers] = [level.delta, ...(merged ? level.lowers : [])].map((parent) =>
    syscalls.openat(parent, name, Open.PATH | Open.DIRECTORY),
  );
  try {
    using _rights = ownRights(delta);
    const tooDeep = level.names.length > DEPTH_LIMIT;
    const directory = delta < 0 || tooDeep ? delta : readDeltaDirectory(delta);
    const unread = typeof directory === "number";
    const sameMode = merged && (old.stat.mode & MODE_BITS) === (now.stat.mode & MODE_BITS);
    if (within && (unread || !sameMode)) yield unread ? { ...change, unread } : change;
    if (!unread) yield* changesIn({ ...level, delta, lowers: lowers.filter((fd) => fd >= 0) }, directory);
  } finally {
    for (const fd of [delta, ...lowers]) if (fd >= 0) syscalls.close(fd);
  }
}

/** The entry in the first of the directories that has the name. */
function find(directories: readonly number[], name: string): Side | undefined {
  for (const directory of directories) {
    const place = { directory, name };
    const stat = statOf(place);
    if (stat !== undefined) return { place, stat };
  }
  return undefined;
}

/** "/src/a.ts", as text. */
export function pathText(names: readonly string[]): string {
  return `/${names.map(textOf).join("/")}`;
}
