import type { ChangeCounts } from "@agentfense/sdk";
import { printable } from "../terminal.ts";

export const KIND_LETTERS = { added: "A", modified: "M", deleted: "D", renamed: "R" } as const;

/** A path as people see it: a directory ends in a slash. */
export function shownPath({ path, type }: { readonly path: string; readonly type: string }): string {
  return `${printable(path)}${type === "directory" && path !== "/" ? "/" : ""}`;
}

/** "1 change", "2 changes". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** "200 added, 3 deleted" */
export function countsText(counts: ChangeCounts): string {
  const kinds = ["added", "modified", "deleted", "renamed"] as const;
  return kinds.flatMap((kind) => (counts[kind] === 0 ? [] : [`${counts[kind]} ${kind}`])).join(", ");
}

/** Entries of one directory that are shown before the rest of them is only counted. */
const SHOWN_IN_DIRECTORY = 12;

/**
 * The lines of a summary, directory by directory: many changes in one do not push those of others out. The items come in
 * that order.
 */
export function summaryLines<Item extends { readonly path: string }>(
  items: readonly Item[],
  describe: (item: Item) => string,
): string[] {
  const groups = Map.groupBy(items, ({ path }) => path.slice(0, path.lastIndexOf("/") + 1));
  return [...groups].flatMap(([directory, group]) => {
    const lines = group.slice(0, SHOWN_IN_DIRECTORY).map(describe);
    const more = group.length - lines.length;
    return more === 0 ? lines : [...lines, `… and ${more} more in ${printable(directory)}`];
  });
}
