import { joined, nameOf, parentOf } from "./paths.ts";

/**
 * Values by path, with the names in each directory at hand. Whoever sets a path has set those above it; "/" has no
 * value.
 */
export class PathTree<Value> {
  readonly #values = new Map<string, Value>();
  readonly #names = new Map<string, Set<string>>();

  get size(): number {
    return this.#values.size;
  }

  get(path: string): Value | undefined {
    return this.#values.get(path);
  }

  set(path: string, value: Value): void {
    this.#values.set(path, value);
    const directory = parentOf(path);
    const names = this.#names.get(directory) ?? new Set();
    names.add(nameOf(path));
    this.#names.set(directory, names);
  }

  delete(path: string): void {
    if (!this.#values.delete(path)) return;
    const directory = parentOf(path);
    const names = this.#names.get(directory);
    names?.delete(nameOf(path));
    if (names?.size === 0) this.#names.delete(directory);
  }

  /** In order. */
  names(directory: string): string[] {
    return [...(this.#names.get(directory) ?? [])].sort();
  }

  /** Every path strictly below, a directory before what is in it. */
  below(directory: string): string[] {
    return this.names(directory).flatMap((name) => {
      const path = joined(directory, name);
      return [path, ...this.below(path)];
    });
  }

  *[Symbol.iterator](): Iterator<[path: string, value: Value]> {
    for (const path of this.below("/")) yield [path, this.#values.get(path)!];
  }

  copy(): PathTree<Value> {
    const copy = new PathTree<Value>();
    for (const [path, value] of this.#values) copy.set(path, value);
    return copy;
  }
}
