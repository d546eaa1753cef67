import { invalid } from "../faults.ts";
import { directoryEntry, type Entry, isSame } from "../files/entry.ts";
import type { PathTree } from "../files/path-tree.ts";
import { ancestorsOf, byPath } from "../files/paths.ts";
import { shown, wrongKind } from "./codebase-paths.ts";

/** What a change wants at a path; undefined: nothing. */
export interface Wanted {
  readonly path: string;
  readonly entry: Entry | undefined;
}

export interface PathChange {
  readonly path: string;
  readonly before: Entry | undefined;
  readonly after: Entry | undefined;
}

/** A change of a tree in the making: made in place, and taken back when it cannot be finished. */
export class Draft {
  readonly #tree: PathTree<Entry>;
  readonly #before = new Map<string, Entry | undefined>();

  constructor(tree: PathTree<Entry>) {
    this.#tree = tree;
  }

  /**
   * Makes everything as it is wanted, with the directories on the way. What stands in the way goes when it is a
   * directory, and is refused when it is not; with `replaceAll` nothing stays that was not named.
   */
  fulfil(wanted: readonly Wanted[], options: { readonly replaceAll: boolean }): void {
    const named = new Map(wanted.map((one) => [one.path, one.entry]));
    for (const { path, entry } of [...wanted].sort(byPath)) {
      if (entry === undefined) this.remove(path);
    }
    if (options.replaceAll) {
      const needed = new Set(wanted.flatMap(({ path, entry }) => (entry === undefined ? [] : ancestorsOf(path))));
      for (const path of this.#tree.below("/").reverse()) {
        const stays = named.has(path) || (needed.has(path) && this.#tree.get(path)?.kind === "directory");
        if (!stays) this.set(path, undefined);
      }
    }
    for (const { path, entry } of [...wanted].sort(byPath)) {
      if (entry === undefined) continue;
      this.#makeWay(path, named);
      this.put(path, entry);
    }
  }

  put(path: string, entry: Entry): void {
    const before = this.#tree.get(path);
    if (before !== undefined && isSame(before, entry)) return;
    if (before?.kind === "directory" && entry.kind !== "directory") this.remove(path);
    this.set(path, entry);
  }

  /** With all below it. */
  remove(path: string): void {
    for (const below of this.#tree.below(path).reverse()) this.set(below, undefined);
    this.set(path, undefined);
  }

  set(path: string, entry: Entry | undefined): void {
    if (!this.#before.has(path)) this.#before.set(path, this.#tree.get(path));
    if (entry === undefined) this.#tree.delete(path);
    else this.#tree.set(path, entry);
  }

  /** In path order; nothing that ended as it was. */
  changes(): PathChange[] {
    const changes = [...this.#before].map(([path, before]) => ({ path, before, after: this.#tree.get(path) }));
    return changes.filter(({ before, after }) => !isEqual(before, after)).sort(byPath);
  }

  takeBack(): void {
    for (const [path, before] of this.#before) {
      if (before === undefined) this.#tree.delete(path);
      else this.#tree.set(path, before);
    }
    this.#before.clear();
  }

  #makeWay(path: string, named: ReadonlyMap<string, Entry | undefined>): void {
    for (const directory of ancestorsOf(path)) {
      const asked = named.get(directory);
      if (named.has(directory) && asked?.kind !== "directory") {
        const what = asked === undefined ? "nothing" : `a ${asked.kind}`;
        throw invalid(`${shown(path)} cannot be below ${shown(directory)}, which is to be ${what}`);
      }
      const there = this.#tree.get(directory);
      if (there === undefined) this.set(directory, directoryEntry());
      else if (there.kind !== "directory") {
        throw wrongKind(path, `${shown(path)} cannot be below ${shown(directory)}, which is a ${there.kind}`);
      }
    }
  }
}

function isEqual(one: Entry | undefined, other: Entry | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isSame(one, other);
}
