import { type Entry, entryOf, isEqual } from "./codebase.ts";
import { ancestorsOf, joined, PathTree } from "./path-tree.ts";

/** What a sandbox has at a path instead of its codebase. */
interface OwnEntry {
  /** Undefined: nothing, whatever the codebase has there. */
  readonly entry: Entry | undefined;
  /** The codebase's version when the sandbox began to have its own here: what came later is somebody else's newer work. */
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

const ROOT = entryOf("directory", "", { modifiedAtMs: 0 });

/** Copy-on-write: what the sandbox changed, over the codebase, which is never written. Knows nothing of rules. */
export class Overlay {
  readonly #lower: () => LowerLayer;
  readonly #own = new PathTree<OwnEntry>();

  constructor(lower: () => LowerLayer) {
    this.#lower = lower;
  }

  get(path: string): Entry | undefined {
    if (path === "/") return ROOT;
    const own = this.#own.get(path);
    return own === undefined ? this.#lowerEntry(path) : own.entry;
  }

  names(directory: string): string[] {
    const names = new Set([...this.#own.names(directory), ...this.#lower().tree.names(directory)]);
    return [...names].sort().filter((name) => this.get(joined(directory, name)) !== undefined);
  }

  isOfCodebase(path: string): boolean {
    return this.#lowerEntry(path) !== undefined;
  }

  /** The directory above must be there. */
  put(path: string, entry: Entry): void {
    const { tree, version } = this.#lower();
    const isNewDirectory = entry.kind === "directory" && this.get(path)?.kind !== "directory";
    this.#copyUp(path);
    if (entry.kind !== "directory") this.#dropBelow(path);
    // A directory that is made where the codebase has one shows nothing of that.
    else if (isNewDirectory) for (const name of tree.names(path)) this.#set(joined(path, name), undefined, version);
    this.#set(path, entry, version);
  }

  /** With all below it. */
  remove(path: string): void {
    this.#dropBelow(path);
    this.#copyUp(path);
    this.#set(path, undefined, this.#lower().version);
    this.tidy();
  }

  /** The codebase shows again, here and below. */
  forget(path: string): void {
    this.#own.remove(path);
  }

  /** Lets go of what the codebase has too, so that it never overwrites newer work. */
  tidy(): void {
    const { tree } = this.#lower();
    for (const path of this.#own.below("/").reverse()) {
      const isNeeded = this.#own.names(path).length > 0 || !isEqual(this.#own.get(path)!.entry, tree.get(path));
      if (!isNeeded) this.#own.delete(path);
    }
  }

  /** In path order. A deleted directory is one change; what is equal to the codebase is none. */
  changes(): OverlayChange[] {
    const { tree } = this.#lower();
    return [...this.#own].flatMap(([path, { entry: now, baseVersion }]) => {
      const old = tree.get(path);
      return isEqual(old, now) ? [] : [{ path, old, now, baseVersion }];
    });
  }

  #lowerEntry(path: string): Entry | undefined {
    const isShown = ancestorsOf(path).every((above) => {
      const own = this.#own.get(above);
      return own === undefined || own.entry?.kind === "directory";
    });
    return isShown ? this.#lower().tree.get(path) : undefined;
  }

  /** The directories above become the sandbox's own, so that they stay when the codebase loses them. */
  #copyUp(path: string): void {
    for (const above of ancestorsOf(path)) {
      if (this.#own.get(above) === undefined) this.#set(above, this.get(above) ?? ROOT, this.#lower().version);
    }
  }

  #set(path: string, entry: Entry | undefined, version: number): void {
    this.#own.set(path, { entry, baseVersion: this.#own.get(path)?.baseVersion ?? version });
  }

  #dropBelow(path: string): void {
    for (const below of this.#own.below(path)) this.#own.delete(below);
  }
}
