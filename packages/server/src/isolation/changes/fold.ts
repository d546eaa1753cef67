import type { Change } from "./list.ts";

export interface ChangeCounts {
  readonly added: number;
  readonly modified: number;
  readonly deleted: number;
  readonly renamed: number;
}

/** A change, or all ignored changes of a directory as one. */
export type ListedChange = Change & {
  /** How many it stands for, of each kind; `size` is of all of them. */
  readonly folded?: ChangeCounts;
};

/**
 * For people: directory by directory, and what the codebase ignores behind everything else, one item for each directory of
 * it. A single ignored change stays what it is: its name says more than a number.
 */
export function foldChanges(changes: readonly Change[]): ListedChange[] {
  const shown = changes.filter(({ ignoredIn }) => ignoredIn === undefined);
  const groups = Map.groupBy(
    changes.filter(({ ignoredIn }) => ignoredIn !== undefined),
    ({ ignoredIn }) => ignoredIn!,
  );
  const folded = [...groups].map(([path, group]): ListedChange => (group.length === 1 ? group[0]! : fold(path, group)));
  return [...shown.toSorted(byDirectory), ...folded.toSorted((a, b) => compare(a.path, b.path))];
}

function fold(path: string, group: readonly Change[]): ListedChange {
  const count = (kind: Change["kind"]): number => group.filter((change) => change.kind === kind).length;
  const folded = {
    added: count("added"),
    modified: count("modified"),
    deleted: count("deleted"),
    renamed: count("renamed"),
  };
  const [first] = group;
  const kind = group.every((change) => change.kind === first!.kind) ? first!.kind : "modified";
  const size = group.reduce((sum, change) => sum + (change.kind === "deleted" ? 0 : change.size), 0);
  return { kind, path, type: "directory", size, ignoredIn: path, folded };
}

function byDirectory(a: Change, b: Change): number {
  return compare(directoryOf(a.path), directoryOf(b.path)) || compare(a.path, b.path);
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
