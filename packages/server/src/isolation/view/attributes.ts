import { Errno, syscalls } from "@agentfense/fuse";
import type { NewAttributes, ViewStat } from "./api.ts";

/** All others are the system's. */
const PREFIX = "user.";
const LONGEST_LIST = 64 * 1024;
const LONGEST_VALUE = 64 * 1024;
const list = Buffer.alloc(LONGEST_LIST);
const value = Buffer.alloc(LONGEST_VALUE);

/** The attributes of what stands at a name of an open directory. What cannot be read has none. */
export function attributesAt(directory: number, name: string): NonNullable<ViewStat["attributes"]> {
  const path = `/proc/self/fd/${directory}/${name}`;
  const found: Record<string, string> = {};
  for (const each of namesIn(syscalls.listxattr(path, list, LONGEST_LIST))) {
    const length = syscalls.getxattr(path, each, value, LONGEST_VALUE);
    if (length >= 0) found[utf8(each.slice(PREFIX.length))] = value.toString("utf8", 0, length);
  }
  return found;
}

/** Sets attributes of an open file. Returns a negated errno when one is refused. */
export function setAttributes(fd: number, { values, prefix }: NewAttributes): number {
  const path = `/proc/self/fd/${fd}`;
  if (prefix !== "") {
    const before = namesIn(syscalls.listxattrFollowing(path, list, LONGEST_LIST));
    const begin = PREFIX + latin1(prefix);
    for (const each of before) {
      if (!each.startsWith(begin) || Object.hasOwn(values, utf8(each.slice(PREFIX.length)))) continue;
      const code = syscalls.removexattrFollowing(path, each);
      if (code < 0 && code !== -Errno.ENODATA) return code;
    }
  }
  for (const [name, text] of Object.entries(values)) {
    const code = syscalls.setxattrFollowing(path, PREFIX + latin1(name), Buffer.from(text), 0);
    if (code < 0) return code;
  }
  return 0;
}

/** As bytes, which is how names go to the kernel. */
function namesIn(length: number): string[] {
  if (length <= 0) return [];
  return list
    .toString("latin1", 0, length)
    .split("\0")
    .filter((name) => name.startsWith(PREFIX));
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}
