import { Attributes, type Caller, Errno, type Reply } from "@agentfense/fuse";
import { LEVEL } from "@agentfense/permission";
import type { Context } from "./context.ts";
import { Access } from "./credentials.ts";
import { DirentType } from "./directory-reader.ts";
import { textOf } from "./names.ts";
import type { Node } from "./node.ts";
import type { Walk } from "./walks.ts";

/** Readdir offsets: 1 is behind ".", 2 behind "..", and an entry at position i of the listing is followed by i + 3. */
const FIRST_POSITION = 2;

/** Listings kept at a time. The kernel keeps its own copy of a listing it has read, so ours soon serve nobody. */
const KEPT_LISTINGS = 64;
const KEPT_NAMES = 200_000;

/** Callers of whom we remember whether they look at what they list. */
const KEPT_READERS = 256;

export interface Validity {
  entryMs(node: Node): number;
  readonly attributesMs: number;
}

/** Listing of directories. */
export class Directories {
  readonly #context: Context;
  readonly #validity: Validity;
  readonly #attributes = new Attributes();
  readonly #recent: Node[] = [];
  /** By caller: the directory it listed last, or true once it has been seen to look at the entries. */
  readonly #readers = new Map<number, number | true>();
  /** Listings that are being made, with what changed meanwhile. */
  readonly #building = new Map<Node, { changed: boolean; readonly doubted: Set<string> }>();

  constructor(context: Context, validity: Validity) {
    this.#context = context;
    this.#validity = validity;
  }

  /**
   * Answers READDIR or READDIRPLUS from a position. Attributes cost a stat per entry, which `find` does not want and
   * `grep -r` does. Directories always carry them; other entries only for callers that, after an earlier listing, looked
   * up what they had been told of.
   */
  read(node: Node, offset: number, size: number, plus: boolean, caller: Caller, reply: Reply): number {
    const { credentials } = this.#context;
    if (node.removed) return 0;
    if (!credentials.may(caller, node, Access.READ)) return Errno.EACCES;
    const listing = this.#listing(node, offset);
    if (typeof listing === "number") return listing;
    const detailed = plus && this.#looksAtEntries(caller.pid, node.id);
    if (!this.#dots(node, offset, size, plus, reply)) return 0;
    let hasGranted = false;
    for (let i = Math.max(0, offset - FIRST_POSITION); i < listing.names.length; i++) {
      const name = listing.names[i]!;
      if (name === "") continue;
      if (listing.isDoubtful(name)) {
        // Finding out may take longer than a turn, and what is in the reply already was granted.
        if (hasGranted) break;
        if (!this.#stillShows(node, listing, name)) continue;
      }
      if (!this.#emit(node, listing, i, size, plus, detailed, reply)) break;
      hasGranted = true;
    }
    return 0;
  }

  /**
   * A caller looked up a file: if it did so in the directory it has just listed, it will want attributes next time. Probing
   * for a file that is not there, as git does for .gitignore, is no such sign.
   */
  noteLookup(pid: number, directory: number): void {
    if (this.#readers.get(pid) === directory) this.#readers.set(pid, true);
  }

  /** A name has come to a directory. */
  added(directory: Node, name: string, node: Node): void {
    directory.listing?.add(name, node.type >> 12, node.ino);
    this.#changed(directory);
  }

  removed(directory: Node, name: string): void {
    directory.listing?.remove(name);
    this.#changed(directory);
  }

  /** A directory that only leads to something may lead to nothing any more. */
  doubted(directory: Node, name: string): void {
    directory.listing?.doubt(name);
    this.#building.get(directory)?.doubted.add(name);
  }

  #changed(directory: Node): void {
    const building = this.#building.size === 0 ? undefined : this.#building.get(directory);
    if (building !== undefined) building.changed = true;
  }

  #stillShows(directory: Node, listing: Listing, name: string): boolean {
    const { tree } = this.#context;
    const shown = tree.visible(directory, name);
    listing.believe(name);
    if (typeof shown === "number") listing.remove(name);
    else tree.release(shown);
    return typeof shown !== "number";
  }

  #looksAtEntries(pid: number, directory: number): boolean {
    const known = this.#readers.get(pid);
    if (known === true) return true;
    if (this.#readers.size >= KEPT_READERS) this.#readers.clear();
    this.#readers.set(pid, directory);
    return false;
  }

  // False when the buffer is full already.
  #dots(node: Node, offset: number, size: number, plus: boolean, reply: Reply): boolean {
    const parent = node.parent ?? node;
    if (offset < 1 && !this.#plain(reply, size, plus, node.ino, 1, DirentType.DIRECTORY, ".")) return false;
    if (offset < 2 && !this.#plain(reply, size, plus, parent.ino, 2, DirentType.DIRECTORY, "..")) return false;
    return true;
  }

  #emit(
    node: Node,
    listing: Listing,
    i: number,
    size: number,
    plus: boolean,
    detailed: boolean,
    reply: Reply,
  ): boolean {
    const { tree, presentation } = this.#context;
    const name = listing.names[i]!;
    const type = listing.types[i]!;
    const next = i + 1 + FIRST_POSITION;
    const ino = listing.inodes[i]!;
    if (ino !== 0 && !(detailed || (plus && type === DirentType.DIRECTORY))) {
      return this.#plain(reply, size, plus, ino, next, type, name);
    }
    if (plus && !reply.fitsPlus(size, name)) return false;
    if (tree.resolve(node, name) !== 0) return true;
    const child = tree.bind(node, name);
    listing.inodes[i] = child.ino;
    if (!plus) {
      const fits = this.#plain(reply, size, plus, child.ino, next, type, name);
      tree.release(child);
      return fits;
    }
    presentation.show(child, this.#attributes);
    const { attributesMs } = this.#validity;
    child.lookups += 1;
    return reply.directoryEntryPlus(
      size,
      child.id,
      this.#attributes,
      this.#validity.entryMs(child),
      attributesMs,
      next,
      child.type >> 12,
      name,
    );
  }

  // A name without attributes.
  #plain(reply: Reply, size: number, plus: boolean, ino: number, next: number, type: number, name: string): boolean {
    if (!plus) return reply.directoryEntry(size, ino, next, type, name);
    this.#attributes.ino = ino;
    return reply.directoryEntryPlus(size, 0, this.#attributes, 0, 0, next, type, name);
  }

  #listing(node: Node, offset: number): Listing | number {
    const { tree, walks } = this.#context;
    const known = node.listing?.edition === tree.edition ? node.listing : undefined;
    const mostlyHoles = known !== undefined && known.holes > 1000 && known.holes > known.names.length / 2;
    if (known !== undefined && !(offset === 0 && mostlyHoles)) return known;
    const listing = walks.result(`listing ${node.id} ${tree.edition}`, () => this.#build(node));
    if (typeof listing === "number") return listing;
    node.listing = listing;
    this.#keep(node);
    return listing;
  }

  *#build(node: Node): Walk<Listing | number> {
    const building = { changed: false, doubted: new Set<string>() };
    this.#building.set(node, building);
    node.pins += 1;
    try {
      for (;;) {
        building.changed = false;
        building.doubted.clear();
        const listing = yield* this.#list(node);
        if (typeof listing !== "number") for (const name of building.doubted) listing.doubt(name);
        if (!building.changed) return listing;
      }
    } finally {
      this.#building.delete(node);
      node.pins -= 1;
    }
  }

  *#list(node: Node): Walk<Listing | number> {
    const { tree } = this.#context;
    const scope = tree.scopeOf(node);
    const listing = new Listing(tree.edition);
    const ways: string[] = [];
    const code = yield* tree.walkNames(node, (name, type, layer, inode) => {
      if (type === DirentType.CHARACTER || type === DirentType.BLOCK) return;
      const child = scope.uniform ? scope : scope.child(textOf(name));
      if (child.level > LEVEL.none) {
        const needsLook = type === DirentType.DIRECTORY || type === DirentType.UNKNOWN;
        const ino = needsLook
          ? 0
          : tree.stack.isOwn(layer)
            ? tree.inodes.ofDelta(inode)
            : tree.inodes.ofPath(node.ino, name);
        listing.add(name, type, ino);
      } else if (child.mayShowBelow && (type === DirentType.DIRECTORY || type === DirentType.UNKNOWN)) ways.push(name);
    });
    if (code < 0) return -code;
    for (const name of ways) {
      const child = yield* tree.walkVisible(node, name);
      if (typeof child === "number") continue;
      listing.add(name, DirentType.DIRECTORY, child.ino);
      tree.release(child);
    }
    return listing;
  }

  #keep(node: Node): void {
    const recent = this.#recent;
    recent.push(node);
    let names = 0;
    for (const each of recent) names += each.listing?.names.length ?? 0;
    while (recent.length > 1 && (recent.length > KEPT_LISTINGS || names > KEPT_NAMES)) {
      const oldest = recent.shift()!;
      names -= oldest.listing?.names.length ?? 0;
      if (oldest !== node) oldest.listing = undefined;
    }
  }
}

/**
 * The names of a directory in a fixed order. The position of a name is its readdir offset, and it never changes while
 * the listing lives: what is removed leaves a hole, what is new comes last. So a reader that deletes while it reads
 * neither misses nor repeats a name. Only visible names are ever in it, hence offsets tell nothing about hidden ones.
 */
export class Listing {
  /** The rules under which it was made; see Tree.edition. */
  readonly edition: number;
  /** "" marks a hole. */
  readonly names: string[] = [];
  /** Type as in d_type. */
  readonly types: number[] = [];
  /** Inode number of the entry; 0 when it has to be looked up. */
  readonly inodes: number[] = [];
  readonly #positions = new Map<string, number>();
  /** Names of directories that the rules hide, and that may no longer lead to anything. */
  readonly #doubtful = new Set<string>();
  holes = 0;

  constructor(edition: number) {
    this.edition = edition;
  }

  add(name: string, type: number, ino: number): void {
    this.#positions.set(name, this.names.length);
    this.names.push(name);
    this.types.push(type);
    this.inodes.push(ino);
  }

  /** Where a name stands; undefined when it is not listed. */
  positionOf(name: string): number | undefined {
    return this.#positions.get(name);
  }

  remove(name: string): void {
    const position = this.positionOf(name);
    if (position === undefined) return;
    this.#positions.delete(name);
    this.names[position] = "";
    this.holes += 1;
  }

  doubt(name: string): void {
    if (this.#positions.has(name)) this.#doubtful.add(name);
  }

  isDoubtful(name: string): boolean {
    return this.#doubtful.size > 0 && this.#doubtful.has(name);
  }

  believe(name: string): void {
    this.#doubtful.delete(name);
  }
}
