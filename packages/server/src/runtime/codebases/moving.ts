import { invalid, RuntimeError } from "../errors.ts";
import type { CodebaseMetadata } from "../store/store.ts";
import { ancestorsOf, checkPath, comparePaths, fileNotFound, shown } from "./paths.ts";
import { directoryEntry, IMPLICIT_DIRECTORY, type Stamp } from "./planning.ts";
import type { PathChange } from "./wanted.ts";

/** A rename of a file, or of a directory with all below it. */
export interface MovePlan {
  readonly changes: readonly PathChange[];
  /** Where each new path comes from. */
  readonly moved: ReadonlyMap<string, string>;
}

/** Nothing may be at the new path; directories on the way to it appear. */
export async function planMove(
  store: Pick<CodebaseMetadata, "entries" | "listEntries">,
  codebaseId: string,
  from: string,
  to: string,
  stamp: Stamp,
): Promise<MovePlan> {
  const ancestors = ancestorsOf(to);
  const [source, target, ...onTheWay] = await store.entries(codebaseId, [from, to, ...ancestors]);
  if (source === undefined) throw fileNotFound(from);
  if (target !== undefined) {
    throw new RuntimeError("FILE_EXISTS", `${shown(to)} exists already`, { details: { path: to } });
  }
  if (ancestors.includes(from)) {
    throw invalid(`${shown(from)} cannot be moved into itself`);
  }
  const blocking = onTheWay.find((entry) => entry !== undefined && entry.kind !== "directory");
  if (blocking !== undefined) {
    const where = `${shown(blocking.path)}, which is a ${blocking.kind}`;
    throw new RuntimeError("FILE_WRONG_KIND", `${shown(to)} cannot be below ${where}`, { details: { path: to } });
  }
  const below =
    source.kind === "directory" ? await store.listEntries(codebaseId, { directory: from, recursive: true }) : [];
  const moved = new Map<string, string>();
  const changes: PathChange[] = ancestors
    .filter((_, index) => onTheWay[index] === undefined)
    .map((path) => ({ path, before: undefined, after: directoryEntry(path, IMPLICIT_DIRECTORY, stamp) }));
  for (const entry of [source, ...below]) {
    const path = to + entry.path.slice(from.length);
    checkPath(path);
    moved.set(path, entry.path);
    changes.push({ path: entry.path, before: entry, after: undefined });
    changes.push({ path, before: undefined, after: { ...entry, path, version: stamp.version } });
  }
  return { changes: changes.sort((a, b) => comparePaths(a.path, b.path)), moved };
}
