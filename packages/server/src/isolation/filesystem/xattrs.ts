import { syscalls } from "@agentfense/fuse";

// Only user.* attributes exist for the sandbox. Those of other name spaces belong to the host: they are neither shown nor
// taken, and what asks for them (security.capability before a write, security.selinux from ls) hears that there is none. So
// do the delta's own.

const USER_PREFIX = "user.";
/** The delta's own notes on its files. */
const OWN_PREFIX = "user.agentfense.";
export const ORIGIN_XATTR = `${OWN_PREFIX}origin`;
/** The largest value and list Linux allows, and room for one. */
export const XATTR_MAX = 65536;
export const scratch = Buffer.alloc(XATTR_MAX);

export function isUserXattr(name: string): boolean {
  return name.startsWith(USER_PREFIX) && name.length > USER_PREFIX.length && !name.startsWith(OWN_PREFIX);
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
