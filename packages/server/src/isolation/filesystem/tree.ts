import { randomFillSync } from "node:crypto";
import { Errno, ROOT_ID, syscalls } from "@agentfense/fuse";
import { LEVEL, type LevelValue, type Policy, type Scope } from "@agentfense/permission";
import type { Delta } from "./delta.ts";
import type { DescriptorCache } from "./descriptor-cache.ts";
import { DirentType } from "./directory-reader.ts";
import type { HiddenLinks } from "./directory-walk.ts";
import { InodeNumbers } from "./inode-numbers.ts";
import { Layers } from "./layers.ts";
import { exceedsBounds, LEVELS_LIMIT, PATH_LIMIT, type PathExtent, textOf } from "./names.ts";
import { NAMELESS_LAYERS, Node, Stack } from "./node.ts";
import type { Openings } from "./openings.ts";
import type { Walk, Walks } from "./walks.ts";

const { FileType } = syscalls;

/**
 * So many ids there are for each tree of a mount, and the first of them stands before its root. Those of the first trees stay within
 * what V8 keeps as a plain integer.
 */
const IDS_OF_A_TREE = 2 ** 29;
const RANDOM_AT_ONCE = 256;

/** A descriptor of a directory and a name in it; with an empty name, the descriptor of the thing itself. */
export interface Location {
  readonly fd: number;
  readonly name: string;
}

/** The place of the tree that a node belongs to. */
export function placeOf(id: number): number {
  return Math.floor(id / IDS_OF_A_TREE);
}

export interface TreeOptions {
  /** Among the trees of one mount (see Trees); 0 for one that is a mount by itself. */
  readonly place: number;
  /** Descriptors of the codebase layers' roots, top first. */
  readonly lowers: readonly number[];
  /** The same of what snapshots froze, which lies on the codebases. */
  readonly frozen: readonly number[];
  readonly delta: Delta | undefined;
  readonly descriptors: DescriptorCache;
  readonly openings: Openings;
  readonly policy: Policy;
  readonly hiddenLinks: HiddenLinks;
  readonly walks: Walks;
}

/**
 * The union of delta and codebase, seen through the rules: which entries exist, in which layers, at which level, and the
 * table of nodes that the kernel knows. It reads; changes are made by others, who tell it.
 */
export class Tree extends Layers {
  readonly root: Node;
  readonly inodes = new InodeNumbers();
  readonly openings: Openings;
  /** Files that are open for writing. */
  readonly written = new Set<Node>();
  /** Those among them whose handles the kernel writes through by itself, until the last of their handles is closed. */
  readonly passedBy = new Set<Node>();
  policy: Policy;
  /** Counts the rules that were in force: what was found out under other rules counts for nothing. */
  edition = 0;
  /**
   * Everything that is in the delta was made under these rules by the sandbox: so all that is only there can be written, and no
   * path in it exceeds `#extent`.
   */
  isOwnWork: boolean;
  hiddenLinks: HiddenLinks;

  readonly #firstId: number;
  readonly #walks: Walks;
  readonly #nodes = new Map<number, Node>();
  /** Nodes of files with several names that a sandbox made, by their inode. */
  readonly #linked = new Map<number, Node>();
  /** Names that frozen files have lost since, by their inode. */
  readonly #lostLinks = new Map<number, number>();
  readonly #random = new Uint32Array(RANDOM_AT_ONCE);
  #randomLeft = 0;
  readonly #heldStat = new syscalls.Stat();
  /** Counts changes of rules and moves of directories: what nodes remember of the rules is good for one epoch. */
  #epoch = 0;
  /** How far paths in the delta reach, or less. */
  #extent: PathExtent = { levels: 0, bytes: 0 };

  constructor(options: TreeOptions) {
    const { lowers, frozen } = options;
    const stack = new Stack({ codebases: lowers.length, frozen: frozen.length });
    super(options.delta, options.descriptors, stack);
    this.policy = options.policy;
    this.openings = options.openings;
    this.#walks = options.walks;
    this.isOwnWork = options.delta?.isEmpty() ?? true;
    const beneath = [...frozen, ...lowers];
    const layers = [...(options.delta ? [stack.top] : []), ...beneath.map((_, index) => stack.top - 1 - index)];
    this.#firstId = options.place * IDS_OF_A_TREE;
    // The numbers of what is below are made of the root's: two trees of one mount have none in common.
    const rootId = this.#firstId + ROOT_ID;
    this.root = new Node(rootId, rootId, FileType.DIRECTORY, undefined, "", layers, stack);
    this.root.lookups = 1;
    this.root.children = new Map();
    this.#nodes.set(rootId, this.root);
    if (options.delta) options.descriptors.put(this.root, stack.top, syscalls.dup(options.delta.tree));
    beneath.forEach((fd, index) => {
      options.descriptors.put(this.root, stack.top - 1 - index, syscalls.dup(fd));
    });
    this.hiddenLinks = options.hiddenLinks;
    if (syscalls.fstat(this.descriptors.get(this.root, this.root.layer), this.stat) === 0) this.remember(this.root);
  }

  /**
   * The delta is frozen where it is, and writes go to this empty one from now on. Nothing else has to be told: by its number each node
   * knows that its layer is no longer the delta.
   */
  lay(delta: number): void {
    const { stack, root } = this;
    stack.top += 1;
    this.descriptors.put(root, stack.top, syscalls.dup(delta));
    root.layers = [stack.top, ...root.layers];
    root.whiteouts = new Set();
    if (syscalls.fstat(delta, this.#heldStat) === 0) root.deltaInode = this.#heldStat.ino;
  }

  // --- nodes ---------------------------------------------------------------------------------------------------------

  node(id: number): Node | undefined {
    return this.#nodes.get(id);
  }

  /** Every node there is now, for a walk that may pause: those that come meanwhile are left out, or it might never end. */
  *presentNodes(): Generator<Node, void> {
    let left = this.#nodes.size;
    for (const node of this.#nodes.values()) {
      if (left-- === 0) return;
      yield node;
    }
  }

  /** Forgets the node when nobody needs it: not the kernel, no open handle, no child. */
  release(node: Node): void {
    let candidate: Node | undefined = node;
    while (candidate !== undefined && candidate !== this.root) {
      const inUse = candidate.lookups > 0 || candidate.openCount > 0 || candidate.pins > 0;
      const busy = inUse || (candidate.children?.size ?? 0) > 0;
      if (busy || !this.#nodes.delete(candidate.id)) return;
      for (const { parent, name } of candidate.names()) {
        if (parent.children?.get(name) === candidate) parent.children.delete(name);
      }
      this.descriptors.drop(candidate);
      this.openings.drop(candidate);
      if (candidate.fd >= 0) syscalls.close(candidate.fd);
      candidate.fd = -1;
      if (this.#linked.get(candidate.deltaInode) === candidate) this.#linked.delete(candidate.deltaInode);
      candidate = candidate.parent;
    }
  }

  /** Closes everything; the mount is gone. */
  close(): void {
    for (const node of this.#nodes.values()) {
      this.descriptors.drop(node);
      if (node.fd >= 0) syscalls.close(node.fd);
    }
    this.openings.close();
    this.#nodes.clear();
    this.#linked.clear();
  }

  // --- rules ---------------------------------------------------------------------------------------------------------

  setPolicy(policy: Policy): void {
    this.policy = policy;
    this.edition += 1;
    this.#epoch += 1;
    this.isOwnWork = this.delta === undefined;
  }

  /** A directory has moved: the paths of everything below are others now. */
  directoryMoved(): void {
    this.#epoch += 1;
  }

  scopeOf(node: Node): Scope {
    if (node.scopeEpoch === this.#epoch && node.scope !== undefined) return node.scope;
    // From above, without recursion: a codebase can be deep.
    const outdated: Node[] = [];
    for (const { parent } of node.names()) {
      for (
        let each: Node | undefined = parent;
        each !== undefined && each.scopeEpoch !== this.#epoch;
        each = each.parent
      )
        outdated.push(each);
    }
    for (let at = outdated.length - 1; at >= 0; at--) this.#workOut(outdated[at]!);
    return this.#workOut(node);
  }

  // What the parents are is known.
  #workOut(node: Node): Scope {
    const scope = node === this.root ? this.policy.root : this.#strictestScope(node);
    if (node.isDirectory && node.parent !== undefined) {
      node.levels = node.parent.levels + 1;
      node.pathBytes = node.parent.pathBytes + node.name.length + 1;
    }
    node.scope = scope;
    node.scopeEpoch = this.#epoch;
    return scope;
  }

  /** How far the path of an entry reaches. */
  extentOf(parent: Node, name: string): PathExtent {
    this.scopeOf(parent);
    return { levels: parent.levels + 1, bytes: parent.pathBytes + name.length + 1 };
  }

  /** The sandbox makes an entry; false when that would be too deep. What is only looked at may be anywhere. */
  hasRoomFor(parent: Node, name: string): boolean {
    const extent = this.extentOf(parent, name);
    if (exceedsBounds(extent)) return false;
    this.noteExtent(extent);
    return true;
  }

  noteExtent({ levels, bytes }: PathExtent): void {
    if (levels <= this.#extent.levels && bytes <= this.#extent.bytes) return;
    this.#extent = { levels: Math.max(levels, this.#extent.levels), bytes: Math.max(bytes, this.#extent.bytes) };
  }

  /** How far the paths of a directory of the delta can reach below it, going by the longest there are. */
  mostBelow(at: PathExtent): PathExtent {
    const { levels, bytes } = this.isOwnWork ? this.#extent : { levels: LEVELS_LIMIT, bytes: PATH_LIMIT };
    return { levels: Math.max(0, levels - at.levels), bytes: Math.max(0, bytes - at.bytes) };
  }

  childScope(parent: Node, name: string): Scope {
    return this.scopeOf(parent).child(textOf(name));
  }

  /** What the rules alone say; see `shows` for directories that are visible only as a way to something. */
  levelOf(node: Node): LevelValue {
    return this.scopeOf(node).level;
  }

  /** The entry exists as far as the sandbox can tell. */
  shows(node: Node): boolean {
    if (node === this.root || this.levelOf(node) > LEVEL.none) return true;
    return node.isDirectory && !node.removed && this.isPassage(node);
  }

  /** A directory that the rules hide but that leads to something visible. Asked by requests, which may have to wait for it. */
  isPassage(directory: Node): boolean {
    const known = this.#knownPassage(directory);
    return known ?? this.#walks.result(`passage ${directory.id} ${this.edition}`, () => this.walkPassage(directory));
  }

  #knownPassage(directory: Node): boolean | undefined {
    const scope = this.scopeOf(directory);
    if (!scope.mayShowBelow) return false;
    return directory.passageIn === scope ? directory.passage : undefined;
  }

  /** The same for what is no request. The directory itself is left as it was: whoever asks decides whether to keep it. */
  *walkPassage(top: Node): Walk<boolean> {
    const known = this.#knownPassage(top);
    if (known !== undefined) return known;
    const path: PassageSearch[] = [];
    try {
      let next: Node | boolean = top;
      while (typeof next !== "boolean") {
        const search = new PassageSearch(next, this.scopeOf(next));
        path.push(search);
        const found = yield* this.#findVisible(search);
        yield;
        next = found || this.#nextWay(path, top);
      }
      for (const search of path) search.conclude(next);
      return next;
    } finally {
      for (const search of path.reverse()) this.#leave(search, top);
    }
  }

  *#findVisible({ directory, scope, ways }: PassageSearch): Walk<boolean> {
    let found = false;
    yield* this.walkNames(directory, (name, type) => {
      if (type === DirentType.CHARACTER || type === DirentType.BLOCK) return false;
      const child = scope.child(textOf(name));
      if (child.level > LEVEL.none) found = true;
      else if (child.mayShowBelow && (type === DirentType.DIRECTORY || type === DirentType.UNKNOWN)) ways.push(name);
      return found;
    });
    return found;
  }

  // The next hidden directory to look into; true: one is known to lead somewhere; false: there is none left.
  #nextWay(path: PassageSearch[], top: Node): Node | boolean {
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const name = last.ways.pop();
      if (name === undefined) {
        last.conclude(false);
        this.#leave(last, top);
        path.pop();
      } else if (this.resolve(last.directory, name) === 0) {
        const child = this.bind(last.directory, name);
        const known = child.isDirectory ? this.#knownPassage(child) : false;
        if (known === undefined) return child;
        this.release(child);
        if (known) return true;
      }
    }
    return false;
  }

  #leave({ directory }: PassageSearch, top: Node): void {
    directory.pins -= 1;
    if (directory !== top) this.release(directory);
  }

  // An open comes without a name: of the names it can have come through, the strictest decides. A hidden one leads nowhere.
  #strictestScope(node: Node): Scope {
    let strictest: Scope | undefined;
    for (const { parent, name } of node.names()) {
      const scope = this.childScope(parent, name);
      const stricter = strictest === undefined || scope.level < strictest.level;
      if (strictest?.level === LEVEL.none || (stricter && scope.level > LEVEL.none)) strictest = scope;
      strictest ??= scope;
    }
    if (strictest === undefined && node.formerName)
      return this.childScope(node.formerName.parent, node.formerName.name);
    // Nameless: keeps what it had, or was made by the sandbox itself.
    return strictest ?? node.scope ?? this.policy.root;
  }

  /** What a snapshot froze is in the delta now, as another inode. */
  copied(file: Node, before: number): void {
    if (before === 0) return;
    if (this.#linked.get(before) === file) this.#linked.delete(before);
    if (file.moreNames !== undefined) this.#linked.set(file.deltaInode, file);
    const hidden = this.hiddenLinks.get(before);
    if (hidden !== undefined) this.hiddenLinks.set(file.deltaInode, hidden);
  }

  /** A name of a file that a snapshot of this mount froze was deleted, or something else has it now: there it stays. */
  loseFrozenName(node: Node): void {
    if (node.inDelta || !node.isOfMount || node.isDirectory) return;
    this.#lostLinks.set(node.deltaInode, (this.#lostLinks.get(node.deltaInode) ?? 0) + 1);
  }

  /** How many names of a file that was made in this mount do not show, though the disk counts them. */
  hiddenNames(node: Node): number {
    return (this.hiddenLinks.get(node.deltaInode) ?? 0) + (this.#lostLinks.get(node.deltaInode) ?? 0);
  }

  // --- names ---------------------------------------------------------------------------------------------------------

  /** The node for what the last resolve() found. It is kept until release() finds it unneeded. */
  bind(parent: Node, name: string): Node {
    const { stat } = this;
    const layers = this.foundLayers;
    let node = parent.children?.get(name);
    if (node !== undefined && !this.#isSame(node, layers)) {
      if (this.#isSameDirectory(node, layers)) this.adopt(node);
      else {
        this.unbind(node, parent, name);
        node = undefined;
      }
    }
    const isOwn = this.stack.isOwn(layers[0]!);
    const isDirectory = stat.type === FileType.DIRECTORY;
    if (node !== undefined && !isOwn && !isDirectory && node.lowerInode !== this.foundLower) {
      node = this.replaceContent(node, parent, name);
    }
    if (node === undefined && isOwn && !isDirectory) {
      node = this.#knownLink();
      node?.addName(parent, name);
      if (node !== undefined) node.layers = layers;
    }
    if (node === undefined) {
      const fromPath = !this.stack.isOwn(layers.at(-1)!);
      const ino = fromPath ? this.inodes.ofPath(parent.ino, name) : this.inodes.ofDelta(stat.ino);
      node = new Node(this.#freshId(), ino, stat.type, parent, name, layers, this.stack);
      if (isDirectory) node.children = new Map();
      node.lowerInode = node.hasCodebase ? this.foundLower : 0;
      this.#nodes.set(node.id, node);
    }
    if (isOwn) {
      node.deltaInode = stat.ino;
      if (!isDirectory && stat.nlink > 1) this.#linked.set(stat.ino, node);
    }
    parent.children ??= new Map();
    parent.children.set(name, node);
    this.remember(node);
    return node;
  }

  // The node of the file that resolve() has just found under a name that was not known. The file may have lost its other names
  // since: what was found by one of them is the same file under this one. A node that holds nothing of its file says nothing,
  // for the inode may be another's by now.
  #knownLink(): Node | undefined {
    const node = this.#linked.get(this.stat.ino);
    return node?.parent === undefined && (node?.orphan ?? -1) < 0 && (node?.fd ?? -1) < 0 ? undefined : node;
  }

  /** A node without a name, for O_TMPFILE; `stat` describes it. */
  bindNameless(): Node {
    const { stat } = this;
    const ino = this.inodes.ofDelta(stat.ino);
    const node = new Node(this.#freshId(), ino, stat.type, undefined, "", NAMELESS_LAYERS, this.stack);
    node.deltaInode = stat.ino;
    node.removed = true;
    this.#nodes.set(node.id, node);
    this.#linked.set(stat.ino, node);
    this.remember(node);
    return node;
  }

  // The sandbox can read ids in file handles (name_to_handle_at with AT_HANDLE_FID). Numbers in a row would tell it how many
  // nodes there were in between, those of hidden directories included.
  #freshId(): number {
    for (;;) {
      if (this.#randomLeft === 0) this.#randomLeft = randomFillSync(this.#random).length;
      this.#randomLeft -= 1;
      const id = this.#firstId + (this.#random[this.#randomLeft]! % IDS_OF_A_TREE);
      if (id > this.root.id && !this.#nodes.has(id)) return id;
    }
  }

  /** Notes what a stat said about a node. */
  remember(node: Node): void {
    node.mode = this.stat.mode;
    node.uid = this.stat.uid;
    node.gid = this.stat.gid;
    node.size = this.stat.size;
  }

  /** The node has lost this name. */
  unbind(node: Node, parent: Node, name: string): void {
    if (parent.children?.get(name) === node) parent.children.delete(name);
    node.dropName(parent, name);
    if (node.parent !== undefined) return;
    node.removed = true;
    if (node.inDelta && this.#isUnlinked(node)) node.layers = NAMELESS_LAYERS;
  }

  // What no name of the delta leads to any more stays the sandbox's to write when the delta is frozen.
  #isUnlinked({ fd, orphan }: Node): boolean {
    const held = fd >= 0 ? fd : orphan;
    return held >= 0 && syscalls.fstat(held, this.#heldStat) === 0 && this.#heldStat.nlink === 0;
  }

  /** A directory is made of the layers that resolve() has just found, and no longer of those it was made of. */
  adopt(directory: Node): void {
    directory.layers = this.foundLayers;
    directory.lowerInode = directory.hasCodebase ? this.foundLower : 0;
    directory.deltaInode = directory.isOwn ? this.stat.ino : 0;
    directory.whiteouts = undefined;
    directory.listing = undefined;
    this.descriptors.drop(directory);
    this.remember(directory);
  }

  /** A file of the delta has become the codebase's file that resolve() has just found; its handles keep what they have open. */
  handOver(file: Node): void {
    if (this.#linked.get(file.deltaInode) === file) this.#linked.delete(file.deltaInode);
    file.layers = this.foundLayers;
    file.lowerInode = this.foundLower;
    file.deltaInode = 0;
    file.fdWritable = false;
    this.remember(file);
  }

  /**
   * Another file of the codebase has taken the name. Whoever has the old one open keeps it, under the old node; otherwise the
   * node becomes the new file's. What the kernel has cached of it is no longer good.
   */
  replaceContent(node: Node, parent: Node, name: string): Node | undefined {
    if (node.openCount > 0) {
      this.cutOff(node, parent, name, { superseded: true });
      return undefined;
    }
    this.handOver(node);
    node.bypassed = true;
    node.contentKnown = false;
    return node;
  }

  /** The node loses its name to something else, or to nothing; what is open of it can still be used. */
  cutOff(node: Node, parent: Node, name: string, options: { superseded: boolean }): void {
    if (node.moreNames !== undefined) {
      this.unbind(node, parent, name);
      return;
    }
    const held = node.descriptors?.[node.layer] ?? -1;
    if (node.isDirectory && node.lookups > 0 && held >= 0) this.openings.keep(node, syscalls.dup(held));
    node.formerName = { parent, name };
    node.superseded = options.superseded && !node.isDirectory;
    node.listing = undefined;
    if (node.isDirectory) this.descriptors.drop(node);
    this.unbind(node, parent, name);
    this.release(node);
  }

  /** A file got its second name: from now on both are found by its inode. */
  noteLink(node: Node): void {
    this.#linked.set(node.deltaInode, node);
  }

  /** The visible entry of this name, or a negated errno. Hidden and absent are one answer. */
  visible(parent: Node, name: string): Node | number {
    const scope = this.childScope(parent, name);
    if (scope.level === LEVEL.none && !scope.mayShowBelow) return -Errno.ENOENT;
    const code = this.resolve(parent, name);
    if (code < 0) return code;
    if (scope.level === LEVEL.none && this.stat.type !== FileType.DIRECTORY) return -Errno.ENOENT;
    const node = this.bind(parent, name);
    if (scope.level > LEVEL.none) return node;
    if (!this.isPassage(node)) {
      this.release(node);
      return -Errno.ENOENT;
    }
    // The search went through other entries.
    const again = this.resolve(parent, name);
    return again < 0 ? again : node;
  }

  /** The same for what is no request. */
  *walkVisible(parent: Node, name: string): Walk<Node | number> {
    const scope = this.childScope(parent, name);
    if (scope.level > LEVEL.none || !scope.mayShowBelow) return this.visible(parent, name);
    if (this.resolve(parent, name) !== 0 || this.stat.type !== FileType.DIRECTORY) return -Errno.ENOENT;
    const node = this.bind(parent, name);
    node.pins += 1;
    const leads = yield* this.walkPassage(node);
    node.pins -= 1;
    if (leads && this.resolve(parent, name) === 0) return node;
    this.release(node);
    return -Errno.ENOENT;
  }

  /** Where the node is on disk now: a descriptor and a name in it, or the descriptor of the thing itself. */
  locate(node: Node): Location | number {
    if (node.orphan >= 0) return { fd: node.orphan, name: "" };
    if (node.fd >= 0) return { fd: node.fd, name: "" };
    const isHeld = node === this.root || (node.isDirectory && !node.removed);
    // Nothing is left to show of a file that was replaced, or of an orphan that made room for others.
    if (!isHeld && node.parent === undefined) return -Errno.ESTALE;
    const fd = this.descriptors.get(isHeld ? node : node.parent!, node.layer);
    return fd < 0 ? fd : { fd, name: isHeld ? "" : node.name };
  }

  /** Fills `stat` with what the disk says about a node now. */
  statNode(node: Node): number {
    const at = this.locate(node);
    if (typeof at === "number") return at;
    const code = at.name === "" ? syscalls.fstat(at.fd, this.stat) : syscalls.statat(at.fd, at.name, this.stat);
    if (code === 0) this.remember(node);
    return code;
  }

  /** "/a/b" as text, for messages to the operator. */
  pathOf(node: Node, name?: string): string {
    const parts: string[] = name === undefined ? [] : [textOf(name)];
    for (let each: Node | undefined = node; each?.parent !== undefined; each = each.parent)
      parts.push(textOf(each.name));
    return `/${parts.reverse().join("/")}`;
  }

  /** Path in the delta's tree, as bytes, without a leading slash. */
  deltaPath(parent: Node, name: string): string {
    const parts = [name];
    for (let each: Node | undefined = parent; each?.parent !== undefined; each = each.parent) parts.push(each.name);
    return parts.reverse().join("/");
  }

  /** The directory that was known, with a codebase layer more or less: codebases change. */
  #isSameDirectory(node: Node, layers: readonly number[]): boolean {
    if (!node.isDirectory || this.stat.type !== FileType.DIRECTORY) return false;
    return node.isOwn === this.stack.isOwn(layers[0]!) && (!node.isOwn || node.deltaInode === this.stat.ino);
  }

  #isSame(node: Node, layers: readonly number[]): boolean {
    if (node.type !== this.stat.type || node.layers.length !== layers.length) return false;
    if (node.layers.some((layer, index) => layer !== layers[index])) return false;
    return !node.isOwn || node.deltaInode === this.stat.ino;
  }
}

/** A directory that is searched for something visible. */
class PassageSearch {
  readonly directory: Node;
  readonly scope: Scope;
  /** Hidden directories in it that are still to be looked into. */
  readonly ways: string[] = [];
  readonly #doubts: number;

  constructor(directory: Node, scope: Scope) {
    this.directory = directory;
    this.scope = scope;
    this.#doubts = directory.doubts;
    directory.pins += 1;
  }

  /** Remembered unless something went meanwhile. */
  conclude(leads: boolean): void {
    if (this.directory.doubts !== this.#doubts) return;
    this.directory.passage = leads;
    this.directory.passageIn = this.scope;
  }
}
