import { randomBytes } from "node:crypto";
import { Errno, syscalls } from "@agentfense/fuse";
import { readDirectory } from "../filesystem/directory-reader.ts";
import { copyData } from "../filesystem/transfer.ts";
import { copyUserXattrs } from "../filesystem/xattrs.ts";
import { MODE_BITS, openRegular, type Place, readTarget, statOf } from "./comparison.ts";

const { AT_REMOVEDIR, FileType, Open, Rename, Stat } = syscalls;

// Every entry is complete before it takes its name in the codebase, by one rename: a crash leaves the old or the new one.
// Until then it has no name at all where the file system can do that (O_TMPFILE), else a name of this form in the directory
// it is meant for. The codebase is locked by whoever makes such names, so those that are found are a dead process's.
const UNFINISHED = /^\.agentfense-apply-[0-9a-f]{16}$/;

export function isUnfinishedName(name: string): boolean {
  return UNFINISHED.test(name);
}

function unfinishedName(): string {
  return `.agentfense-apply-${randomBytes(8).toString("hex")}`;
}

/** Removes what a killed apply left in a directory of the codebase; it never leaves a directory with content. */
export function removeUnfinished(directory: number): void {
  const found: string[] = [];
  readDirectory(directory, (name) => {
    if (isUnfinishedName(name)) found.push(name);
  });
  for (const name of found) {
    if (syscalls.unlinkat(directory, name) < 0) syscalls.unlinkat(directory, name, AT_REMOVEDIR);
  }
}

/** Puts a copy of the delta's file in place of whatever has the target's name but a filled directory. 0 or an errno. */
export async function installFile(source: Place, target: Place, signal?: AbortSignal): Promise<number> {
  const before = new Stat();
  const from = openDeltaFile(source, before);
  if (from < 0) return -from;
  let name = "";
  let to = -1;
  try {
    to = syscalls.openat(target.directory, ".", Open.TMPFILE | Open.RDWR, 0o600);
    if (to < 0) {
      name = unfinishedName();
      to = syscalls.openat(target.directory, name, Open.RDWR | Open.CREAT | Open.EXCL, 0o600);
      if (to < 0) return -to;
    }
    let code = await copyData(from, to, before.size, signal);
    if (code === 0) code = dress(from, to, before, target);
    if (code === 0) code = syscalls.fsync(to);
    if (code === 0 && hasChanged(from, before)) code = -Errno.ESTALE;
    if (code < 0) return -code;
    if (name === "") {
      name = unfinishedName();
      code = syscalls.linkDescriptor(to, target.directory, name);
      if (code < 0) return -code;
    }
    code = putInPlace(target, name);
    if (code === 0) name = "";
    return -code;
  } finally {
    if (name !== "") syscalls.unlinkat(target.directory, name);
    if (to >= 0) syscalls.close(to);
    syscalls.close(from);
  }
}

/** Recreates the delta's symlink; where it leads is nobody's business here. 0 or an errno. */
export function installLink(source: Place, target: Place): number {
  const stat = statOf(source);
  const leadsTo = readTarget(source);
  if (stat === undefined || leadsTo === undefined) return Errno.ESTALE;
  const name = unfinishedName();
  let code = syscalls.symlinkat(leadsTo, target.directory, name);
  if (code < 0) return -code;
  giveTo(ownerFor(target), target.directory, name);
  syscalls.utimensat(target.directory, name, stat.mtime, stat.mtimeNs, stat.mtime, stat.mtimeNs);
  code = putInPlace(target, name);
  if (code < 0) syscalls.unlinkat(target.directory, name);
  return -code;
}

/** Makes a directory, in place of a file or link if one has the name; its mode comes when it is filled. 0 or an errno. */
export function installDirectory(target: Place): number {
  const old = statOf(target);
  const owner = ownerFor(target);
  const name = old === undefined ? target.name : unfinishedName();
  let code = syscalls.mkdirat(target.directory, name, 0o700);
  if (code < 0) return -code;
  giveTo(owner, target.directory, name);
  if (old !== undefined) {
    code = putInPlace(target, name);
    if (code < 0) syscalls.unlinkat(target.directory, name, AT_REMOVEDIR);
  }
  return -code;
}

/** Gives what is complete its name. What had it goes; a directory only if it is empty. */
function putInPlace({ directory, name }: Place, unfinished: string): number {
  const [old, now] = [statOf({ directory, name }), statOf({ directory, name: unfinished })];
  const oldIsDirectory = old?.type === FileType.DIRECTORY;
  const replaces = old === undefined || oldIsDirectory === (now?.type === FileType.DIRECTORY);
  if (replaces) return syscalls.renameat2(directory, unfinished, directory, name);
  // rename(2) does not put a file in place of a directory, nor the other way round; the two change names instead.
  const code = syscalls.renameat2(directory, unfinished, directory, name, Rename.EXCHANGE);
  if (code < 0) return code;
  const removed = syscalls.unlinkat(directory, unfinished, oldIsDirectory ? AT_REMOVEDIR : 0);
  if (removed < 0) syscalls.renameat2(directory, unfinished, directory, name, Rename.EXCHANGE);
  return removed;
}

/** Opens a file of the delta, and says what it is then. The agent may have made it unreadable to a server that is not root. */
export function openDeltaFile(source: Place, stat: syscalls.Stat): number {
  const fd = openRegular(source, stat);
  const own = statOf(source);
  if (-fd !== Errno.EACCES || own?.type !== FileType.REGULAR) return fd;
  if (syscalls.chmodat(source.directory, source.name, 0o600) < 0) return fd;
  const again = openRegular(source, stat);
  syscalls.chmodat(source.directory, source.name, own.mode & MODE_BITS);
  if (again >= 0) syscalls.fstat(again, stat);
  return again;
}

/** The open file is not what it was. */
export function hasChanged(fd: number, before: syscalls.Stat): boolean {
  const now = new Stat();
  if (syscalls.fstat(fd, now) < 0) return true;
  const same = now.size === before.size && now.mtime === before.mtime && now.mtimeNs === before.mtimeNs;
  return !(same && now.ctime === before.ctime && now.ctimeNs === before.ctimeNs);
}

// Mode and times are the delta's; setuid, setgid, sticky, owner and all attributes but user.* are not carried over.
function dress(from: number, to: number, stat: syscalls.Stat, target: Place): number {
  copyUserXattrs(from, to);
  let code = giveTo(ownerFor(target), to, "");
  if (code === 0) code = syscalls.fchmod(to, stat.mode & MODE_BITS);
  return code < 0 ? code : syscalls.utimensat(to, "", stat.atime, stat.atimeNs, stat.mtime, stat.mtimeNs);
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The owner of the file that stands there now, else that of the directory. Only root can give anything away. */
function ownerFor(target: Place): Owner | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const old = statOf(target);
  if (old !== undefined && old.type !== FileType.DIRECTORY) return old;
  const directory = new Stat();
  return syscalls.fstat(target.directory, directory) < 0 ? undefined : directory;
}

function giveTo(owner: Owner | undefined, directory: number, name: string): number {
  return owner === undefined ? 0 : syscalls.fchownat(directory, name, owner.uid, owner.gid);
}
