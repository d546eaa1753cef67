import { type DirectoryEntry, directoryEntry, type Entry, isSame, sizeOf } from "./entry.ts";
import { PathTree } from "./path-tree.ts";
import { ancestorsOf, joined } from "./paths.ts";

/** What a sandbox has at a path instead of its codebase. */
interface DeltaEntry {
  /** Absent: a whiteout, which hides what the codebase has there. */
  readonly entry?: Entry;
  /** A directory that shows nothing of the codebase's directory of that name. */
  readonly opaque: boolean;
  /**
   * The codebase's version when the sandbox began to have its own here: what came later is somebody else's newer work.
   */
  readonly baseVersion: number;
}

export interface OverlayChange {
  readonly path: string;
  /** In the codebase. */
  readonly old: Entry | undefined;
  /** In the sandbox. */
  readonly now: Entry | undefined;
  readonly baseVersion: number;
}

/** The codebase as a sandbox sees it now. */
export interface LowerLayer {
  readonly tree: PathTree<Entry>;
  readonly version: number;
}

const ROOT: DirectoryEntry = directoryEntry(0o755, 0);

/** A copy-on-write union: the delta over the codebase, which is never written. Knows nothing of rules. */
export class Overlay {
  readonly #lower: () => LowerLayer;
  readonly #delta = new PathTree<DeltaEntry>();
  #bytes = 0;

  constructor(lower: () => LowerLayer) {
    this.#lower = lower;
  }

  /** Of files that are the sandbox's own. */
  get bytes(): number {
    return this.#bytes;
  }

  get(path: string): Entry | undefined {
    if (path === "/") return ROOT;
    const own = this.#delta.get(path);
    return own === undefined ? this.#lowerEntry(path) : own.entry;
  }

  names(directory: string): string[] {
    const own = this.#delta.names(directory);
    const lower = this.#showsLower(directory) ? this.#lower().tree.names(directory) : [];
    return [...new Set([...own, ...lower])].sort().filter((name) => this.get(joined(directory, name)) !== undefined);
  }

  /** Some of the directory is the codebase's, which may hold what the rules hide. */
  hasLowerDirectory(path: string): boolean {
    return this.#showsLower(path) && this.#lower().tree.get(path)?.kind === "directory";
  }

  /** Does the delta have something of its own at this path? */
  shadows(path: string): boolean {
    return this.get(path) !== this.#lower().tree.get(path);
  }

  /** The directory above must be there. */
  put(path: string, entry: Entry): void {
    this.#copyUp(path);
    const own = this.#delta.get(path);
    if (entry.kind !== "directory") this.#dropBelow(path);
    const covers = own?.entry === undefined && this.#lower().tree.get(path) !== undefined;
    const opaque = entry.kind === "directory" && (own?.opaque === true || covers);
    this.#set(path, { entry, opaque, baseVersion: own?.baseVersion ?? this.#lower().version });
  }

  /** With all below it. */
  remove(path: string): void {
    const baseVersion = this.#delta.get(path)?.baseVersion ?? this.#lower().version;
    this.forget(path);
    if (this.#lowerEntry(path) === undefined) return;
    this.#copyUp(path);
    this.#set(path, { opaque: false, baseVersion });
  }

  /** The codebase shows again, here and below. */
  forget(path: string): void {
    this.#dropBelow(path);
    this.#drop(path);
  }

  /** The codebase has what the sandbox had at this path: nothing of it stays in the delta, but what is below. */
  settle(path: string): void {
    const own = this.#delta.get(path);
    if (own?.entry?.kind === "directory" && this.#delta.names(path).length > 0) {
      this.#set(path, { ...own, opaque: false });
    } else this.#drop(path);
  }

  /** Directories that were only copied up, to have a place for what is gone from them now. */
  tidy(): void {
    for (const path of this.#delta.below("/").reverse()) {
      const own = this.#delta.get(path)!;
      const lower = this.#lower().tree.get(path);
      const isCopy = own.entry?.kind === "directory" && !own.opaque && lower !== undefined && isSame(own.entry, lower);
      if (isCopy && this.#delta.names(path).length === 0) this.#drop(path);
    }
  }

  /** In path order. A deleted directory is one change; what is equal to the codebase is none. */
  changes(): OverlayChange[] {
    return [...this.#changesIn("/", false)];
  }

  *#changesIn(directory: string, opaqueAbove: boolean): Generator<OverlayChange> {
    const opaque = opaqueAbove || this.#delta.get(directory)?.opaque === true;
    const { tree, version } = this.#lower();
    const names = new Set([...this.#delta.names(directory), ...(opaque ? tree.names(directory) : [])]);
    for (const name of [...names].sort()) {
      const path = joined(directory, name);
      const own = this.#delta.get(path);
      const old = tree.get(path);
      const now = own?.entry;
      const isEqual = old === undefined ? now === undefined : now !== undefined && isSame(old, now);
      if (!isEqual) yield { path, old, now, baseVersion: own?.baseVersion ?? version };
      if (now?.kind === "directory") yield* this.#changesIn(path, opaque);
    }
  }

  #lowerEntry(path: string): Entry | undefined {
    return ancestorsOf(path).every((above) => this.#showsLower(above, { alone: true }))
      ? this.#lower().tree.get(path)
      : undefined;
  }

  #showsLower(directory: string, options: { readonly alone: boolean } = { alone: false }): boolean {
    const own = this.#delta.get(directory);
    if (own !== undefined && (own.opaque || own.entry?.kind !== "directory")) return false;
    return options.alone || ancestorsOf(directory).every((above) => this.#showsLower(above, { alone: true }));
  }

  /** The directories above become the delta's own, so that they stay when the codebase loses them. */
  #copyUp(path: string): void {
    for (const above of ancestorsOf(path)) {
      if (this.#delta.get(above)?.entry !== undefined) continue;
      this.#set(above, { entry: this.get(above) ?? ROOT, opaque: false, baseVersion: this.#lower().version });
    }
  }

  #set(path: string, value: DeltaEntry): void {
    this.#bytes += bytesOf(value) - bytesOf(this.#delta.get(path));
    this.#delta.set(path, value);
  }

  #drop(path: string): void {
    this.#bytes -= bytesOf(this.#delta.get(path));
    this.#delta.delete(path);
  }

  #dropBelow(path: string): void {
    for (const below of this.#delta.below(path)) this.#drop(below);
  }
}

function bytesOf(own: DeltaEntry | undefined): number {
  return own?.entry === undefined ? 0 : sizeOf(own.entry);
}
