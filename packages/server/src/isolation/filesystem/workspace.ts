import {
  type AttributeChange,
  Attributes,
  type BackgroundJob,
  type Caller,
  type ConnectionInfo,
  type CopyRange,
  type CopyResult,
  EPOCH_MINOR,
  Errno,
  type FileSystem,
  incrementEpoch,
  invalidateListing,
  type Reply,
  type RequestControl,
  SetattrField,
  syscalls,
} from "@agentfense/fuse";
import { LEVEL, type Policy } from "@agentfense/permission";
import { type Context, overQuota, refuse, requireLevel } from "./context.ts";
import { CopyUp } from "./copy-up.ts";
import { Access, Credentials } from "./credentials.ts";
import { Delta } from "./delta.ts";
import { EventGate, type FileSystemEvent } from "./denials.ts";
import type { DescriptorCache } from "./descriptor-cache.ts";
import { Directories } from "./directories.ts";
import { Files } from "./files.ts";
import { Mutations } from "./mutations.ts";
import type { Node } from "./node.ts";
import { type Owner, Presentation } from "./presentation.ts";
import { Quota, type QuotaLimits } from "./quota.ts";
import { Tree } from "./tree.ts";
import { getXattr, isUserXattr, listXattrs, removeXattr, setXattr } from "./xattrs.ts";

const { FileType, UTIME_NOW, UTIME_OMIT } = syscalls;

/** Only we change what the mount shows, and we tell the kernel when we do: it may remember for a day. */
const REMEMBER_MS = 86_400_000;

const BLOCK_SIZE = 4096;
/** What statfs shows without a quota: a constant, since the host's figures would move with hidden files. */
const UNLIMITED_BYTES = 2 ** 40;
const UNLIMITED_FILES = 2 ** 30;

export interface WorkspaceOptions {
  /** Descriptors of the codebase layers' roots, top first; the workspace takes them over. */
  readonly lowers: readonly number[];
  /** Directory of the delta; absent: nothing can be written. */
  readonly deltaPath: string | undefined;
  readonly policy: Policy;
  readonly quota: QuotaLimits | undefined;
  readonly owner: Owner | undefined;
  readonly passthrough: boolean;
  readonly xattrs: boolean;
  readonly revocable: boolean;
  readonly privileged: boolean;
  readonly descriptors: DescriptorCache;
  readonly background: (job: BackgroundJob) => void;
  readonly onEvent: (event: FileSystemEvent) => void;
  /** Have the kernel drop the pages it caches of a file, from another thread. */
  readonly stalePages: (node: number) => void;
}

/** What the kernel must be told after the rules changed, by a thread that does not serve. */
export interface StaleNames {
  readonly inodes: readonly number[];
  /** Names to drop one by one, for kernels that cannot drop all at once. */
  readonly entries: readonly { readonly parent: number; readonly name: string }[];
}

/** The guarded workspace: a FUSE file system that shows delta over codebase and answers every operation by rule. */
export class Workspace implements FileSystem {
  readonly #context: Context;
  readonly #tree: Tree;
  readonly #files: Files;
  readonly #directories: Directories;
  readonly #mutations: Mutations;
  readonly #presentation: Presentation;
  readonly #delta: Delta | undefined;
  readonly #descriptors: DescriptorCache;
  readonly #attributes = new Attributes();
  readonly #revocable: boolean;
  #connection: ConnectionInfo | undefined;

  // Present only if extended attributes are on: a missing handler makes the kernel stop asking for them.
  readonly getxattr?: NonNullable<FileSystem["getxattr"]>;
  readonly listxattr?: NonNullable<FileSystem["listxattr"]>;
  readonly setxattr?: NonNullable<FileSystem["setxattr"]>;
  readonly removexattr?: NonNullable<FileSystem["removexattr"]>;

  constructor(options: WorkspaceOptions) {
    const { policy, descriptors } = options;
    this.#descriptors = descriptors;
    this.#revocable = options.revocable;
    this.#delta = options.deltaPath === undefined ? undefined : Delta.open(options.deltaPath, options.lowers[0]);
    this.#tree = new Tree({ lowers: options.lowers, delta: this.#delta, descriptors, policy });
    for (const fd of options.lowers) syscalls.close(fd);
    const tree = this.#tree;
    this.#presentation = new Presentation({ tree, owner: options.owner, mountedAtMs: Date.now() });
    const quota = options.quota && new Quota(options.quota);
    if (this.#delta) quota?.measure(this.#delta.tree);
    const delta = this.#delta;
    const control = (): RequestControl => this.#context.control!;
    const writing = delta && {
      delta,
      quota,
      copyUp: new CopyUp({
        tree,
        delta,
        presentation: this.#presentation,
        quota,
        background: options.background,
        control,
      }),
    };
    this.#context = {
      tree,
      presentation: this.#presentation,
      credentials: new Credentials({
        everythingIsOwned: options.owner !== undefined,
        oneUser: !options.privileged,
      }),
      events: new EventGate(options.onEvent),
      writing,
      mapsOwner: options.owner !== undefined,
      privileged: options.privileged,
      staleListing: (directory) => {
        if (this.#connection) invalidateListing(this.#connection.fd, directory);
      },
      stalePages: options.stalePages,
      control: undefined,
    };
    this.#files = new Files(this.#context, { revocable: options.revocable, passthrough: options.passthrough });
    this.#directories = new Directories(this.#context, {
      entryMs: (node) => this.#entryMs(node),
      attributesMs: REMEMBER_MS,
    });
    this.#mutations = new Mutations(this.#context, this.#directories);
    if (options.xattrs) {
      this.getxattr = this.#getxattr;
      this.listxattr = this.#listxattr;
      this.setxattr = this.#setxattr;
      this.removexattr = this.#removexattr;
    }
  }

  init(connection: ConnectionInfo, control: RequestControl): void {
    this.#connection = connection;
    this.#context.control = control;
    this.#files.connect(connection);
  }

  destroy(): void {
    this.#tree.close();
    this.#delta?.close();
  }

  /** Puts other rules in force, for every path operation and open from now on. */
  replaceRules(policy: Policy): StaleNames {
    const tree = this.#tree;
    tree.setPolicy(policy);
    const atOnce = (this.#connection?.minor ?? 0) >= EPOCH_MINOR && incrementEpoch(this.#connection!.fd) >= 0;
    const inodes: number[] = [];
    const entries: { parent: number; name: string }[] = [];
    for (const node of tree.nodes()) {
      // Directories for their cached listing, open files so that no cached page outlives a revoked permission.
      if (node.isDirectory || (this.#revocable && node.openCount > 0)) inodes.push(node.id);
      if (!atOnce) for (const { parent, name } of node.names()) entries.push({ parent: parent.id, name });
    }
    return { inodes, entries };
  }

  // --- looking -------------------------------------------------------------------------------------------------------

  lookup(parentId: number, name: string, caller: Caller, reply: Reply): number {
    this.#descriptors.trim();
    const tree = this.#tree;
    const parent = tree.node(parentId);
    if (parent === undefined) return Errno.ESTALE;
    if (!parent.isDirectory) return Errno.ENOTDIR;
    if (parent.removed) return Errno.ENOENT;
    const { credentials, events } = this.#context;
    if (!credentials.may(caller, parent, Access.EXECUTE)) return Errno.EACCES;
    if (!tree.shows(parent)) return Errno.ENOENT;
    const scope = tree.childScope(parent, name);
    const found = tree.visible(parent, name);
    if (typeof found === "number") {
      if (-found !== Errno.ENOENT) return -found;
      if (scope.level === LEVEL.none && scope.rule >= 0) {
        events.denied(() => tree.pathOf(parent, name), "lookup", scope, caller.pid);
      }
      reply.absent(credentials.keepsOut(parent) ? 0 : REMEMBER_MS);
      return 0;
    }
    if (!found.isDirectory) this.#directories.noteLookup(caller.pid, parentId);
    this.#grantEntry(found, reply);
    return 0;
  }

  forget(nodeId: number, count: number): void {
    const node = this.#tree.node(nodeId);
    if (node === undefined || node === this.#tree.root) return;
    node.lookups = Math.max(0, node.lookups - count);
    this.#tree.release(node);
  }

  getattr(nodeId: number, _caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    const code = this.#stat(node);
    if (code < 0) return -code;
    this.#presentation.show(node, this.#attributes);
    reply.attributes(this.#attributes, REMEMBER_MS);
    return 0;
  }

  readlink(nodeId: number, _caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    if (node.type !== FileType.SYMLINK) return Errno.EINVAL;
    const into = reply.bytes.subarray(reply.dataOffset, reply.dataOffset + 4096);
    const length = node.orphan >= 0 ? syscalls.readlinkat(node.orphan, "", into) : this.#readlink(node, into);
    if (length < 0) return -length;
    reply.setDataLength(length);
    return 0;
  }

  access(nodeId: number, mask: number, caller: Caller): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    const level = this.#tree.levelOf(node);
    const { credentials, writing } = this.#context;
    if ((mask & Access.WRITE) !== 0 && level < LEVEL.write) return Errno.EACCES;
    if ((mask & Access.WRITE) !== 0 && writing === undefined) return Errno.EROFS;
    if (!node.isDirectory && (mask & (Access.READ | Access.EXECUTE)) !== 0 && level < LEVEL.read) return Errno.EACCES;
    const needsExecute = (mask & Access.EXECUTE) !== 0 && node.isRegular;
    if (needsExecute && (node.mode & 0o111) === 0) return Errno.EACCES;
    return credentials.may(caller, node, mask & 7) && credentials.canReach(caller, node) ? 0 : Errno.EACCES;
  }

  statfs(_nodeId: number, reply: Reply): number {
    const quota = this.#context.writing?.quota;
    const totalBytes = quota?.limits.bytes ?? UNLIMITED_BYTES;
    const totalFiles = quota?.limits.files ?? UNLIMITED_FILES;
    const usedBytes = quota?.limits.bytes === undefined ? 0 : quota.usedBytes;
    const usedFiles = quota?.limits.files === undefined ? 0 : quota.usedFiles;
    reply.statistics({
      blocks: Math.floor(totalBytes / BLOCK_SIZE),
      blocksFree: Math.floor(Math.max(0, totalBytes - usedBytes) / BLOCK_SIZE),
      files: totalFiles,
      filesFree: Math.max(0, totalFiles - usedFiles),
      blockSize: BLOCK_SIZE,
      nameLength: 255,
    });
    return 0;
  }

  readdir(nodeId: number, _handle: number, offset: number, size: number, caller: Caller, reply: Reply): number {
    return this.#readDirectory(nodeId, offset, size, false, caller, reply);
  }

  readdirplus(nodeId: number, _handle: number, offset: number, size: number, caller: Caller, reply: Reply): number {
    return this.#readDirectory(nodeId, offset, size, true, caller, reply);
  }

  // --- files ---------------------------------------------------------------------------------------------------------

  open(nodeId: number, flags: number, caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    return typeof node === "number" ? node : this.#files.open(node, flags, caller, reply);
  }

  release(nodeId: number, handle: number): void {
    const node = this.#tree.node(nodeId);
    if (node !== undefined) this.#files.release(node, handle);
  }

  read(nodeId: number, _handle: number, offset: number, size: number, reply: Reply): number {
    const node = this.#tree.node(nodeId);
    return node === undefined ? Errno.ESTALE : this.#files.read(node, offset, size, reply);
  }

  write(
    nodeId: number,
    _handle: number,
    offset: number,
    data: Buffer,
    openFlags: number,
    caller: Caller,
    reply: Reply,
  ): number {
    const node = this.#tree.node(nodeId);
    return node === undefined ? Errno.ESTALE : this.#files.write(node, offset, data, openFlags, caller, reply);
  }

  fsync(nodeId: number, _handle: number, dataOnly: boolean): number {
    const node = this.#tree.node(nodeId);
    return node === undefined ? Errno.ESTALE : this.#files.fsync(node, dataOnly);
  }

  fsyncdir(): number {
    return 0;
  }

  fallocate(nodeId: number, _handle: number, offset: number, length: number, mode: number, caller: Caller): number {
    const node = this.#tree.node(nodeId);
    return node === undefined ? Errno.ESTALE : this.#files.fallocate(node, offset, length, mode, caller);
  }

  lseek(nodeId: number, _handle: number, offset: number, whence: number, reply: Reply): number {
    const node = this.#tree.node(nodeId);
    return node === undefined ? Errno.ESTALE : this.#files.lseek(node, offset, whence, reply);
  }

  copyFileRange(range: CopyRange, caller: Caller): CopyResult {
    const from = this.#tree.node(range.node);
    const to = this.#tree.node(range.targetNode);
    if (from === undefined || to === undefined) return { errno: Errno.ESTALE };
    return this.#files.copyRange(from, to, range, caller);
  }

  // --- changing ------------------------------------------------------------------------------------------------------

  create(parentId: number, name: string, flags: number, mode: number, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    if (typeof parent === "number") return parent;
    const node = this.#mutations.createFile(parent, name, mode, caller);
    if (typeof node === "number") {
      // Somebody was quicker, or a lookup was remembered wrongly: without O_EXCL that is an open.
      const mayOpen = -node === Errno.EEXIST && (flags & syscalls.Open.EXCL) === 0;
      return mayOpen ? this.#openExisting(parent, name, flags, caller, reply) : -node;
    }
    return this.#grantOpen(node, (flags & syscalls.Open.ACCMODE) !== 0, reply);
  }

  tmpfile(parentId: number, flags: number, mode: number, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    if (typeof parent === "number") return parent;
    const node = this.#mutations.createNameless(parent, mode, caller);
    return typeof node === "number" ? -node : this.#grantOpen(node, (flags & syscalls.Open.ACCMODE) !== 0, reply);
  }

  mkdir(parentId: number, name: string, mode: number, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    return typeof parent === "number" ? parent : this.#made(this.#mutations.mkdir(parent, name, mode, caller), reply);
  }

  mknod(parentId: number, name: string, mode: number, _rdev: number, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    return typeof parent === "number" ? parent : this.#made(this.#mutations.mknod(parent, name, mode, caller), reply);
  }

  symlink(parentId: number, name: string, target: string, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    return typeof parent === "number"
      ? parent
      : this.#made(this.#mutations.symlink(parent, name, target, caller), reply);
  }

  link(nodeId: number, parentId: number, name: string, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    const node = this.#known(nodeId);
    if (typeof parent === "number" || typeof node === "number") return typeof node === "number" ? node : Errno.ENOENT;
    const errno = this.#mutations.link(node, parent, name, caller);
    if (errno !== 0) return errno;
    const code = this.#stat(node);
    if (code < 0) return -code;
    this.#grantEntry(node, reply);
    return 0;
  }

  unlink(parentId: number, name: string, caller: Caller): number {
    const parent = this.#parent(parentId);
    return typeof parent === "number" ? parent : this.#mutations.unlink(parent, name, caller);
  }

  rmdir(parentId: number, name: string, caller: Caller): number {
    const parent = this.#parent(parentId);
    return typeof parent === "number" ? parent : this.#mutations.rmdir(parent, name, caller);
  }

  rename(parentId: number, name: string, newParentId: number, newName: string, flags: number, caller: Caller): number {
    const parent = this.#parent(parentId);
    const newParent = this.#parent(newParentId);
    if (typeof parent === "number") return parent;
    if (typeof newParent === "number") return newParent;
    return this.#mutations.rename(parent, name, newParent, newName, flags, caller);
  }

  setattr(nodeId: number, change: AttributeChange, caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    const errno = this.#change(node, change, caller);
    if (errno !== 0) return errno;
    const wasOpen = node.isDirectory && !this.#context.credentials.keepsOut(node);
    const code = this.#stat(node);
    if (code < 0) return -code;
    if (wasOpen && this.#context.credentials.keepsOut(node)) this.#forgetNames();
    this.#presentation.show(node, this.#attributes);
    reply.attributes(this.#attributes, REMEMBER_MS);
    return 0;
  }

  // Names below a directory that has just been closed to somebody. Older kernels remember them for their time.
  #forgetNames(): void {
    const connection = this.#connection;
    if (connection !== undefined && connection.minor >= EPOCH_MINOR) incrementEpoch(connection.fd);
  }

  #change(node: Node, change: AttributeChange, caller: Caller): number {
    const { fields } = change;
    const resizes = (fields & SetattrField.SIZE) !== 0;
    // A handle opened for writing keeps the right to change the size, whatever the rules have become.
    const byHandle = resizes && (change.handle & 2) !== 0 && !this.#revocable;
    const onlySize = (fields & (SetattrField.MODE | SetattrField.UID | SetattrField.GID)) === 0;
    if (!(byHandle && onlySize)) {
      const scope = this.#tree.scopeOf(node);
      if (scope.level < LEVEL.write && !node.removed)
        return refuse(this.#context, node, undefined, "setattr", scope, caller);
    }
    const { writing } = this.#context;
    if (writing === undefined) return Errno.EROFS;
    const denied = this.#mayChange(node, change, caller, byHandle);
    if (denied !== 0) return denied;
    if (node.isDirectory && node.removed) {
      // Somebody still has it open; what never was in the delta cannot change any more.
      if (!node.inDelta || node.orphan < 0) return Errno.ENOENT;
    } else if (node.isDirectory) {
      const fd = writing.copyUp.directory(node);
      if (fd < 0) return -fd;
    } else {
      const empty = resizes && change.size === 0;
      const errno = writing.copyUp.file(node, { empty });
      if (errno === Errno.EDQUOT) return overQuota(this.#context, node, undefined, "setattr", caller);
      if (errno !== 0) return errno;
    }
    return this.#apply(node, change, caller);
  }

  #mayChange(node: Node, change: AttributeChange, caller: Caller, byHandle: boolean): number {
    const { credentials } = this.#context;
    if (credentials.bypasses(caller)) return 0;
    if (!byHandle && !credentials.canReach(caller, node)) return Errno.EACCES;
    const { fields } = change;
    const owns = credentials.owns(caller, node);
    if ((fields & SetattrField.MODE) !== 0 && !owns) return Errno.EPERM;
    if ((fields & SetattrField.UID) !== 0 && !(owns && change.uid === node.uid)) return Errno.EPERM;
    const ownGroup = change.gid === node.gid || credentials.inGroup(caller, change.gid);
    if ((fields & SetattrField.GID) !== 0 && !(owns && ownGroup)) return Errno.EPERM;
    const times = fields & (SetattrField.ATIME | SetattrField.MTIME);
    if (times !== 0 && !owns) {
      const now = fields & (SetattrField.ATIME_NOW | SetattrField.MTIME_NOW);
      const bothNow = now === (SetattrField.ATIME_NOW | SetattrField.MTIME_NOW);
      if (!bothNow) return Errno.EPERM;
      if (!credentials.may(caller, node, Access.WRITE)) return Errno.EACCES;
    }
    if ((fields & SetattrField.SIZE) !== 0 && !byHandle && !credentials.may(caller, node, Access.WRITE))
      return Errno.EACCES;
    return 0;
  }

  #apply(node: Node, change: AttributeChange, caller: Caller): number {
    const { fields } = change;
    if ((fields & SetattrField.SIZE) !== 0) {
      if (!node.isRegular) return Errno.EINVAL;
      const errno = this.#files.truncate(node, change.size, caller);
      this.#files.closeIdle(node);
      if (errno !== 0) return errno;
    }
    const at = this.#location(node);
    if (typeof at === "number") return -at;
    if ((fields & (SetattrField.UID | SetattrField.GID)) !== 0) {
      const code = this.#chown(at, node, change);
      if (code < 0) return -code;
    }
    if ((fields & SetattrField.MODE) !== 0) {
      if (node.type === FileType.SYMLINK) return Errno.EOPNOTSUPP;
      const mode = change.mode & 0o1777;
      const code = at.name === "" ? syscalls.chmodHeld(at.fd, mode) : syscalls.chmodat(at.fd, at.name, mode);
      if (code < 0) return -code;
    }
    if ((fields & (SetattrField.ATIME | SetattrField.MTIME)) === 0) return 0;
    const atimeNs = nanoseconds(fields, SetattrField.ATIME, SetattrField.ATIME_NOW, change.atimeNs);
    const mtimeNs = nanoseconds(fields, SetattrField.MTIME, SetattrField.MTIME_NOW, change.mtimeNs);
    return -syscalls.utimensat(at.fd, at.name, change.atime, atimeNs, change.mtime, mtimeNs);
  }

  // As far as the mount's owner may: an owner shown to the sandbox is a fiction that only it itself fits into.
  #chown(at: Location, node: Node, change: AttributeChange): number {
    const uid = (change.fields & SetattrField.UID) !== 0 ? change.uid : -1;
    const gid = (change.fields & SetattrField.GID) !== 0 ? change.gid : -1;
    if (this.#context.mapsOwner) {
      this.#presentation.show(node, this.#attributes);
      const same = (uid === -1 || uid === this.#attributes.uid) && (gid === -1 || gid === this.#attributes.gid);
      return same ? 0 : -Errno.EPERM;
    }
    return syscalls.fchownat(at.fd, at.name, uid, gid);
  }

  // --- extended attributes -------------------------------------------------------------------------------------------

  #getxattr(nodeId: number, name: string, size: number, caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    if (!isUserXattr(name)) return name.startsWith("system.") ? Errno.EOPNOTSUPP : Errno.ENODATA;
    const errno = requireLevel(this.#context, node, node.isDirectory ? LEVEL.view : LEVEL.read, "getxattr", caller);
    if (errno !== 0) return errno;
    const at = this.#location(node);
    return typeof at === "number" ? -at : getXattr(at, name, size, reply);
  }

  #listxattr(nodeId: number, size: number, caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    const errno = requireLevel(this.#context, node, node.isDirectory ? LEVEL.view : LEVEL.read, "listxattr", caller);
    if (errno !== 0) return errno;
    const at = this.#location(node);
    return typeof at === "number" ? -at : listXattrs(at, size, reply);
  }

  #setxattr(nodeId: number, name: string, value: Buffer, flags: number, caller: Caller): number {
    const at = this.#changeableXattr(nodeId, name, "setxattr", caller);
    return typeof at === "number" ? at : setXattr(at, name, value, flags);
  }

  #removexattr(nodeId: number, name: string, caller: Caller): number {
    const at = this.#changeableXattr(nodeId, name, "removexattr", caller);
    return typeof at === "number" ? at : removeXattr(at, name);
  }

  #changeableXattr(nodeId: number, name: string, operation: string, caller: Caller): Location | number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
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
    const at = this.#location(node);
    return typeof at === "number" ? -at : at;
  }

  // --- common parts --------------------------------------------------------------------------------------------------

  /** A node that shows, or the errno for one that does not. */
  #known(nodeId: number): Node | number {
    this.#descriptors.trim();
    const node = this.#tree.node(nodeId);
    if (node === undefined) return Errno.ESTALE;
    return node.removed || this.#tree.shows(node) ? node : Errno.ENOENT;
  }

  #parent(nodeId: number): Node | number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    return node.isDirectory ? node : Errno.ENOTDIR;
  }

  #readDirectory(id: number, offset: number, size: number, plus: boolean, caller: Caller, reply: Reply): number {
    const node = this.#parent(id);
    return typeof node === "number" ? node : this.#directories.read(node, offset, size, plus, caller, reply);
  }

  #openExisting(parent: Node, name: string, flags: number, caller: Caller, reply: Reply): number {
    const node = this.#tree.visible(parent, name);
    if (typeof node === "number") return -node;
    if (!node.isRegular) return node.isDirectory ? Errno.EISDIR : Errno.ESTALE;
    this.#grantEntry(node, reply);
    const errno = this.#files.open(node, flags, caller, reply);
    if (errno !== 0) this.forget(node.id, 1);
    return errno;
  }

  #made(node: Node | number, reply: Reply): number {
    if (typeof node === "number") return -node;
    this.#grantEntry(node, reply);
    return 0;
  }

  #grantOpen(node: Node, writes: boolean, reply: Reply): number {
    this.#grantEntry(node, reply);
    const errno = this.#files.grant(node, writes, reply);
    if (errno !== 0) this.forget(node.id, 1);
    return errno;
  }

  /** An entry reply for a node whose stat is in the tree's `stat`. */
  #grantEntry(node: Node, reply: Reply): void {
    this.#presentation.show(node, this.#attributes);
    node.lookups += 1;
    reply.entry(node.id, this.#attributes, this.#entryMs(node), REMEMBER_MS);
  }

  // A directory that is only a way to something visible goes when that goes: the kernel asks every time.
  #entryMs(node: Node): number {
    const mayVanish = node.isDirectory && this.#tree.policy.grantsWrite && this.#tree.levelOf(node) === LEVEL.none;
    const guarded = node.parent !== undefined && this.#context.credentials.keepsOut(node.parent);
    return mayVanish || guarded ? 0 : REMEMBER_MS;
  }

  #stat(node: Node): number {
    const { stat } = this.#tree;
    const at = this.#location(node);
    if (typeof at === "number") return at;
    const code = at.name === "" ? syscalls.fstat(at.fd, stat) : syscalls.statat(at.fd, at.name, stat);
    if (code === 0) this.#tree.remember(node);
    return code;
  }

  /** Where the node is on disk now: a descriptor and a name in it, or the descriptor of the thing itself. */
  #location(node: Node): Location | number {
    const { descriptors, root } = this.#tree;
    if (node.orphan >= 0) return { fd: node.orphan, name: "" };
    if (node.fd >= 0) return { fd: node.fd, name: "" };
    if (node === root || (node.isDirectory && !node.removed)) {
      const fd = descriptors.get(node, node.layer);
      return fd < 0 ? fd : { fd, name: "" };
    }
    if (node.parent === undefined) return -Errno.ENOENT;
    const fd = descriptors.get(node.parent, node.layer);
    return fd < 0 ? fd : { fd, name: node.name };
  }

  #readlink(node: Node, into: Buffer): number {
    const at = this.#location(node);
    return typeof at === "number" ? at : syscalls.readlinkat(at.fd, at.name, into);
  }
}

interface Location {
  readonly fd: number;
  readonly name: string;
}

function nanoseconds(fields: number, set: number, now: number, value: number): number {
  if ((fields & set) === 0) return UTIME_OMIT;
  return (fields & now) !== 0 ? UTIME_NOW : value;
}
