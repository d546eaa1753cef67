import { syscalls } from "@agentfense/fuse";
import type { Scope } from "@agentfense/permission";
import type { Listing } from "./directories.ts";

const { FileType } = syscalls;

/** The delta is layer 0; the codebase layers follow, top first. */
export const DELTA = 0;

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
  /** Names of lower layers that are deleted here; undefined until read. */
  whiteouts: Set<string> | undefined;
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
  /** Inode in the delta, when that is where it is. */
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
  ) {
    this.id = id;
    this.ino = ino;
    this.type = type;
    this.parent = parent;
    this.name = name;
    this.layers = layers;
  }

  get isDirectory(): boolean {
    return this.type === FileType.DIRECTORY;
  }

  get isRegular(): boolean {
    return this.type === FileType.REGULAR;
  }

  /** The topmost layer that holds it. */
  get layer(): number {
    return this.layers[0] ?? DELTA;
  }

  get inDelta(): boolean {
    return this.layers[0] === DELTA;
  }

  /** Part of it comes from the codebase. */
  get hasLower(): boolean {
    return this.layers.length > 1 || this.layers[0] !== DELTA;
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
