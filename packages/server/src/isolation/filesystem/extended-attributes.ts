import { type Caller, Errno, type Reply, syscalls } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, overQuota, requireLevel } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Node } from "./node.ts";
import { isUserXattr, scratch, XATTR_MAX } from "./xattrs.ts";

// The calls go by path, since O_PATH descriptors refuse them. A magic link names the very file that is held; a name behind
// one is not followed.
const OF_NAME = {
  get: syscalls.getxattr,
  list: syscalls.listxattr,
  set: syscalls.setxattr,
  remove: syscalls.removexattr,
};
const OF_DESCRIPTOR = {
  get: syscalls.getxattrFollowing,
  list: syscalls.listxattrFollowing,
  set: syscalls.setxattrFollowing,
  remove: syscalls.removexattrFollowing,
};

interface Target {
  readonly path: string;
  readonly calls: typeof OF_NAME;
}

/** user.* attributes by rule: they are content, so they take the right to read, and to write. */
export class ExtendedAttributes {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  get(node: Node, name: string, size: number, caller: Caller, reply: Reply): number {
    if (!isUserXattr(name)) return name.startsWith("system.") ? Errno.EOPNOTSUPP : Errno.ENODATA;
    const errno = requireLevel(this.#context, node, node.isDirectory ? LEVEL.view : LEVEL.read, "getxattr", caller);
    if (errno !== 0) return errno;
    const target = this.#target(node);
    if (typeof target === "number") return target;
    const length = target.calls.get(target.path, name, scratch, Math.min(size, XATTR_MAX));
    if (length < 0) return -length;
    if (size === 0) reply.xattrSize(length);
    else {
      scratch.copy(reply.bytes, reply.dataOffset, 0, length);
      reply.setDataLength(length);
    }
    return 0;
  }

  list(node: Node, size: number, caller: Caller, reply: Reply): number {
    const errno = requireLevel(this.#context, node, node.isDirectory ? LEVEL.view : LEVEL.read, "listxattr", caller);
    if (errno !== 0) return errno;
    const target = this.#target(node);
    if (typeof target === "number") return target;
    const length = target.calls.list(target.path, scratch, XATTR_MAX);
    // A file system that cannot keep any has none.
    if (length < 0 && -length !== Errno.EOPNOTSUPP) return -length;
    const names = length <= 0 ? [] : scratch.toString("latin1", 0, length).split("\0");
    const shown = names.flatMap((name) => (isUserXattr(name) ? `${name}\0` : [])).join("");
    if (size === 0) reply.xattrSize(shown.length);
    else if (shown.length > size) return Errno.ERANGE;
    else reply.text(shown);
    return 0;
  }

  set(node: Node, name: string, value: Buffer, flags: number, caller: Caller): number {
    const target = this.#changeable(node, name, "setxattr", caller);
    if (typeof target === "number") return target;
    if (this.#context.writing?.quota?.makeRoom(0) === false)
      return overQuota(this.#context, node, undefined, "setxattr", caller);
    return this.#charged(node, -target.calls.set(target.path, name, value, flags));
  }

  remove(node: Node, name: string, caller: Caller): number {
    const target = this.#changeable(node, name, "removexattr", caller);
    return typeof target === "number" ? target : this.#charged(node, -target.calls.remove(target.path, name));
  }

  // Attributes that do not fit into the inode take a block of the disk.
  #charged(node: Node, errno: number): number {
    const { tree, writing } = this.#context;
    if (writing?.quota && node.isRegular && tree.statNode(node) === 0) tree.openings.settle(node, tree.stat);
    return errno;
  }

  #changeable(node: Node, name: string, operation: string, caller: Caller): Target | number {
    const errno = requireLevel(this.#context, node, LEVEL.write, operation, caller);
    if (errno !== 0) return errno;
    if (!isUserXattr(name)) return name.startsWith("system.") ? Errno.EOPNOTSUPP : Errno.EPERM;
    const { credentials, writing } = this.#context;
    if (writing === undefined) return Errno.EROFS;
    if (!credentials.may(caller, node, Access.WRITE)) return Errno.EACCES;
    if (!node.isRegular && !node.isDirectory) return Errno.EPERM;
    const copied = node.isDirectory
      ? Math.min(0, writing.copyUp.directory(node))
      : writing.copyUp.file(node, { empty: false });
    if (copied !== 0) return node.isDirectory ? -copied : copied;
    return this.#target(node);
  }

  /** Where it is now, or an errno. */
  #target(node: Node): Target | number {
    const at = this.#context.tree.locate(node);
    if (typeof at === "number") return -at;
    if (at.name === "") return { path: `/proc/self/fd/${at.fd}`, calls: OF_DESCRIPTOR };
    return { path: `/proc/self/fd/${at.fd}/${at.name}`, calls: OF_NAME };
  }
}
