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
  invalidateAttributes,
  invalidateListing,
  type Reply,
  type RequestControl,
  syscalls,
} from "@agentfense/fuse";
import { LEVEL, type Policy } from "@agentfense/permission";
import { AttributeChanges } from "./attribute-changes.ts";
import { type Context, noteAccess } from "./context.ts";
import { CopyUp } from "./copy-up.ts";
import { Creation } from "./creation.ts";
import { Access, Credentials } from "./credentials.ts";
import { Delta } from "./delta.ts";
import { AccessRecord, EventGate, type FileSystemEvent } from "./denials.ts";
import type { DescriptorCache } from "./descriptor-cache.ts";
import { Directories } from "./directories.ts";
import { countHiddenLinks, type HiddenLinks } from "./directory-walk.ts";
import { EntryChanges } from "./entry-changes.ts";
import { ExtendedAttributes } from "./extended-attributes.ts";
import { Files } from "./files.ts";
import { type FreezeSpec, type Frozen, freeze } from "./freezing.ts";
import { Moves } from "./moves.ts";
import type { Node } from "./node.ts";
import { type DescriptorBudget, Openings } from "./openings.ts";
import { type Owner, Presentation } from "./presentation.ts";
import { BLOCK_SIZE, type Quota } from "./quota.ts";
import type { StaleReport } from "./refresh.ts";
import { Renaming } from "./renaming.ts";
import { placeOf, Tree } from "./tree.ts";
import { Upkeep } from "./upkeep.ts";
import { turn, type Walk, Walks } from "./walks.ts";

const { FileType } = syscalls;

/** Only we change what the mount shows, and we tell the kernel when we do: it may remember for a day. */
const REMEMBER_MS = 86_400_000;

/** What statfs shows without a quota: a constant, since the host's figures would move with hidden files. */
const UNLIMITED_BYTES = 2 ** 40;
const UNLIMITED_FILES = 2 ** 30;

export interface WorkspaceOptions {
  /** See TreeOptions. */
  readonly place: number;
  /** Descriptors of the codebase layers' roots, top first; the workspace takes them over. None: it is a home. */
  readonly lowers: readonly number[];
  /** The same of what snapshots froze. */
  readonly frozen: readonly number[];
  /** Directory of the delta; absent: nothing can be written. */
  readonly deltaPath: string | undefined;
  readonly policy: Policy;
  readonly quota: Quota | undefined;
  readonly owner: Owner | undefined;
  readonly passthrough: boolean;
  readonly xattrs: boolean;
  readonly revocable: boolean;
  readonly privileged: boolean;
  readonly descriptors: DescriptorCache;
  /** What all workspaces of the server may hold open together. */
  readonly budget: DescriptorBudget;
  readonly background: (job: BackgroundJob) => void;
  readonly onEvent: (event: FileSystemEvent) => void;
  /** Tell of what is looked at, read and written, too. */
  readonly recordsAccess: boolean;
  /** A rule refused something, whether or not an event tells of it. */
  readonly onDenied?: () => void;
  /** Have the kernel drop the pages it caches of a file, from another thread. */
  readonly stalePages: (node: number) => void;
}

/** The guarded workspace: a FUSE file system that shows delta over codebase and answers every operation by rule. */
export class Workspace implements FileSystem {
  /** What is done to the workspace from outside the mount. */
  readonly upkeep: Upkeep;
  readonly #context: Context;
  readonly #tree: Tree;
  readonly #files: Files;
  readonly #directories: Directories;
  readonly #attributeChanges: AttributeChanges;
  readonly #creation: Creation;
  readonly #entries: EntryChanges;
  readonly #renaming: Renaming;
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

  /** Opens the layers, and finishes in the delta what a killed process had begun. Takes the descriptors of the layers over. */
  static *open(options: WorkspaceOptions): Walk<Workspace> {
    let delta: Delta | undefined;
    let workspace: Workspace | undefined;
    try {
      const { deltaPath, lowers, frozen, quota } = options;
      if (deltaPath !== undefined) {
        delta = lowers.length === 0 ? Delta.openHome(deltaPath) : Delta.open(deltaPath, frozen[0] ?? lowers[0]);
      }
      if (delta) yield* delta.recover();
      if (delta) yield* quota?.measure(delta.tree) ?? [];
      const hiddenLinks = delta && (yield* countHiddenLinks(delta.tree, options.policy));
      workspace = new Workspace(options, delta, hiddenLinks ?? new Map());
      return workspace;
    } finally {
      for (const fd of [...options.lowers, ...options.frozen]) syscalls.close(fd);
      if (workspace === undefined) delta?.close();
    }
  }

  private constructor(options: WorkspaceOptions, delta: Delta | undefined, hiddenLinks: HiddenLinks) {
    const { place, policy, descriptors, quota } = options;
    this.#descriptors = descriptors;
    this.#revocable = options.revocable;
    this.#delta = delta;
    const walks = new Walks({ background: options.background, control: () => this.#context.control! });
    const openings = new Openings(options.budget, quota);
    const { lowers, frozen } = options;
    this.#tree = new Tree({ place, lowers, frozen, delta, descriptors, openings, policy, hiddenLinks, walks });
    const tree = this.#tree;
    this.#presentation = new Presentation({ tree, owner: options.owner, mountedAtMs: Date.now() });
    const writing = delta && {
      delta,
      quota,
      copyUp: new CopyUp({ tree, delta, presentation: this.#presentation, quota, walks }),
    };
    this.#context = {
      tree,
      walks,
      moves: new Moves(tree, walks),
      presentation: this.#presentation,
      credentials: new Credentials({ ownerOfAll: options.owner?.uid, oneUser: !options.privileged }),
      events: new EventGate(options.onEvent, options.onDenied),
      accesses: options.recordsAccess ? new AccessRecord(options.onEvent) : undefined,
      writing,
      mapsOwner: options.owner !== undefined,
      privileged: options.privileged,
      staleListing: (directory) => {
        if (this.#connection) invalidateListing(this.#connection.fd, directory);
      },
      staleAttributes: (node) => {
        if (this.#connection) invalidateAttributes(this.#connection.fd, node);
      },
      stalePages: options.stalePages,
      control: undefined,
    };
    this.upkeep = new Upkeep(this.#context);
    this.#files = new Files(this.#context, { revocable: options.revocable, passthrough: options.passthrough });
    this.#directories = new Directories(this.#context, {
      entryMs: (node) => this.#entryMs(node),
      attributesMs: REMEMBER_MS,
    });
    this.#attributeChanges = new AttributeChanges(this.#context, this.#files, { revocable: options.revocable });
    this.#entries = new EntryChanges(this.#context, this.#directories);
    this.#creation = new Creation(this.#context, this.#entries, this.#directories);
    this.#renaming = new Renaming(this.#context, this.#entries, this.#directories);
    if (options.xattrs) {
      const attributes = new ExtendedAttributes(this.#context);
      this.getxattr = (id, name, size, caller, reply) =>
        this.#with(id, (node) => attributes.get(node, name, size, caller, reply));
      this.listxattr = (id, size, caller, reply) =>
        this.#with(id, (node) => attributes.list(node, size, caller, reply));
      this.setxattr = (id, name, value, flags, caller) =>
        this.#with(id, (node) => attributes.set(node, name, value, flags, caller));
      this.removexattr = (id, name, caller) => this.#with(id, (node) => attributes.remove(node, name, caller));
    }
  }

  init(connection: ConnectionInfo, control: RequestControl): void {
    this.#connection = connection;
    this.#context.control = control;
    this.#files.connect(connection);
  }

  destroy(): void {
    this.#context.walks.close();
    this.#tree.close();
    this.#delta?.close();
  }

  /** Freezes the delta that these workspaces have in common, see freezing.ts. */
  static freeze(workspaces: readonly Workspace[], spec: FreezeSpec): Walk<Frozen> {
    return freeze(
      workspaces.map((workspace) => workspace.#context),
      spec,
    );
  }

  /** Descriptor that keeps others from the delta while the workspace lives; -1 without a delta. */
  get deltaLock(): number {
    return this.#delta?.lock ?? -1;
  }

  /** Puts other rules in force, for every path operation and open from now on; the rest is what the kernel has to forget. */
  *replaceRules(policy: Policy): Walk<StaleReport> {
    const tree = this.#tree;
    tree.setPolicy(policy);
    this.#forgetNames();
    if (this.#delta) {
      // The sandbox makes no hidden name from now on; nor must it move those there are while they are counted.
      using _hold = this.#context.moves.holdAll();
      const counts: HiddenLinks = new Map();
      for (const layer of tree.root.layers.filter((each) => tree.stack.isOfMount(each))) {
        yield* countHiddenLinks(tree.descriptors.get(tree.root, layer), policy, counts);
      }
      tree.hiddenLinks = counts;
    }
    const atOnce = (this.#connection?.minor ?? 0) >= EPOCH_MINOR && incrementEpoch(this.#connection!.fd) >= 0;
    const inodes: number[] = [];
    // Names to drop one by one, for kernels that cannot drop all at once.
    const entries: { parent: number; name: string }[] = [];
    for (const node of tree.presentNodes()) {
      // Directories for their cached listing, open files so that no cached page outlives a revoked permission.
      if (node.isDirectory || (this.#revocable && node.openCount > 0)) inodes.push(node.id);
      if (!atOnce) for (const { parent, name } of node.names()) entries.push({ parent: parent.id, name });
      turn.entries += 1;
      yield;
    }
    return { inodes, entries };
  }

  /** The entry of the root in the directory above it (see Trees). */
  grantRoot(reply: Reply): number {
    const { root } = this.#tree;
    const code = this.#tree.statNode(root);
    if (code < 0) return -code;
    this.#grantEntry(root, reply);
    return 0;
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
    if (!found.isDirectory) {
      this.#directories.noteLookup(caller.pid, parentId);
      noteAccess(this.#context, parent, name, LEVEL.view);
    }
    this.#grantEntry(found, reply);
    return 0;
  }

  forget(nodeId: number, count: number): void {
    turn.entries += 1;
    const node = this.#tree.node(nodeId);
    if (node === undefined || node === this.#tree.root) return;
    node.lookups = Math.max(0, node.lookups - count);
    this.#tree.release(node);
  }

  getattr(nodeId: number, _caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    return this.#answerAttributes(node, reply);
  }

  readlink(nodeId: number, _caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    if (node.type !== FileType.SYMLINK) return Errno.EINVAL;
    const into = reply.bytes.subarray(reply.dataOffset, reply.dataOffset + 4096);
    const at = this.#tree.locate(node);
    const length = typeof at === "number" ? at : syscalls.readlinkat(at.fd, at.name, into);
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
    const usedBytes = quota?.limits.bytes === undefined ? 0 : quota.used.bytes;
    const usedFiles = quota?.limits.files === undefined ? 0 : quota.used.files;
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
    if (this.#isElsewhere(range.targetNode)) return { errno: Errno.EXDEV };
    const from = this.#tree.node(range.node);
    const to = this.#tree.node(range.targetNode);
    if (from === undefined || to === undefined) return { errno: Errno.ESTALE };
    return this.#files.copyRange(from, to, range, caller);
  }

  // --- changing ------------------------------------------------------------------------------------------------------

  create(parentId: number, name: string, flags: number, mode: number, caller: Caller, reply: Reply): number {
    const parent = this.#parent(parentId);
    if (typeof parent === "number") return parent;
    if (!this.#tree.openings.mayOpen) return Errno.ENFILE;
    const node = this.#creation.createFile(parent, name, mode, caller);
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
    if (!this.#tree.openings.mayOpen) return Errno.ENFILE;
    const node = this.#creation.createNameless(parent, mode, caller);
    return typeof node === "number" ? -node : this.#grantOpen(node, (flags & syscalls.Open.ACCMODE) !== 0, reply);
  }

  mkdir(parentId: number, name: string, mode: number, caller: Caller, reply: Reply): number {
    return this.#inside(parentId, (parent) => this.#made(this.#creation.mkdir(parent, name, mode, caller), reply));
  }

  mknod(parentId: number, name: string, mode: number, _rdev: number, caller: Caller, reply: Reply): number {
    return this.#inside(parentId, (parent) => this.#made(this.#creation.mknod(parent, name, mode, caller), reply));
  }

  symlink(parentId: number, name: string, target: string, caller: Caller, reply: Reply): number {
    return this.#inside(parentId, (parent) => this.#made(this.#creation.symlink(parent, name, target, caller), reply));
  }

  link(nodeId: number, parentId: number, name: string, caller: Caller, reply: Reply): number {
    // The request goes to the directory; the file may be of another tree of the mount.
    if (this.#isElsewhere(nodeId)) return Errno.EXDEV;
    const parent = this.#parent(parentId);
    const node = this.#known(nodeId);
    if (typeof parent === "number" || typeof node === "number") return typeof node === "number" ? node : Errno.ENOENT;
    const errno = this.#creation.link(node, parent, name, caller);
    if (errno !== 0) return errno;
    const code = this.#tree.statNode(node);
    if (code < 0) return -code;
    this.#grantEntry(node, reply);
    return 0;
  }

  unlink(parentId: number, name: string, caller: Caller): number {
    return this.#inside(parentId, (parent) => this.#entries.unlink(parent, name, caller));
  }

  rmdir(parentId: number, name: string, caller: Caller): number {
    return this.#inside(parentId, (parent) => this.#entries.rmdir(parent, name, caller));
  }

  rename(parentId: number, name: string, newParentId: number, newName: string, flags: number, caller: Caller): number {
    const parent = this.#parent(parentId);
    if (this.#isElsewhere(newParentId)) return Errno.EXDEV;
    const newParent = this.#parent(newParentId);
    if (typeof parent === "number") return parent;
    if (typeof newParent === "number") return newParent;
    return this.#renaming.rename(parent, name, newParent, newName, flags, caller);
  }

  setattr(nodeId: number, change: AttributeChange, caller: Caller, reply: Reply): number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    const errno = this.#attributeChanges.change(node, change, caller);
    if (errno !== 0) return errno;
    const wasOpen = node.isDirectory && !this.#context.credentials.keepsOut(node);
    const answered = this.#answerAttributes(node, reply);
    if (answered === 0 && wasOpen && this.#context.credentials.keepsOut(node)) this.#forgetNames();
    return answered;
  }

  // All names, at once. Older kernels remember them for their time.
  #forgetNames(): void {
    const connection = this.#connection;
    if (connection !== undefined && connection.minor >= EPOCH_MINOR) incrementEpoch(connection.fd);
  }

  // --- common parts --------------------------------------------------------------------------------------------------

  /** A node that shows, or the errno for one that does not. */
  #known(nodeId: number): Node | number {
    this.#descriptors.trim();
    const node = this.#tree.node(nodeId);
    if (node === undefined) return Errno.ESTALE;
    return node.removed || this.#tree.shows(node) ? node : Errno.ENOENT;
  }

  /** In another tree of the mount. */
  #isElsewhere(nodeId: number): boolean {
    return placeOf(nodeId) !== placeOf(this.#tree.root.id);
  }

  #with(nodeId: number, use: (node: Node) => number): number {
    const node = this.#known(nodeId);
    return typeof node === "number" ? node : use(node);
  }

  #inside(parentId: number, use: (parent: Node) => number): number {
    const parent = this.#parent(parentId);
    return typeof parent === "number" ? parent : use(parent);
  }

  #answerAttributes(node: Node, reply: Reply): number {
    const code = this.#tree.statNode(node);
    if (code < 0) return -code;
    this.#presentation.show(node, this.#attributes);
    reply.attributes(this.#attributes, REMEMBER_MS);
    return 0;
  }

  #parent(nodeId: number): Node | number {
    const node = this.#known(nodeId);
    if (typeof node === "number") return node;
    return node.isDirectory ? node : Errno.ENOTDIR;
  }

  #readDirectory(id: number, offset: number, size: number, plus: boolean, caller: Caller, reply: Reply): number {
    const node = this.#parent(id);
    if (typeof node === "number") return node;
    if (offset === 0) noteAccess(this.#context, node, undefined, LEVEL.view);
    return this.#directories.read(node, offset, size, plus, caller, reply);
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
}
