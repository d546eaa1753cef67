// What the kernel answers, by the level of the path and the operation. docs/permissions.md shows this table, and
// test/docs/truth-table.test.ts performs every cell of it on a real mount.

export const LEVELS = ["none", "view", "read", "write"] as const;

export type TableLevel = (typeof LEVELS)[number];

/** "ok", the error, or for a listing that the name is not in it. */
type Result = "ok" | "absent" | "ENOENT" | "EACCES" | "EXDEV";

export interface Operation {
  readonly title: string;
  readonly results: Readonly<Record<TableLevel, Result>>;
}

const toKnow: Operation["results"] = { none: "ENOENT", view: "ok", read: "ok", write: "ok" };
const toRead: Operation["results"] = { none: "ENOENT", view: "EACCES", read: "ok", write: "ok" };
const toChange: Operation["results"] = { none: "ENOENT", view: "EACCES", read: "EACCES", write: "ok" };
const toMake: Operation["results"] = { none: "EACCES", view: "EACCES", read: "EACCES", write: "ok" };
const toMoveTree: Operation["results"] = { none: "ENOENT", view: "EACCES", read: "EACCES", write: "EXDEV" };

export const OPERATIONS = {
  stat: { title: "`stat`: type, size, times", results: toKnow },
  list: { title: "is listed in its directory", results: { ...toKnow, none: "absent" } },
  readDirectory: { title: "list a directory", results: toKnow },
  enter: { title: "enter a directory (`chdir`)", results: toKnow },
  readLink: { title: "`readlink`", results: toKnow },
  open: { title: "open to read", results: toRead },
  mayRead: { title: "`access`, to read", results: toRead },
  execute: { title: "execute", results: toRead },
  getAttribute: { title: "get a `user.*` attribute", results: toRead },
  openToWrite: { title: "open to write", results: toChange },
  mayWrite: { title: "`access`, to write", results: toChange },
  truncate: { title: "`truncate`", results: toChange },
  changeMode: { title: "`chmod`", results: toChange },
  changeTimes: { title: "set times", results: toChange },
  setAttribute: { title: "set a `user.*` attribute", results: toChange },
  remove: { title: "delete a file", results: toChange },
  removeDirectory: { title: "delete a directory", results: toChange },
  moveAway: { title: "rename a file to a writable place", results: toChange },
  linkFrom: { title: "hard link from here to a writable place", results: toChange },
  moveDirectory: { title: "rename a directory of the codebase", results: toMoveTree },
  create: { title: "create a file", results: toMake },
  makeDirectory: { title: "create a directory", results: toMake },
  makeLink: { title: "create a symbolic link", results: toMake },
  makePipe: { title: "create a named pipe", results: toMake },
  linkTo: { title: "hard link from a writable place to here", results: toMake },
  moveHere: { title: "rename a writable file to here, nothing there yet", results: toMake },
  replace: { title: "rename a writable file onto what is here", results: toMake },
} satisfies Readonly<Record<string, Operation>>;

export type OperationId = keyof typeof OPERATIONS;
