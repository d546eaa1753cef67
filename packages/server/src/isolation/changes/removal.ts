import { syscalls } from "@agentfense/fuse";
import { LEVEL, type Scope } from "@agentfense/permission";
import { closing } from "../filesystem/descriptors.ts";
import { DirentType, readDirectory } from "../filesystem/directory-reader.ts";
import { textOf } from "../filesystem/names.ts";
import type { EntryHandle } from "./comparison.ts";
import { pathText } from "./walk.ts";

const { Open } = syscalls;

/** Takes an entry away, of a d_type; a directory is empty by then. 0 or an errno. */
type Remove = (place: EntryHandle, names: readonly string[], type: number) => number;

/** What removing an entry of the codebase with all below it came to. */
export interface RemovalResult {
  /** Nothing of it is left. */
  readonly gone: boolean;
  /** The first path that stays because the rules protect it. */
  readonly protectedPath?: string;
  /** Why something else stays. */
  readonly errno?: number;
}

/**
 * Removes an entry of the codebase as far as the rules allow: only what has level `write` goes, and a directory only when
 * nothing is left in it. Device nodes never showed in the sandbox, so it cannot have deleted them.
 */
export async function removeTree(
  place: EntryHandle,
  type: number,
  scope: Scope,
  names: readonly string[],
  remove: Remove,
): Promise<RemovalResult> {
  const isProtected = { gone: false, protectedPath: pathText(names) };
  if (type === DirentType.CHARACTER || type === DirentType.BLOCK) return isProtected;
  if (type === DirentType.DIRECTORY) {
    const below = await emptyTree(place, scope, names, remove);
    if (!below.gone) return below;
  }
  return scope.level < LEVEL.write ? isProtected : finish(-remove(place, names, type));
}

/** Removes what is in a directory, not the directory. */
export async function emptyTree(
  place: EntryHandle,
  scope: Scope,
  names: readonly string[],
  remove: Remove,
): Promise<RemovalResult> {
  await new Promise((resolve) => setImmediate(resolve));
  const directory = syscalls.openat(place.directory, place.name, Open.RDONLY | Open.DIRECTORY);
  if (directory < 0) return finish(directory);
  using _open = closing(directory);
  const entries: [name: string, type: number][] = [];
  const code = readDirectory(directory, (name, type) => entries.push([name, type]));
  if (code < 0) return finish(code);
  let result: RemovalResult = { gone: true };
  for (const [name, type] of entries) {
    const known = type === DirentType.UNKNOWN ? typeAt({ directory, name }) : type;
    const below = await removeTree({ directory, name }, known, scope.child(textOf(name)), [...names, name], remove);
    if (!below.gone) result = { ...below, ...result, gone: false };
  }
  return result;
}

/** The d_type of an entry, by asking for it. */
function typeAt({ directory, name }: EntryHandle): number {
  const stat = new syscalls.Stat();
  return syscalls.statat(directory, name, stat) < 0 ? DirentType.UNKNOWN : stat.type >> 12;
}

function finish(code: number): RemovalResult {
  return code < 0 ? { gone: false, errno: -code } : { gone: true };
}
