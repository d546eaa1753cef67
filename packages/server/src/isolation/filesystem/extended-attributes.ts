import { type Caller, Errno, type Reply } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, overQuota, requireLevel } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Node } from "./node.ts";
import type { Location } from "./tree.ts";
import { getXattr, isUserXattr, listXattrs, removeXattr, setXattr } from "./xattrs.ts";

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
    const at = this.#context.tree.locate(node);
    return typeof at === "number" ? -at : getXattr(at, name, size, reply);
  }

  list(node: Node, size: number, caller: Caller, reply: Reply): number {
    const errno = requireLevel(this.#context, node, node.isDirectory ? LEVEL.view : LEVEL.read, "listxattr", caller);
    if (errno !== 0) return errno;
    const at = this.#context.tree.locate(node);
    return typeof at === "number" ? -at : listXattrs(at, size, reply);
  }

  set(node: Node, name: string, value: Buffer, flags: number, caller: Caller): number {
    const at = this.#changeable(node, name, "setxattr", caller);
    if (typeof at === "number") return at;
    if (this.#context.writing?.quota?.makeRoom(0) === false)
      return overQuota(this.#context, node, undefined, "setxattr", caller);
    return this.#charged(node, setXattr(at, name, value, flags));
  }

  remove(node: Node, name: string, caller: Caller): number {
    const at = this.#changeable(node, name, "removexattr", caller);
    return typeof at === "number" ? at : this.#charged(node, removeXattr(at, name));
  }

  // Attributes that do not fit into the inode take a block of the disk.
  #charged(node: Node, errno: number): number {
    const { tree, writing } = this.#context;
    if (writing?.quota && node.isRegular && tree.statNode(node) === 0) tree.openings.settle(node, tree.stat);
    return errno;
  }

  #changeable(node: Node, name: string, operation: string, caller: Caller): Location | number {
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
    const at = this.#context.tree.locate(node);
    return typeof at === "number" ? -at : at;
  }
}
