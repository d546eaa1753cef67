import { type Caller, Errno, syscalls } from "@agentfense/fuse";
import { LEVEL, type Scope } from "@agentfense/permission";
import { type Context, noteAccess, refuse } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Directories } from "./directories.ts";
import { Content, type EntryChanges, type EntryTarget } from "./entry-changes.ts";
import type { Move } from "./moves.ts";
import { exceedsBounds, type PathExtent } from "./names.ts";
import type { Node } from "./node.ts";
import { isReserved } from "./whiteouts.ts";

const { Rename } = syscalls;

/** A name that something leaves, or comes to. */
type Side = Omit<EntryTarget, "coversLower">;

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
    noteAccess(this.#context, parent, name, LEVEL.write);
    noteAccess(this.#context, newParent, newName, LEVEL.write);
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
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.#entries.failed(directory, parent, name, "rename", caller);
    const newDirectory = writing.copyUp.directory(newParent);
    if (newDirectory < 0) return this.#entries.failed(newDirectory, newParent, newName, "rename", caller);
    const refused = this.#context.moves.prepare(
      moves.flatMap(({ node, ...move }): Move[] => (node.isDirectory ? [{ directory: node, ...move }] : [])),
      (inside, hidden) => this.#entries.putAside(writing, inside, hidden),
    );
    if (refused !== 0) return refused;
    tree.noteExtent(there.extent);
    const from = { writing, parent, name, directory };
    const to = { writing, parent: newParent, name: newName, directory: newDirectory };
    if (exchange && replaced) return this.#exchange(source, from, replaced, to);
    return this.#move(source, from, replaced, content, to);
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

  #move(source: Node, from: Side, replaced: Node | undefined, content: number, to: Side): number {
    const { tree } = this.#context;
    const { writing } = from;
    // Laid first: it takes effect in the instant the name leaves the delta.
    const covered = this.#entries.cover(writing, from.parent, from.name, from.directory);
    if (covered !== 0) return covered;
    const covers = tree.lowerHolds(to.parent, to.name);
    if (source.isDirectory && covers) {
      const code = writing.delta.markOpaque(tree.descriptors.get(source, tree.stack.top));
      if (code < 0) return -code;
    }
    if (replaced) this.#entries.keepReachable(replaced);
    const isLast = replaced?.inDelta && !replaced.isDirectory && this.#entries.isLastName(to.directory, to.name);
    const code =
      replaced?.isDirectory && replaced.inDelta
        ? this.#replaceDirectory(from, replaced, content, to)
        : renameOnDisk(from, to);
    if (code < 0) return -code;
    if (replaced?.inDelta) {
      if (replaced.isDirectory) writing.quota?.takeFiles(-1);
      else this.#entries.settleUnlink(writing, replaced, isLast === true);
    } else if (replaced) tree.loseFrozenName(replaced);
    this.#entries.lift({ ...to, coversLower: covers });
    if (replaced) this.#entries.disappeared(replaced, to.parent, to.name);
    tree.unbind(source, from.parent, from.name);
    this.#gets(source, to);
    this.#directories.removed(from.parent, from.name);
    this.#directories.added(to.parent, to.name, source);
    if (source.isDirectory) tree.directoryMoved();
    this.#entries.afterRemoval(from.parent);
    return 0;
  }

  // A directory that shows as empty may still hold whiteouts, which keep rename(2) from replacing it: the two change
  // places, and the loser goes.
  #replaceDirectory(from: Side, replaced: Node, content: number, to: Side): number {
    const { writing, parent, name, directory } = from;
    if (renameOnDisk(from, to) === 0) return 0;
    const record = writing.delta.recordRemoval(this.#context.tree.deltaPath(parent, name), replaced.deltaInode);
    if (typeof record === "number") return record;
    const code = renameOnDisk(from, to, Rename.EXCHANGE);
    if (code === 0) this.#entries.removeDirectory(writing, directory, name, content);
    writing.delta.forgetRecord(record);
    return code;
  }

  #exchange(source: Node, from: Side, target: Node, to: Side): number {
    const { tree } = this.#context;
    const arrivals: [Node, Side][] = [
      [source, to],
      [target, from],
    ];
    for (const [node, { writing, parent, name }] of arrivals) {
      if (!node.isDirectory || !tree.lowerHolds(parent, name)) continue;
      const code = writing.delta.markOpaque(tree.descriptors.get(node, tree.stack.top));
      if (code < 0) return -code;
    }
    const code = renameOnDisk(from, to, Rename.EXCHANGE);
    if (code < 0) return -code;
    source.dropName(from.parent, from.name);
    target.dropName(to.parent, to.name);
    for (const [node, side] of arrivals) this.#gets(node, side);
    if (source.isDirectory || target.isDirectory) tree.directoryMoved();
    for (const [, { parent, name }] of arrivals) this.#directories.removed(parent, name);
    for (const [node, { parent, name }] of arrivals) this.#directories.added(parent, name, node);
    for (const [, { parent }] of arrivals) this.#entries.afterRemoval(parent);
    return 0;
  }

  #gets(node: Node, { parent, name }: Side): void {
    node.addName(parent, name);
    node.removed = false;
    parent.children?.set(name, node);
  }
}

function renameOnDisk(from: Side, to: Side, flags = 0): number {
  return syscalls.renameat2(from.directory, from.name, to.directory, to.name, flags);
}
