import { Errno, type Reply, syscalls } from "@agentfense/fuse";

// Only user.* attributes exist for the sandbox. Those of other name spaces belong to the host: they are neither shown nor
// taken, and what asks for them (security.capability before a write, security.selinux from ls) hears that there is none. So
// do the delta's own.

const USER_PREFIX = "user.";
/** The delta's own notes on its files. */
const OWN_PREFIX = "user.agentfense.";
export const ORIGIN_XATTR = `${OWN_PREFIX}origin`;
/** The largest value and list Linux allows. */
const XATTR_MAX = 65536;
const scratch = Buffer.alloc(XATTR_MAX);

export function isUserXattr(name: string): boolean {
  return name.startsWith(USER_PREFIX) && name.length > USER_PREFIX.length && !name.startsWith(OWN_PREFIX);
}

/** An entry: by the descriptor of its directory and its name, or, with an empty name, by its own descriptor. */
export interface XattrTarget {
  readonly fd: number;
  readonly name: string;
}

// The calls go by path, since O_PATH descriptors refuse them. A magic link names the very file that is held; a name behind
// one is not followed.
function pathOf(target: XattrTarget): string {
  return target.name === "" ? `/proc/self/fd/${target.fd}` : `/proc/self/fd/${target.fd}/${target.name}`;
}

export function getXattr(target: XattrTarget, name: string, size: number, reply: Reply): number {
  const get = target.name === "" ? syscalls.getxattrFollowing : syscalls.getxattr;
  const length = get(pathOf(target), name, scratch, Math.min(size, XATTR_MAX));
  if (length < 0) return -length;
  if (size === 0) reply.xattrSize(length);
  else {
    scratch.copy(reply.bytes, reply.dataOffset, 0, length);
    reply.setDataLength(length);
  }
  return 0;
}

export function listXattrs(target: XattrTarget, size: number, reply: Reply): number {
  const list = target.name === "" ? syscalls.listxattrFollowing : syscalls.listxattr;
  const length = list(pathOf(target), scratch, XATTR_MAX);
  // A file system that cannot keep any has none.
  if (length < 0 && -length !== Errno.EOPNOTSUPP) return -length;
  const names = length <= 0 ? [] : scratch.toString("latin1", 0, length).split("\0");
  const shown = names
    .filter(isUserXattr)
    .map((name) => `${name}\0`)
    .join("");
  if (size === 0) reply.xattrSize(shown.length);
  else if (shown.length > size) return Errno.ERANGE;
  else reply.text(shown);
  return 0;
}

export function setXattr(target: XattrTarget, name: string, value: Uint8Array, flags: number): number {
  const set = target.name === "" ? syscalls.setxattrFollowing : syscalls.setxattr;
  return -set(pathOf(target), name, value, flags);
}

export function removeXattr(target: XattrTarget, name: string): number {
  const remove = target.name === "" ? syscalls.removexattrFollowing : syscalls.removexattr;
  return -remove(pathOf(target), name);
}

/** Copies user.* attributes between two open files or directories; a target that cannot keep them goes without. */
export function copyUserXattrs(from: number, to: number): void {
  const source = `/proc/self/fd/${from}`;
  const target = `/proc/self/fd/${to}`;
  for (const name of userXattrNames(source)) {
    const length = syscalls.getxattrFollowing(source, name, scratch, XATTR_MAX);
    if (length >= 0) syscalls.setxattrFollowing(target, name, scratch.subarray(0, length), 0);
  }
}

function userXattrNames(path: string): string[] {
  const length = syscalls.listxattrFollowing(path, scratch, XATTR_MAX);
  return length <= 0 ? [] : scratch.toString("latin1", 0, length).split("\0").filter(isUserXattr);
}
