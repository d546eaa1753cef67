import { syscalls } from "@agentfense/fuse";
import type { Scope } from "@agentfense/permission";
import type { Listing } from "./directories.ts";

const { FileType } = syscalls;

/** In the place of a layer: an inode of the delta that has no name there, any more or yet. Only descriptors hold it. */
const NAMELESS = -1;
export const NAMELESS_LAYERS: readonly number[] = [NAMELESS];

/**
 * The layers of a workspace, by number. The codebases have the lowest, then come those that snapshots froze, and the highest is the
 * delta's. A layer keeps its number when another is laid on it: what a node is made of stays as it is, and nothing has to be gone
 * through for it to be frozen.
 */
export class Stack {
  /** The delta. */
  top: number;
  /** Those from here on were made by a sandbox: the others are codebases. */
  readonly #firstOwn: number;
  /** Those below were opened with the mount, and cannot be written through their descriptors where the server has privileges. */
  readonly #firstOfMount: number;

  constructor({ codebases, frozen }: { readonly codebases: number; readonly frozen: number }) {
    this.#firstOwn = codebases;
    this.#firstOfMount = codebases + frozen;
    this.top = this.#firstOfMount;
  }

  /** A sandbox made it: whiteouts count in it. */
  isOwn(layer: number): boolean {
    return layer >= this.#firstOwn;
  }

  /** All in it was made through this mount. */
  isOfMount(layer: number): boolean {
    return layer >= this.#firstOfMount;
  }
}

/** How the kernel does I/O on an open file; while a file is open all its handles must agree. */
export type IoMode = "none" | "cached" | "passthrough";

/** A name of a node: where it is found. */
export interface Name {
  parent: Node;
  name: string;
}

/**
 * One file or directory the kernel knows about. It knows its directory and its name, never a path: names are resolved
 * step by step from descriptors. A file with several names made in the sandbox is one node with several names.
 */
export class Node {
  readonly id: number;
  readonly ino: number;
  readonly type: number;
  readonly stack: Stack;
  /** The first name; undefined for the root and for what has no name (any more). */
  parent: Node | undefined;
  name: string;
  moreNames: Name[] | undefined;
  /** Layers that hold it, top first. A file has one; a directory may be merged from several. */
  layers: readonly number[];
  /** Lookups the kernel holds. */
  lookups = 0;
  /** Uses within the mount thread, for the time of a walk below it. */
  pins = 0;
  /** As of the last stat; the kernel asks anew when it matters. */
  mode = 0;
  uid = 0;
  gid = 0;

  /** The rules for this path, and the epoch of rules and directory moves they were worked out in. */
  scope: Scope | undefined;
  scopeEpoch = -1;
  /** Of a directory, as of the same epoch: how deep it is, and the length of its path in bytes. The root is at 0 and 0. */
  levels = 0;
  pathBytes = 0;

  // Directories
  children: Map<string, Node> | undefined;
  #whiteouts: Set<string> | undefined;
  #whiteoutsIn = NAMELESS;
  listing: Listing | undefined;
  /** O_PATH descriptors by layer, owned by the DescriptorCache. */
  descriptors: number[] | undefined;
  recentlyUsed = false;
  /** For a directory that the rules hide: whether something below shows, and in which scope that was found out. */
  passage = false;
  passageIn: Scope | undefined;
  /** How often something below may have ceased to show. */
  doubts = 0;

  // Files
  openCount = 0;
  writers = 0;
  ioMode: IoMode = "none";
  /** Its content has been given to the kernel's cache, or the kernel has asked for it. */
  contentKnown = false;
  /** Written past the page cache since it was last opened in cached mode. */
  bypassed = false;
  backingId = 0;
  /** The backing file while it is open; shared by all handles, so that a copy-up moves them all. */
  fd = -1;
  fdWritable = false;
  /** Inode in the topmost layer that holds it, when a sandbox made that. */
  deltaInode = 0;
  /** Inode in the topmost codebase layer that holds it; 0 when none does. Of merged directories and what only codebases have. */
  lowerInode = 0;
  /** Counted against the quota although it has no name (O_TMPFILE). */
  countedNameless = false;
  /** Apparent size as of the last stat; exact while a quota needs it. */
  size = 0;
  /** Space of the delta that its descriptor holds, though it has no name there (any more); an open file's is still charged. */
  owed = 0;

  /** Descriptor that keeps it reachable after its last name is gone, while nobody has it open; the Openings own it. */
  orphan = -1;
  /** Has no name any more. */
  removed = false;
  /** Its name belongs to a newer node (the copy in the delta, a newer file); this one lives on for the handles it has. */
  superseded = false;
  /** The name it was cut off from: its rules still hold. */
  formerName: Name | undefined;

  constructor(
    id: number,
    ino: number,
    type: number,
    parent: Node | undefined,
    name: string,
    layers: readonly number[],
    stack: Stack,
  ) {
    this.id = id;
    this.ino = ino;
    this.type = type;
    this.parent = parent;
    this.name = name;
    this.layers = layers;
    this.stack = stack;
  }

  get isDirectory(): boolean {
    return this.type === FileType.DIRECTORY;
  }

  get isRegular(): boolean {
    return this.type === FileType.REGULAR;
  }

  /** The topmost layer that holds it. */
  get layer(): number {
    return this.layers[0]!;
  }

  get inDelta(): boolean {
    return this.layers[0] === this.stack.top || this.layers[0] === NAMELESS;
  }

  /** It is the delta's, and no name there leads to it. */
  get isNameless(): boolean {
    return this.layers[0] === NAMELESS;
  }

  /** A sandbox made it, or copied it up: it is in the delta, or in what a snapshot froze. */
  get isOwn(): boolean {
    return this.layers[0] === NAMELESS || this.stack.isOwn(this.layers[0]!);
  }

  /** It was made, or copied up, through this mount. */
  get isOfMount(): boolean {
    return this.layers[0] === NAMELESS || this.stack.isOfMount(this.layers[0]!);
  }

  /** Part of it comes from beneath the delta. */
  get hasLower(): boolean {
    return this.layers.length > 1 || !this.inDelta;
  }

  /** Part of it comes from a codebase. */
  get hasCodebase(): boolean {
    const lowest = this.layers.at(-1)!;
    return lowest !== NAMELESS && !this.stack.isOwn(lowest);
  }

  /** Names of lower layers that are deleted in the delta's directory; undefined until read. */
  get whiteouts(): Set<string> | undefined {
    return this.#whiteoutsIn === this.stack.top ? this.#whiteouts : undefined;
  }

  set whiteouts(names: Set<string> | undefined) {
    this.#whiteouts = names;
    this.#whiteoutsIn = this.stack.top;
  }

  /** Something below may have gone, so that it is no longer a way to anything. */
  doubtPassage(): void {
    this.passageIn = undefined;
    this.doubts += 1;
  }

  hasName(parent: Node, name: string): boolean {
    if (this.parent === parent && this.name === name) return true;
    return this.moreNames?.some((other) => other.parent === parent && other.name === name) ?? false;
  }

  addName(parent: Node, name: string): void {
    if (this.hasName(parent, name)) return;
    if (this.parent === undefined) {
      if (this.layers === NAMELESS_LAYERS) this.layers = [this.stack.top];
      this.parent = parent;
      this.name = name;
      this.removed = false;
    } else {
      this.moreNames ??= [];
      this.moreNames.push({ parent, name });
    }
    this.scopeEpoch = -1; // this name may be stricter
  }

  dropName(parent: Node, name: string): void {
    if (this.parent === parent && this.name === name) {
      const next = this.moreNames?.shift();
      this.parent = next?.parent;
      this.name = next?.name ?? "";
    } else if (this.moreNames !== undefined) {
      this.moreNames = this.moreNames.filter((other) => other.parent !== parent || other.name !== name);
    }
    if (this.moreNames?.length === 0) this.moreNames = undefined;
    this.scopeEpoch = -1;
  }

  names(): Name[] {
    if (this.parent === undefined) return [];
    return [{ parent: this.parent, name: this.name }, ...(this.moreNames ?? [])];
  }
}
