import { type Caller, Errno, syscalls } from "@agentfense/fuse";
import { LEVEL, type Scope } from "@agentfense/permission";
import { type Context, refuse, type Writing } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Directories } from "./directories.ts";
import { Content, type EntryChanges } from "./entry-changes.ts";
import type { Move } from "./moves.ts";
import { DELTA, type Node } from "./node.ts";
import { exceedsBounds, type PathExtent } from "./path-bounds.ts";
import { isReserved } from "./whiteouts.ts";

const { Rename } = syscalls;

/** Renaming entries. Results are errnos. */
export class Renaming {
  readonly #context: Context;
  readonly #entries: EntryChanges;
  readonly #directories: Directories;

  constructor(context: Context, entries: EntryChanges, directories: Directories) {
    this.#context = context;
    this.#entries = entries;
    this.#directories = directories;
  }

  rename(parent: Node, name: string, newParent: Node, newName: string, flags: number, caller: Caller): number {
    const { tree, writing } = this.#context;
    if ((flags & ~(Rename.NOREPLACE | Rename.EXCHANGE)) !== 0) return Errno.EINVAL;
    if (flags === (Rename.NOREPLACE | Rename.EXCHANGE)) return Errno.EINVAL;
    if (!tree.shows(parent) || !tree.shows(newParent) || parent.removed || newParent.removed) return Errno.ENOENT;
    const source = tree.visible(parent, name);
    if (typeof source === "number") return -source;
    const exchange = (flags & Rename.EXCHANGE) !== 0;
    const targetScope = tree.childScope(newParent, newName);
    const target = tree.visible(newParent, newName);
    if (typeof target === "number" && -target !== Errno.ENOENT) return -target;
    if (exchange && typeof target === "number") return Errno.ENOENT;
    if (targetScope.level < LEVEL.write)
      return refuse(this.#context, newParent, newName, "rename", targetScope, caller);
    const sourceScope = tree.childScope(parent, name);
    if (sourceScope.level < LEVEL.write) return refuse(this.#context, parent, name, "rename", sourceScope, caller);
    if (writing === undefined) return Errno.EROFS;
    if (isReserved(newName) || isReserved(name)) return Errno.EPERM;
    const replaced = typeof target === "number" ? undefined : target;
    const errno = this.#mayRename(source, parent, replaced, newParent, flags, caller);
    if (errno !== 0) return errno;
    if (source === replaced) return 0;
    const [here, there] = [this.#at(parent, name, sourceScope), this.#at(newParent, newName, targetScope)];
    if (exceedsBounds(there.extent)) return Errno.ENAMETOOLONG;
    const content = exchange ? Content.VISIBLE : this.#conflict(source, replaced);
    if (content < 0) return -content;
    const moves = [{ node: source, from: here, to: there }];
    if (exchange && replaced) moves.push({ node: replaced, from: there, to: here });
    for (const { node } of moves) {
      const refused = node.isDirectory ? 0 : this.#entries.copyUp(writing, node, "rename", caller);
      if (refused !== 0) return refused;
    }
    this.#context.moves.wait(newParent);
    const from = writing.copyUp.directory(parent);
    if (from < 0) return this.#entries.failed(from, parent, name, "rename", caller);
    const to = writing.copyUp.directory(newParent);
    if (to < 0) return this.#entries.failed(to, newParent, newName, "rename", caller);
    const directories = moves.filter(({ node }) => node.isDirectory);
    const refused = this.#context.moves.prepare(
      directories.map(({ node, from, to }): Move => ({ directory: node, from, to })),
      (directory, hidden) => this.#entries.putAside(writing, directory, hidden),
    );
    if (refused !== 0) return refused;
    tree.noteExtent(there.extent);
    if (exchange && replaced) return this.#exchange(source, parent, name, from, replaced, newParent, newName, to);
    return this.#move(writing, source, parent, name, from, replaced, content, newParent, newName, to);
  }

  #at(parent: Node, name: string, scope: Scope): { scope: Scope; extent: PathExtent } {
    return { scope, extent: this.#context.tree.extentOf(parent, name) };
  }

  #mayRename(
    source: Node,
    parent: Node,
    target: Node | undefined,
    newParent: Node,
    flags: number,
    caller: Caller,
  ): number {
    const { credentials } = this.#context;
    if (!this.#entries.mayChange(parent, caller) || !this.#entries.mayChange(newParent, caller)) return Errno.EACCES;
    if (!credentials.mayRemove(caller, parent, source)) return Errno.EPERM;
    if (target && !credentials.mayRemove(caller, newParent, target)) return Errno.EPERM;
    // A directory that moves elsewhere changes its "..", which needs the right to write it.
    if (source.isDirectory && parent !== newParent && !credentials.may(caller, source, Access.WRITE))
      return Errno.EACCES;
    if (target && (flags & Rename.NOREPLACE) !== 0) return Errno.EEXIST;
    // Any other answer would tell whether something hidden is inside.
    const exchanged = (flags & Rename.EXCHANGE) !== 0 && target?.isDirectory && target.hasLower;
    if ((source.isDirectory && source.hasLower) || exchanged) return Errno.EXDEV;
    return 0;
  }

  /** What is in the directory that would be replaced, or a negated errno. */
  #conflict(source: Node, target: Node | undefined): number {
    if (target === undefined) return Content.NOTHING;
    if (source.isDirectory && !target.isDirectory) return -Errno.ENOTDIR;
    if (!source.isDirectory && target.isDirectory) return -Errno.EISDIR;
    if (!target.isDirectory) return Content.NOTHING;
    const content = this.#entries.contentOf(target);
    return content === Content.VISIBLE ? -Errno.ENOTEMPTY : content;
  }

  #move(
    writing: Writing,
    source: Node,
    parent: Node,
    name: string,
    from: number,
    replaced: Node | undefined,
    content: number,
    newParent: Node,
    newName: string,
    to: number,
  ): number {
    const { tree } = this.#context;
    // Laid first: it takes effect in the instant the name leaves the delta.
    if (tree.lowerHolds(parent, name)) {
      const code = writing.delta.layWhiteout(from, name);
      if (code < 0) return -code;
      parent.whiteouts?.add(name);
    }
    const covers = tree.lowerHolds(newParent, newName);
    if (source.isDirectory && covers) {
      const code = writing.delta.markOpaque(tree.descriptors.get(source, DELTA));
      if (code < 0) return -code;
    }
    if (replaced) this.#entries.keepReachable(replaced);
    const isLast = replaced?.inDelta && !replaced.isDirectory && this.#entries.isLastName(to, newName);
    const code =
      replaced?.isDirectory && replaced.inDelta
        ? this.#replaceDirectory(writing, replaced, content, parent, name, from, newName, to)
        : syscalls.renameat2(from, name, to, newName);
    if (code < 0) return -code;
    if (replaced?.inDelta) {
      if (replaced.isDirectory) writing.quota?.takeFiles(-1);
      else this.#entries.settleUnlink(writing, replaced, isLast === true);
    }
    if (covers) this.#entries.lift({ writing, parent: newParent, name: newName, directory: to, coversLower: true });
    if (replaced) this.#entries.disappeared(replaced, newParent, newName);
    this.#moved(source, parent, name, newParent, newName);
    return 0;
  }

  // A directory that shows as empty may still hold whiteouts, which keep rename(2) from replacing it: the two change
  // places, and the loser goes.
  #replaceDirectory(
    writing: Writing,
    replaced: Node,
    content: number,
    parent: Node,
    name: string,
    from: number,
    newName: string,
    to: number,
  ): number {
    const { tree } = this.#context;
    if (syscalls.renameat2(from, name, to, newName) === 0) return 0;
    const record = writing.delta.recordRemoval(tree.deltaPath(parent, name), replaced.deltaInode);
    if (typeof record === "number") return record;
    const code = syscalls.renameat2(from, name, to, newName, Rename.EXCHANGE);
    if (code === 0) this.#entries.removeDirectory(writing, from, name, content);
    writing.delta.forgetRecord(record);
    return code;
  }

  #exchange(
    source: Node,
    parent: Node,
    name: string,
    from: number,
    target: Node,
    newParent: Node,
    newName: string,
    to: number,
  ): number {
    const { tree, writing } = this.#context;
    for (const [node, place, placeName] of [
      [source, newParent, newName],
      [target, parent, name],
    ] as const) {
      if (!node.isDirectory || !tree.lowerHolds(place, placeName)) continue;
      const code = writing?.delta.markOpaque(tree.descriptors.get(node, DELTA)) ?? -Errno.EROFS;
      if (code < 0) return -code;
    }
    const code = syscalls.renameat2(from, name, to, newName, Rename.EXCHANGE);
    if (code < 0) return -code;
    source.dropName(parent, name);
    target.dropName(newParent, newName);
    source.addName(newParent, newName);
    target.addName(parent, name);
    source.removed = false;
    target.removed = false;
    newParent.children?.set(newName, source);
    parent.children?.set(name, target);
    if (source.isDirectory || target.isDirectory) tree.directoryMoved();
    this.#directories.removed(parent, name);
    this.#directories.removed(newParent, newName);
    this.#directories.added(newParent, newName, source);
    this.#directories.added(parent, name, target);
    this.#entries.afterRemoval(parent);
    this.#entries.afterRemoval(newParent);
    return 0;
  }

  #moved(node: Node, parent: Node, name: string, newParent: Node, newName: string): void {
    const { tree } = this.#context;
    tree.unbind(node, parent, name);
    node.addName(newParent, newName);
    node.removed = false;
    newParent.children?.set(newName, node);
    this.#directories.removed(parent, name);
    this.#directories.added(newParent, newName, node);
    if (node.isDirectory) tree.directoryMoved();
    this.#entries.afterRemoval(parent);
  }
}
