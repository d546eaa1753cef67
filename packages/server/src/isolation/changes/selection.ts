import { namesOf } from "../filesystem/names.ts";
import { ChangesError } from "./changes-error.ts";

/** The names on the way to a path as people write it, `/src/a.ts` or `src/a.ts`, as byte strings. */
function parsePath(path: string): string[] {
  const names = namesOf(path);
  if (names !== undefined) return names;
  throw new ChangesError(
    "INVALID_PATH",
    path.includes("\0") ? `a path has no NUL character: ${path}` : `a path of the workspace has no ..: ${path}`,
  );
}

/**
 * Where an entry stands to what was selected.
 *
 *   within    it or a directory above it was named, or nothing was named at all
 *   above     something below it was named
 *   outside   neither
 */
export type Standing = "within" | "above" | "outside";

/** A set of paths, each with all that is below it; walked down name by name. */
export class Selection {
  static readonly #everything = new Selection(true);
  static readonly #nothing = new Selection(false);

  /** These and nothing below them. */
  static exactly(paths: readonly string[]): Selection {
    return Selection.#below(paths, true);
  }

  /** No paths given: everything. */
  static of(paths: readonly string[] | undefined): Selection {
    return paths === undefined ? Selection.#everything : Selection.#below(paths, false);
  }

  static #below(paths: readonly string[], exact: boolean): Selection {
    const root = new Selection(false, exact);
    for (const path of paths) {
      let selection = root;
      for (const name of parsePath(path)) {
        const child = selection.#children.get(name) ?? new Selection(false, exact);
        selection.#children.set(name, child);
        selection = child;
      }
      selection.#select(path);
    }
    return root;
  }

  readonly #children = new Map<string, Selection>();
  readonly #exact: boolean;
  #whole: boolean;
  #named: string | undefined;
  #met = false;

  private constructor(whole: boolean, exact = false) {
    this.#whole = whole;
    this.#exact = exact;
  }

  get standing(): Standing {
    if (this.#whole) return "within";
    return this.#children.size > 0 ? "above" : "outside";
  }

  child(name: string): Selection {
    if (this.#whole && !this.#exact) return Selection.#everything;
    return this.#children.get(name) ?? Selection.#nothing;
  }

  /** The names in this directory on the way to what was selected. */
  childNames(): Iterable<string> {
    return this.#children.keys();
  }

  /** Notes that there is a change here; the names lead down from this selection. */
  meet(names: readonly string[]): void {
    const [first, ...rest] = names;
    this.#met = true;
    if (first !== undefined) this.#children.get(first)?.meet(rest);
  }

  /** Paths, as they were given, that no change was met at or below. */
  unmet(): string[] {
    const own = this.#named !== undefined && !this.#met ? [this.#named] : [];
    return [...own, ...[...this.#children.values()].flatMap((child) => child.unmet())];
  }

  /** The paths that were named, each as its names. */
  namedPaths(): { readonly given: string; readonly names: readonly string[] }[] {
    const own = this.#named === undefined ? [] : [{ given: this.#named, names: [] }];
    const below = [...this.#children].flatMap(([name, child]) =>
      child.namedPaths().map(({ given, names }) => ({ given, names: [name, ...names] })),
    );
    return [...own, ...below];
  }

  #select(given: string): void {
    this.#named = given;
    this.#whole = true;
  }
}
