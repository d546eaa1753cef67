import { type Caller, Errno, syscalls } from "@agentfense/fuse";
import { LEVEL, type Scope } from "@agentfense/permission";
import { type Context, overQuota, refuse, requireLevel, type Writing } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Directories } from "./directories.ts";
import { textOf } from "./names.ts";
import { DELTA, type Node } from "./node.ts";
import { isReserved } from "./whiteouts.ts";

const { AT_REMOVEDIR, FileType, Open, Rename } = syscalls;

/** Bits of a mode the sandbox may set: never setuid or setgid. */
const ALLOWED_MODE = 0o1777;

/** Where something is about to be made: the directory in the delta, and whether a whiteout has to be lifted. */
interface Place {
  readonly writing: Writing;
  readonly parent: Node;
  readonly name: string;
  readonly directory: number;
  readonly coversLower: boolean;
}

/** Everything that changes names: making, removing, linking and renaming entries. Results are errnos or PENDING. */
export class Mutations {
  readonly #context: Context;
  readonly #directories: Directories;

  constructor(context: Context, directories: Directories) {
    this.#context = context;
    this.#directories = directories;
  }

  // --- making --------------------------------------------------------------------------------------------------------

  /** Makes a regular file and leaves its descriptor in the node. */
  createFile(parent: Node, name: string, mode: number, caller: Caller): Node | number {
    const place = this.#place(parent, name, "create", caller);
    if (typeof place === "number") return place;
    const flags = Open.RDWR | Open.CREAT | Open.EXCL;
    const fd = syscalls.openat(place.directory, name, flags, mode & ALLOWED_MODE);
    if (fd < 0) return this.#undoPlace(place, fd);
    this.#giveTo(caller, fd, "");
    const { tree } = this.#context;
    const code = syscalls.fstat(fd, tree.stat);
    if (code < 0) {
      syscalls.close(fd);
      return code;
    }
    const node = this.#appeared(place);
    node.fd = fd;
    node.fdWritable = true;
    return node;
  }

  mkdir(parent: Node, name: string, mode: number, caller: Caller): Node | number {
    const place = this.#place(parent, name, "mkdir", caller);
    if (typeof place === "number") return place;
    const code = place.coversLower
      ? this.#mkdirOpaque(place, mode, caller)
      : this.#made(syscalls.mkdirat(place.directory, name, mode & ALLOWED_MODE), place, caller);
    return this.#finish(place, code);
  }

  symlink(parent: Node, name: string, target: string, caller: Caller): Node | number {
    const place = this.#place(parent, name, "symlink", caller);
    if (typeof place === "number") return place;
    return this.#finish(place, this.#made(syscalls.symlinkat(target, place.directory, name), place, caller));
  }

  mknod(parent: Node, name: string, mode: number, caller: Caller): Node | number {
    const place = this.#place(parent, name, "mknod", caller);
    if (typeof place === "number") return place;
    const type = mode & FileType.MASK;
    const allowed = type === FileType.REGULAR || type === 0 || type === FileType.FIFO || type === FileType.SOCKET;
    if (!allowed) return this.#undoPlace(place, -Errno.EPERM);
    const code = syscalls.mknodat(place.directory, name, type | (mode & ALLOWED_MODE));
    return this.#finish(place, this.#made(code, place, caller));
  }

  /** A file without a name in the delta; link() may give it one. */
  createNameless(parent: Node, mode: number, caller: Caller): Node | number {
    const { tree, writing } = this.#context;
    const errno = requireLevel(this.#context, parent, LEVEL.write, "tmpfile", caller);
    if (errno !== 0) return -errno;
    if (writing === undefined) return -Errno.EROFS;
    if (parent.removed) return -Errno.ENOENT;
    if (!this.#mayChange(parent, caller)) return -Errno.EACCES;
    if (writing.quota && !writing.quota.takeFiles(1))
      return -overQuota(this.#context, parent, undefined, "tmpfile", caller);
    const fd = syscalls.openat(writing.delta.work, ".", Open.TMPFILE | Open.RDWR, mode & ALLOWED_MODE);
    if (fd < 0) {
      writing.quota?.takeFiles(-1);
      return fd;
    }
    this.#giveTo(caller, fd, "");
    const code = syscalls.fstat(fd, tree.stat);
    if (code < 0) {
      syscalls.close(fd);
      return code;
    }
    const node = tree.bindNameless();
    node.scope = tree.scopeOf(parent);
    node.countedNameless = true;
    node.fd = fd;
    node.fdWritable = true;
    node.orphan = syscalls.dup(fd);
    return node;
  }

  link(node: Node, parent: Node, name: string, caller: Caller): number {
    const errno = node.parent === undefined ? 0 : requireLevel(this.#context, node, LEVEL.write, "link", caller);
    if (errno !== 0) return errno;
    if (node.isDirectory) return Errno.EPERM;
    // Protected hard links, as Linux has them: only the owner, or who may read and write the file, can link it.
    const { credentials, tree, writing } = this.#context;
    if (!credentials.owns(caller, node) && !credentials.may(caller, node, Access.READ | Access.WRITE))
      return Errno.EPERM;
    const scope = tree.childScope(parent, name);
    if (scope.level < LEVEL.write) return refuse(this.#context, parent, name, "link", scope, caller);
    if (writing === undefined) return Errno.EROFS;
    const copied = this.#copyUp(writing, node, "link", caller);
    if (copied !== 0) return copied;
    const place = this.#place(parent, name, "link", caller);
    if (typeof place === "number") return -place;
    const code = this.#linkTo(node, place);
    if (code < 0) return -this.#undoPlace(place, code);
    this.#lift(place);
    if (node.countedNameless) writing.quota?.takeFiles(-1);
    node.countedNameless = false;
    node.addName(parent, name);
    parent.children?.set(name, node);
    tree.noteLink(node);
    this.#directories.added(parent, name, node);
    return 0;
  }

  // --- removing ------------------------------------------------------------------------------------------------------

  unlink(parent: Node, name: string, caller: Caller): number {
    const { tree, writing } = this.#context;
    const node = this.#removable(parent, name, "unlink", caller);
    if (typeof node === "number") return node;
    if (node.isDirectory) return Errno.EISDIR;
    if (writing === undefined) return Errno.EROFS;
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.#failed(directory, parent, name, "unlink", caller);
    if (tree.lowerHolds(parent, name)) {
      const code = writing.delta.layWhiteout(directory, name);
      if (code < 0) return -code;
      parent.whiteouts?.add(name);
    }
    this.#keepReachable(node);
    if (node.inDelta) {
      this.#settleUnlink(writing, node, directory, name);
      const code = syscalls.unlinkat(directory, name);
      if (code < 0) return -code;
    }
    this.#disappeared(node, parent, name);
    return 0;
  }

  rmdir(parent: Node, name: string, caller: Caller): number {
    const { tree, writing } = this.#context;
    const node = this.#removable(parent, name, "rmdir", caller);
    if (typeof node === "number") return node;
    if (!node.isDirectory) return Errno.ENOTDIR;
    if (writing === undefined) return Errno.EROFS;
    const content = this.#contentOf(node);
    if (content < 0) return -content;
    if (content === Content.VISIBLE) return Errno.ENOTEMPTY;
    this.#keepReachable(node);
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return this.#failed(directory, parent, name, "rmdir", caller);
    if (tree.lowerHolds(parent, name)) {
      const code = writing.delta.layWhiteout(directory, name);
      if (code < 0) return -code;
      parent.whiteouts?.add(name);
    }
    if (node.inDelta) {
      const code = this.#removeDirectory(writing, directory, name, content);
      if (code < 0) return -code;
      writing.quota?.takeFiles(-1);
    }
    this.#disappeared(node, parent, name);
    return 0;
  }

  // --- renaming ------------------------------------------------------------------------------------------------------

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
    const conflict = exchange ? 0 : this.#conflict(source, replaced);
    if (conflict !== 0) return conflict;
    const moves: [Node, Scope, Scope][] = [[source, sourceScope, targetScope]];
    if (exchange && replaced) moves.push([replaced, targetScope, sourceScope]);
    for (const [node, from, to] of moves) {
      const refused = node.isDirectory
        ? this.#mayMoveTree(node, from, to)
        : this.#copyUp(writing, node, "rename", caller);
      if (refused !== 0) return refused;
    }
    const from = writing.copyUp.directory(parent);
    if (from < 0) return this.#failed(from, parent, name, "rename", caller);
    const to = writing.copyUp.directory(newParent);
    if (to < 0) return this.#failed(to, newParent, newName, "rename", caller);
    if (exchange && replaced) return this.#exchange(source, parent, name, from, replaced, newParent, newName, to);
    return this.#move(writing, source, parent, name, from, replaced, newParent, newName, to);
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
    if (!this.#mayChange(parent, caller) || !this.#mayChange(newParent, caller)) return Errno.EACCES;
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

  #conflict(source: Node, target: Node | undefined): number {
    if (target === undefined) return 0;
    if (source.isDirectory && !target.isDirectory) return Errno.ENOTDIR;
    if (!source.isDirectory && target.isDirectory) return Errno.EISDIR;
    if (!target.isDirectory) return 0;
    const content = this.#contentOf(target);
    if (content < 0) return -content;
    return content === Content.VISIBLE ? Errno.ENOTEMPTY : 0;
  }

  // Every entry that moves along must be the sandbox's to write, where it is and where it comes to.
  #mayMoveTree(directory: Node, from: Scope, to: Scope): number {
    if (from.uniform && to.uniform) return 0;
    const { tree } = this.#context;
    const names: [string, number][] = [];
    const code = tree.readNames(directory, (name, type) => names.push([name, type]));
    if (code < 0) return -code;
    for (const [name] of names) {
      const text = textOf(name);
      const childFrom = from.child(text);
      const childTo = to.child(text);
      if (childFrom.level < LEVEL.write) return Errno.EXDEV;
      if (childTo.level < LEVEL.write) return Errno.EACCES;
      if (childFrom.uniform && childTo.uniform) continue;
      if (tree.resolve(directory, name) !== 0 || tree.stat.type !== FileType.DIRECTORY) continue;
      const child = tree.bind(directory, name);
      const errno = this.#mayMoveTree(child, childFrom, childTo);
      tree.release(child);
      if (errno !== 0) return errno;
    }
    return 0;
  }

  #move(
    writing: Writing,
    source: Node,
    parent: Node,
    name: string,
    from: number,
    replaced: Node | undefined,
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
    if (replaced) this.#keepReachable(replaced);
    if (replaced?.inDelta && !replaced.isDirectory) this.#settleUnlink(writing, replaced, to, newName);
    const code =
      replaced?.isDirectory && replaced.inDelta
        ? this.#replaceDirectory(writing, replaced, parent, name, from, newName, to)
        : syscalls.renameat2(from, name, to, newName);
    if (code < 0) return -code;
    if (replaced?.isDirectory && replaced.inDelta) writing.quota?.takeFiles(-1);
    if (covers) this.#lift({ writing, parent: newParent, name: newName, directory: to, coversLower: true });
    if (replaced) this.#disappeared(replaced, newParent, newName);
    this.#moved(source, parent, name, newParent, newName);
    return 0;
  }

  // A directory that shows as empty may still hold whiteouts, which keep rename(2) from replacing it: the two change
  // places, and the loser goes.
  #replaceDirectory(
    writing: Writing,
    replaced: Node,
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
    if (code === 0) this.#removeDirectory(writing, from, name, this.#contentOf(replaced));
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
    this.#afterRemoval(parent);
    this.#afterRemoval(newParent);
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
    this.#afterRemoval(parent);
  }

  // --- common parts --------------------------------------------------------------------------------------------------

  /** Checks that a new entry may be made here and gets the directory in the delta ready for it. */
  #place(parent: Node, name: string, operation: string, caller: Caller): Place | number {
    const { tree, writing } = this.#context;
    if (parent.removed || !tree.shows(parent)) return -Errno.ENOENT;
    const scope = tree.childScope(parent, name);
    if (scope.level < LEVEL.write) return -refuse(this.#context, parent, name, operation, scope, caller);
    if (writing === undefined) return -Errno.EROFS;
    if (isReserved(name)) return -Errno.EPERM;
    if (!this.#mayChange(parent, caller)) return -Errno.EACCES;
    const existing = tree.resolve(parent, name);
    if (existing === 0) return -Errno.EEXIST;
    if (-existing !== Errno.ENOENT) return existing;
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return -this.#failed(directory, parent, name, operation, caller);
    if (writing.quota && !writing.quota.takeFiles(1)) {
      return -overQuota(this.#context, parent, name, operation, caller);
    }
    return { writing, parent, name, directory, coversLower: tree.lowerHolds(parent, name) };
  }

  #undoPlace(place: Place, code: number): number {
    place.writing.quota?.takeFiles(-1);
    return code;
  }

  #made(code: number, place: Place, caller: Caller): number {
    if (code === 0) this.#giveTo(caller, place.directory, place.name);
    return code;
  }

  // Complete, and shut against the codebase's directory of that name, before anybody can see it.
  #mkdirOpaque(place: Place, mode: number, caller: Caller): number {
    const { delta } = place.writing;
    const temporary = delta.temporaryName();
    const code = syscalls.mkdirat(delta.work, temporary, 0o700);
    if (code < 0) return code;
    const fd = syscalls.openat(delta.work, temporary, Open.PATH | Open.DIRECTORY);
    if (fd < 0) return fd;
    const marked = delta.markOpaque(fd);
    this.#giveTo(caller, fd, "");
    syscalls.close(fd);
    return marked < 0 ? marked : delta.installDirectory(temporary, place.directory, place.name, mode & ALLOWED_MODE);
  }

  #finish(place: Place, code: number): Node | number {
    if (code < 0) return this.#undoPlace(place, code);
    const { tree } = this.#context;
    const found = syscalls.statat(place.directory, place.name, tree.stat);
    return found < 0 ? found : this.#appeared(place);
  }

  // The tree's `stat` describes the new entry.
  #appeared(place: Place): Node {
    const { tree } = this.#context;
    this.#lift(place);
    tree.foundLayers = [DELTA];
    const node = tree.bind(place.parent, place.name);
    if (node.isDirectory) node.whiteouts = new Set();
    this.#directories.added(place.parent, place.name, node);
    return node;
  }

  #lift(place: Place): void {
    if (!place.coversLower) return;
    place.writing.delta.liftWhiteout(place.directory, place.name);
    place.parent.whiteouts?.delete(place.name);
  }

  /** New entries belong to who made them, where the server can arrange that. */
  #giveTo(caller: Caller, directory: number, name: string): void {
    if (!this.#context.privileged || this.#context.mapsOwner) return;
    if (caller.uid === 0 && caller.gid === 0) return;
    syscalls.fchownat(directory, name, caller.uid, caller.gid);
  }

  #mayChange(directory: Node, caller: Caller): boolean {
    const { credentials } = this.#context;
    return credentials.may(caller, directory, Access.WRITE | Access.EXECUTE) && credentials.canReach(caller, directory);
  }

  /** The visible entry of a name, provided that it may be taken away; else a positive errno. */
  #removable(parent: Node, name: string, operation: string, caller: Caller): Node | number {
    const { credentials, tree } = this.#context;
    if (parent.removed || !tree.shows(parent)) return Errno.ENOENT;
    const node = tree.visible(parent, name);
    if (typeof node === "number") return -node;
    const scope = tree.childScope(parent, name);
    if (scope.level < LEVEL.write) return refuse(this.#context, parent, name, operation, scope, caller);
    if (!this.#mayChange(parent, caller)) return Errno.EACCES;
    if (!credentials.mayRemove(caller, parent, node)) return Errno.EPERM;
    return node;
  }

  #copyUp(writing: Writing, node: Node, operation: string, caller: Caller): number {
    if (node.inDelta) return 0;
    const errno = writing.copyUp.file(node, { empty: false });
    return errno === Errno.EDQUOT ? overQuota(this.#context, node, undefined, operation, caller) : errno;
  }

  #failed(code: number, parent: Node, name: string, operation: string, caller: Caller): number {
    return -code === Errno.EDQUOT ? overQuota(this.#context, parent, name, operation, caller) : -code;
  }

  #linkTo(node: Node, place: Place): number {
    if (node.parent === undefined) {
      const held = node.fd >= 0 ? node.fd : node.orphan;
      return held < 0 ? -Errno.ENOENT : syscalls.linkDescriptor(held, place.directory, place.name);
    }
    const source = this.#context.tree.descriptors.get(node.parent, DELTA);
    return source < 0 ? source : syscalls.linkat(source, node.name, place.directory, place.name);
  }

  /** What the kernel still knows stays reachable when its name goes: an open file, somebody's working directory. */
  #keepReachable(node: Node): void {
    if (node.orphan >= 0 || node.lookups === 0) return;
    if ((node.moreNames?.length ?? 0) > 0 || node.parent === undefined) return;
    const directory = this.#context.tree.descriptors.get(node.parent, node.layer);
    if (directory >= 0) node.orphan = Math.max(-1, syscalls.openat(directory, node.name, Open.PATH));
  }

  // A file of the delta loses a name; with the last one its space is free, unless somebody has it open.
  #settleUnlink(writing: Writing, node: Node, directory: number, name: string): void {
    const { tree } = this.#context;
    if (syscalls.statat(directory, name, tree.stat) < 0) return;
    writing.quota?.takeFiles(-1);
    if (tree.stat.nlink === 1) {
      tree.inodes.release(tree.stat.ino);
      if (node.openCount === 0 && node.isRegular) writing.quota?.takeBytes(-tree.stat.size);
    }
  }

  #disappeared(node: Node, parent: Node, name: string): void {
    const { tree } = this.#context;
    tree.unbind(node, parent, name);
    if (node.isDirectory) {
      tree.descriptors.drop(node);
      node.listing = undefined;
    }
    this.#directories.removed(parent, name);
    tree.release(node);
    this.#afterRemoval(parent);
  }

  // With its last visible entry a directory that was only a way there ceases to exist, and so on upwards. The kernel looks
  // such directories up every time, but their names stand in listings that it keeps.
  #afterRemoval(directory: Node): void {
    const { tree } = this.#context;
    tree.somethingRemoved();
    let each = directory;
    while (each.parent !== undefined && tree.levelOf(each) === LEVEL.none && !tree.isPassage(each)) {
      this.#directories.removed(each.parent, each.name);
      this.#context.staleListing(each.parent.id);
      each = each.parent;
    }
  }

  /** What a directory holds: nothing, only what is hidden, or something that shows. Negated errno on failure. */
  #contentOf(directory: Node): number {
    const { tree } = this.#context;
    const scope = tree.scopeOf(directory);
    let content: number = Content.NOTHING;
    const ways: string[] = [];
    const code = tree.readNames(directory, (name, _type, layer) => {
      if (content === Content.VISIBLE) return;
      const child = scope.child(textOf(name));
      if (child.level > LEVEL.none) content = Content.VISIBLE;
      else {
        if (layer === DELTA) content = Content.HIDDEN_IN_DELTA;
        if (child.mayShowBelow) ways.push(name);
      }
    });
    // Its owner has shut the directory against reading, and an unprivileged server cannot look either.
    if (-code === Errno.EACCES) return directory.hasLower ? Content.VISIBLE : Content.UNKNOWN;
    if (code < 0) return code;
    const leads =
      content !== Content.VISIBLE &&
      ways.some((name) => {
        const child = tree.visible(directory, name);
        if (typeof child === "number") return false;
        tree.release(child);
        return true;
      });
    return leads ? Content.VISIBLE : content;
  }

  /** Removes a directory of the delta that shows as empty. What the rules hide in it is put aside, not deleted. */
  #removeDirectory(writing: Writing, parent: number, name: string, content: number): number {
    if (content === Content.HIDDEN_IN_DELTA) {
      return syscalls.renameat2(parent, name, parent, `.wh..wh.kept.${writing.delta.temporaryName()}`);
    }
    const code = syscalls.unlinkat(parent, name, AT_REMOVEDIR);
    return -code === Errno.ENOTEMPTY && content === Content.NOTHING
      ? writing.delta.discardDirectory(parent, name)
      : code;
  }
}

const Content = { NOTHING: 0, HIDDEN_IN_DELTA: 1, VISIBLE: 2, UNKNOWN: 3 } as const;
