import { basename, dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { check, Errno, syscalls } from "@agentfense/fuse";
import { closing } from "./descriptors.ts";
import { readDirectory } from "./directory-reader.ts";
import { bytesOf } from "./names.ts";

const { AT_REMOVEDIR, Open, Rename } = syscalls;

/** So many entries are removed before others get their turn on this thread. */
const ENTRIES_A_TURN = 200;

/**
 * Removes a directory of the host in which an agent could make anything: paths deeper than the kernel takes, directories
 * without permission bits, names that are no text. Works on descriptors and follows no link. What is deeper than two levels
 * is first carried to the top, so that the depth costs neither descriptors nor long paths. Absent is fine.
 */
export async function removeTree(path: string): Promise<void> {
  const parent = syscalls.open(bytesOf(dirname(path)), Open.PATH | Open.DIRECTORY);
  if (parent === -Errno.ENOENT) return;
  check("open the directory above", parent);
  using _open = closing(parent);
  await removeEntry(parent, bytesOf(basename(path)));
}

async function removeEntry(parent: number, name: string): Promise<void> {
  const asFile = syscalls.unlinkat(parent, name);
  if (asFile === 0 || asFile === -Errno.ENOENT) return;
  const top = check("open", openToRemove(parent, name));
  try {
    let removed = 0;
    let carried = 0;
    for (let names = list(top); names.length > 0; names = list(top)) {
      for (const child of names) {
        if (++removed % ENTRIES_A_TURN === 0) await nextTurn();
        if (syscalls.unlinkat(top, child) === 0) continue;
        const directory = check("open", openToRemove(top, child));
        for (const grandchild of list(directory)) {
          if (syscalls.unlinkat(directory, grandchild) < 0) carried = carryUp(directory, grandchild, top, carried);
          if (++removed % ENTRIES_A_TURN === 0) await nextTurn();
        }
        syscalls.close(directory);
        check("rmdir", syscalls.unlinkat(top, child, AT_REMOVEDIR));
      }
    }
  } finally {
    syscalls.close(top);
  }
  check("rmdir", syscalls.unlinkat(parent, name, AT_REMOVEDIR));
}

/** Mode bits stand in the way of an ordinary user only. */
function openToRemove(parent: number, name: string): number {
  const fd = syscalls.openat(parent, name, Open.PATH | Open.DIRECTORY);
  if (fd >= 0) syscalls.chmodHeld(fd, 0o700);
  return fd;
}

function list(directory: number): string[] {
  const names: string[] = [];
  check(
    "list",
    readDirectory(directory, (name) => names.push(name)),
  );
  return names;
}

/** Gives a directory a name of its own in `top`; returns the count to go on with. */
function carryUp(from: number, name: string, top: number, count: number): number {
  syscalls.chmodat(from, name, 0o700); // moving a directory changes it, so its owner needs the right to
  for (let next = count; ; next += 1) {
    const code = syscalls.renameat2(from, name, top, `carried-${next}`, Rename.NOREPLACE);
    if (code === -Errno.EEXIST) continue;
    check("rename", code);
    return next + 1;
  }
}
