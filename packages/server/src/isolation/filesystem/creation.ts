import { type Caller, Errno, syscalls } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import { type Context, noteAccess, overQuota, refuse, requireLevel } from "./context.ts";
import { Access } from "./credentials.ts";
import type { Directories } from "./directories.ts";
import type { EntryChanges, EntryTarget } from "./entry-changes.ts";
import type { Node } from "./node.ts";
import { isReserved } from "./whiteouts.ts";

const { FileType, Open } = syscalls;

/** Bits of a mode the sandbox may set: never setuid or setgid. */
const ALLOWED_MODE = 0o1777;

/** Making entries. Results are the new node or a negated errno; link() answers with an errno. */
export class Creation {
  readonly #context: Context;
  readonly #entries: EntryChanges;
  readonly #directories: Directories;

  constructor(context: Context, entries: EntryChanges, directories: Directories) {
    this.#context = context;
    this.#entries = entries;
    this.#directories = directories;
  }

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
    if (!this.#entries.mayChange(parent, caller)) return -Errno.EACCES;
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
    return node;
  }

  link(node: Node, parent: Node, name: string, caller: Caller): number {
    const errno = requireLevel(this.#context, node, LEVEL.write, "link", caller);
    if (errno !== 0) return errno;
    if (node.isDirectory) return Errno.EPERM;
    // Protected hard links, as Linux has them: only the owner, or who may read and write the file, can link it.
    const { credentials, tree, writing } = this.#context;
    if (!credentials.owns(caller, node) && !credentials.may(caller, node, Access.READ | Access.WRITE))
      return Errno.EPERM;
    const scope = tree.childScope(parent, name);
    if (scope.level < LEVEL.write) return refuse(this.#context, parent, name, "link", scope, caller);
    if (writing === undefined) return Errno.EROFS;
    const copied = this.#entries.copyUp(writing, node, "link", caller);
    if (copied !== 0) return copied;
    const place = this.#place(parent, name, "link", caller);
    if (typeof place === "number") return -place;
    const code = this.#linkTo(node, place);
    if (code < 0) return -this.#undoPlace(place, code);
    this.#entries.lift(place);
    if (node.countedNameless) writing.quota?.takeFiles(-1);
    node.countedNameless = false;
    if (node.parent === undefined) tree.openings.named(node);
    node.addName(parent, name);
    parent.children?.set(name, node);
    tree.noteLink(node);
    this.#directories.added(parent, name, node);
    return 0;
  }

  /** Checks that a new entry may be made here and gets the directory in the delta ready for it. */
  #place(parent: Node, name: string, operation: string, caller: Caller): EntryTarget | number {
    const { tree, writing } = this.#context;
    if (parent.removed || !tree.shows(parent)) return -Errno.ENOENT;
    const scope = tree.childScope(parent, name);
    if (scope.level < LEVEL.write) return -refuse(this.#context, parent, name, operation, scope, caller);
    if (writing === undefined) return -Errno.EROFS;
    if (isReserved(name)) return -Errno.EPERM;
    if (!this.#entries.mayChange(parent, caller)) return -Errno.EACCES;
    const existing = tree.resolve(parent, name);
    if (existing === 0) return -Errno.EEXIST;
    if (-existing !== Errno.ENOENT) return existing;
    if (!tree.hasRoomFor(parent, name)) return -Errno.ENAMETOOLONG;
    noteAccess(this.#context, parent, name, LEVEL.write);
    this.#context.moves.wait(parent);
    const directory = writing.copyUp.directory(parent);
    if (directory < 0) return -this.#entries.failed(directory, parent, name, operation, caller);
    if (writing.quota && !writing.quota.takeFiles(1)) {
      return -overQuota(this.#context, parent, name, operation, caller);
    }
    return { writing, parent, name, directory, coversLower: tree.lowerHolds(parent, name) };
  }

  #undoPlace(place: EntryTarget, code: number): number {
    place.writing.quota?.takeFiles(-1);
    return code;
  }

  #made(code: number, place: EntryTarget, caller: Caller): number {
    if (code === 0) this.#giveTo(caller, place.directory, place.name);
    return code;
  }

  // Complete, and shut against the codebase's directory of that name, before anybody can see it.
  #mkdirOpaque(place: EntryTarget, mode: number, caller: Caller): number {
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

  #finish(place: EntryTarget, code: number): Node | number {
    if (code < 0) return this.#undoPlace(place, code);
    const { tree } = this.#context;
    const found = syscalls.statat(place.directory, place.name, tree.stat);
    return found < 0 ? found : this.#appeared(place);
  }

  // The tree's `stat` describes the new entry.
  #appeared(place: EntryTarget): Node {
    const { tree } = this.#context;
    this.#entries.lift(place);
    tree.foundLayers = tree.single(tree.stack.top);
    const node = tree.bind(place.parent, place.name);
    if (node.isDirectory) node.whiteouts = new Set();
    this.#directories.added(place.parent, place.name, node);
    return node;
  }

  /** New entries belong to who made them, where the server can arrange that. */
  #giveTo(caller: Caller, directory: number, name: string): void {
    if (!this.#context.privileged || this.#context.mapsOwner) return;
    if (caller.uid === 0 && caller.gid === 0) return;
    syscalls.fchownat(directory, name, caller.uid, caller.gid);
  }

  #linkTo(node: Node, place: EntryTarget): number {
    if (node.parent === undefined) {
      const held = node.fd >= 0 ? node.fd : node.orphan;
      return held < 0 ? -Errno.ESTALE : syscalls.linkDescriptor(held, place.directory, place.name);
    }
    const source = this.#context.tree.descriptors.get(node.parent, this.#context.tree.stack.top);
    return source < 0 ? source : syscalls.linkat(source, node.name, place.directory, place.name);
  }
}
