import { type Caller, Errno, syscalls } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, noteAccess, overQuota, refuse, type Writing } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Directories } from "./directories.ts";
import { textOf } from "./names.ts";
import type { Node } from "./node.ts";
import type { Walk } from "./walks.ts";
import { KEPT_PREFIX } from "./whiteouts.ts";

const { AT_REMOVEDIR, Open } = syscalls;

/** Where something is made: the directory in the delta, and whether a name of the codebase is covered by it. */
export interface EntryTarget {
  readonly writing: Writing;
  readonly parent: Node;
  readonly name: string;
  readonly directory: number;
  readonly coversLower: boolean;
}

/** What a directory holds, as far as it matters to whoever wants it gone. */
export const Content = { NOTHING: 0, HIDDEN_IN_DELTA: 1, VISIBLE: 2, UNKNOWN: 3 } as const;

/** Removing entries, with errnos for results, and what making and renaming them have in common with that. */
export class EntryChanges {
  readonly #context: Context;
  readonly #directories: Directories;

  constructor(context: Context, directories: Directories) {
    this.#context = context;
    this.#directories = directories;
  }

  unlink(parent: Node, name: string, caller: Caller): number {
    const { writing } = this.#context;
    const node = this.#removable(parent, name, "unlink", caller);
    if (typeof node === "number") return node;
    if (node.isDirectory) return Errno.EISDIR;
    if (writing === undefined) return Errno.EROFS;
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.failed(directory, parent, name, "unlink", caller);
    const covered = this.cover(writing, parent, name, directory);
    if (covered !== 0) return covered;
    this.keepReachable(node);
    if (node.inDelta) {
      const isLast = this.isLastName(directory, name);
      const code = syscalls.unlinkat(directory, name);
      if (code < 0) return -code;
      this.settleUnlink(writing, node, isLast);
    } else this.#context.tree.loseFrozenName(node);
    this.disappeared(node, parent, name);
    return 0;
  }

  rmdir(parent: Node, name: string, caller: Caller): number {
    const { writing } = this.#context;
    const node = this.#removable(parent, name, "rmdir", caller);
    if (typeof node === "number") return node;
    if (!node.isDirectory) return Errno.ENOTDIR;
    if (writing === undefined) return Errno.EROFS;
    const content = this.contentOf(node);
    if (content < 0) return -content;
    if (content === Content.VISIBLE) return Errno.ENOTEMPTY;
    this.keepReachable(node);
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.failed(directory, parent, name, "rmdir", caller);
    const covered = this.cover(writing, parent, name, directory);
    if (covered !== 0) return covered;
    if (node.inDelta) {
      const code = this.removeDirectory(writing, directory, name, content);
      if (code < 0) return -code;
      writing.quota?.takeFiles(-1);
    }
    this.disappeared(node, parent, name);
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
    if (!this.mayChange(parent, caller)) return Errno.EACCES;
    if (!credentials.mayRemove(caller, parent, node)) return Errno.EPERM;
    noteAccess(this.#context, parent, name, LEVEL.write);
    return node;
  }

  /** Deletes a name of the layers below, if they have it; it takes effect in the instant the name leaves the delta. Or an errno. */
  cover(writing: Writing, parent: Node, name: string, directory: number): number {
    if (!this.#context.tree.lowerHolds(parent, name)) return 0;
    const code = writing.delta.layWhiteout(directory, name);
    if (code < 0) return -code;
    parent.whiteouts?.add(name);
    return 0;
  }

  mayChange(directory: Node, caller: Caller): boolean {
    const { credentials } = this.#context;
    return credentials.may(caller, directory, Access.WRITE | Access.EXECUTE) && credentials.canReach(caller, directory);
  }

  copyUp(writing: Writing, node: Node, operation: string, caller: Caller): number {
    if (node.inDelta) return 0;
    const errno = writing.copyUp.file(node, { empty: false });
    return errno === Errno.EDQUOT ? overQuota(this.#context, node, undefined, operation, caller) : errno;
  }

  failed(code: number, parent: Node, name: string, operation: string, caller: Caller): number {
    return -code === Errno.EDQUOT ? overQuota(this.#context, parent, name, operation, caller) : -code;
  }

  /** What the kernel still knows stays reachable when its name goes: somebody's working directory. So does an open file. */
  keepReachable(node: Node): void {
    if (node.orphan >= 0 || node.openCount > 0 || node.lookups === 0) return;
    if ((node.moreNames?.length ?? 0) > 0 || node.parent === undefined) return;
    const { descriptors, openings } = this.#context.tree;
    const directory = descriptors.get(node.parent, node.layer);
    if (directory >= 0) openings.keep(node, syscalls.openat(directory, node.name, Open.PATH));
  }

  /** Whether it is the only name of a file of the delta, rules aside; to be asked before the name goes. */
  isLastName(directory: number, name: string): boolean {
    const { stat } = this.#context.tree;
    return syscalls.statat(directory, name, stat) === 0 && stat.nlink === 1;
  }

  /** A file of the delta has lost a name; with the last one its space is free, unless it is still held open. */
  settleUnlink(writing: Writing, node: Node, wasLast: boolean): void {
    writing.quota?.takeFiles(-1);
    if (!wasLast) return;
    this.#context.tree.inodes.release(node.deltaInode);
    this.#context.tree.openings.unlinked(node);
  }

  disappeared(node: Node, parent: Node, name: string): void {
    const { tree } = this.#context;
    tree.unbind(node, parent, name);
    if (node.isDirectory) {
      tree.descriptors.drop(node);
      node.listing = undefined;
    }
    this.#directories.removed(parent, name);
    tree.release(node);
    this.afterRemoval(parent);
  }

  // With its last visible entry a directory that was only a way there ceases to exist, and so on upwards. Whether it was the
  // last is found out when somebody asks: the kernel looks such directories up every time, and lists them anew.
  afterRemoval(directory: Node): void {
    const { tree } = this.#context;
    for (let each = directory; each.parent !== undefined && tree.levelOf(each) === LEVEL.none; each = each.parent) {
      each.doubtPassage();
      this.#directories.doubted(each.parent, each.name);
      this.#context.staleListing(each.parent.id);
    }
  }

  /** What a directory holds: nothing, only what is hidden, or something that shows. Negated errno on failure. */
  contentOf(directory: Node): number {
    const { tree, walks } = this.#context;
    return walks.result(`content ${directory.id} ${tree.edition}`, () => this.#walkContent(directory));
  }

  *#walkContent(directory: Node): Walk<number> {
    const { tree } = this.#context;
    const scope = tree.scopeOf(directory);
    let content: number = Content.NOTHING;
    const ways: string[] = [];
    const code = yield* tree.walkNames(directory, (name, _type, layer) => {
      const child = scope.child(textOf(name));
      if (child.level > LEVEL.none) {
        content = Content.VISIBLE;
        return true;
      }
      if (layer === tree.stack.top) content = Content.HIDDEN_IN_DELTA;
      if (child.mayShowBelow) ways.push(name);
      return false;
    });
    // Its owner has shut the directory against reading, and an unprivileged server cannot look either.
    if (-code === Errno.EACCES) return directory.hasLower ? Content.VISIBLE : Content.UNKNOWN;
    if (code < 0) return code;
    if (content === Content.VISIBLE) return content;
    for (const name of ways) {
      const child = yield* tree.walkVisible(directory, name);
      if (typeof child === "number") continue;
      tree.release(child);
      return Content.VISIBLE;
    }
    return content;
  }

  /** Removes a directory of the delta that shows as empty. What the rules hide in it is put aside, not deleted. */
  removeDirectory(writing: Writing, parent: number, name: string, content: number): number {
    if (content === Content.HIDDEN_IN_DELTA) {
      return syscalls.renameat2(parent, name, parent, `${KEPT_PREFIX}${writing.delta.temporaryName()}`);
    }
    const code = syscalls.unlinkat(parent, name, AT_REMOVEDIR);
    if (-code !== Errno.ENOTEMPTY || content !== Content.NOTHING) return code;
    // Only whiteouts are left in it, but there can be many.
    const taken = writing.delta.takeOut(parent, name);
    if (typeof taken === "number") return taken;
    this.#context.walks.add(writing.delta.sweep(taken));
    return 0;
  }

  /** Gives an entry of the delta that the rules hide a name that is never shown; nobody can tell by its directory. Or an errno. */
  putAside(writing: Writing, directory: Node, name: string): number {
    const { descriptors, stack, stat } = this.#context.tree;
    const fd = descriptors.get(directory, stack.top);
    if (fd < 0) return -fd;
    const known = syscalls.fstat(fd, stat);
    if (known < 0) return -known;
    const { atime, atimeNs, mtime, mtimeNs } = stat;
    const code = syscalls.renameat2(fd, name, fd, `${KEPT_PREFIX}${writing.delta.temporaryName()}`);
    return -(code < 0 ? code : syscalls.utimensat(fd, "", atime, atimeNs, mtime, mtimeNs));
  }

  lift(place: EntryTarget): void {
    if (!place.coversLower) return;
    place.writing.delta.liftWhiteout(place.directory, place.name);
    place.parent.whiteouts?.delete(place.name);
  }
}
