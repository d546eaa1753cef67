import type { ChangeCounts } from "@agentfense/sdk";
import { printable } from "./terminal.ts";

// Numbers, times and changes in the words of the command line.

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

/** How many changes a line of a list stands for. */
export function numberIn({ folded }: { readonly folded?: ChangeCounts | undefined }): number {
  return folded === undefined ? 1 : folded.added + folded.modified + folded.deleted + folded.renamed;
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

const SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** A number of bytes for people. */
export function showSize(bytes: number): string {
  let size = bytes;
  let unit = 0;
  for (; size >= 1024 && unit < SIZE_UNITS.length - 1; unit += 1) size /= 1024;
  return `${unit === 0 ? size : size.toFixed(1)} ${SIZE_UNITS[unit]}`;
}

/** To the second; "" for a moment that has not come. */
export function showTime(time: Date | undefined): string {
  return time === undefined ? "" : time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** A path as one word of a command line that can be typed. */
export function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${printable(path).replaceAll("'", "'\\''")}'`;
}
