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
