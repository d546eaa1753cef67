import { type Caller, Errno, syscalls } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, refuse } from "./context.ts";
import { Content, type EntryChanges } from "./entry-changes.ts";
import type { Node } from "./node.ts";

/** Removing entries. Results are errnos. */
export class Removal {
  readonly #context: Context;
  readonly #entries: EntryChanges;

  constructor(context: Context, entries: EntryChanges) {
    this.#context = context;
    this.#entries = entries;
  }

  unlink(parent: Node, name: string, caller: Caller): number {
    const { tree, writing } = this.#context;
    const node = this.#removable(parent, name, "unlink", caller);
    if (typeof node === "number") return node;
    if (node.isDirectory) return Errno.EISDIR;
    if (writing === undefined) return Errno.EROFS;
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.#entries.failed(directory, parent, name, "unlink", caller);
    if (tree.lowerHolds(parent, name)) {
      const code = writing.delta.layWhiteout(directory, name);
      if (code < 0) return -code;
      parent.whiteouts?.add(name);
    }
    this.#entries.keepReachable(node);
    if (node.inDelta) {
      const isLast = this.#entries.isLastName(directory, name);
      const code = syscalls.unlinkat(directory, name);
      if (code < 0) return -code;
      this.#entries.settleUnlink(writing, node, isLast);
    }
    this.#entries.disappeared(node, parent, name);
    return 0;
  }

  rmdir(parent: Node, name: string, caller: Caller): number {
    const { tree, writing } = this.#context;
    const node = this.#removable(parent, name, "rmdir", caller);
    if (typeof node === "number") return node;
    if (!node.isDirectory) return Errno.ENOTDIR;
    if (writing === undefined) return Errno.EROFS;
    const content = this.#entries.contentOf(node);
    if (content < 0) return -content;
    if (content === Content.VISIBLE) return Errno.ENOTEMPTY;
    this.#entries.keepReachable(node);
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.#entries.failed(directory, parent, name, "rmdir", caller);
    if (tree.lowerHolds(parent, name)) {
      const code = writing.delta.layWhiteout(directory, name);
      if (code < 0) return -code;
      parent.whiteouts?.add(name);
    }
    if (node.inDelta) {
      const code = this.#entries.removeDirectory(writing, directory, name, content);
      if (code < 0) return -code;
      writing.quota?.takeFiles(-1);
    }
    this.#entries.disappeared(node, parent, name);
    return 0;
  }

  /** The visible entry of a name, provided that it may be taken away; else a positive errno. */
  #removable(parent: Node, name: string, operation: string, caller: Caller): Node | number {
    const { credentials, tree } = this.#context;
    if (parent.removed || !tree.shows(parent)) return Errno.ENOENT;
    const node = tree.visible(parent, name);
    if (typeof node === "number") return -node;
    const scope = tree.childScope(parent, name);
    if (scope.level < LEVEL.write) return refuse(this.#context, parent, name, operation, scope, caller);
    if (!this.#entries.mayChange(parent, caller)) return Errno.EACCES;
    if (!credentials.mayRemove(caller, parent, node)) return Errno.EPERM;
    return node;
  }
}
