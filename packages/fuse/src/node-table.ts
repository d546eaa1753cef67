import { ROOT_ID } from "./abi.ts";

/**
 * The nodes the kernel knows, by id, each with the number of lookups it was granted. An id is never used twice: a late
 * request for a node that is gone finds nothing instead of another file. The root has its id from the start and keeps it.
 */
export class NodeTable<T> {
  readonly #nodes = new Map<number, { readonly value: T; lookups: number }>();
  #nextId = ROOT_ID + 1;

  constructor(root: T) {
    this.#nodes.set(ROOT_ID, { value: root, lookups: 0 });
  }

  /** How many nodes there are, the root included. */
  get size(): number {
    return this.#nodes.size;
  }

  /** Gives the value an id, without a lookup yet: `grant` it when the reply that carries the id is filled in. */
  allocate(value: T): number {
    const id = this.#nextId++;
    this.#nodes.set(id, { value, lookups: 0 });
    return id;
  }

  get(id: number): T | undefined {
    return this.#nodes.get(id)?.value;
  }

  /** Counts one lookup: a reply hands the id out. */
  grant(id: number): void {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} was granted, but is not in the table`);
    node.lookups++;
  }

  /** Lookups the kernel has not taken back; 0 for a node that is not here. */
  lookups(id: number): number {
    return this.#nodes.get(id)?.lookups ?? 0;
  }

  /** Takes lookups back. Returns the value when that was the last one and the node is gone. */
  forget(id: number, count: number): T | undefined {
    const node = this.#nodes.get(id);
    if (node === undefined) return undefined;
    node.lookups = Math.max(0, node.lookups - count);
    if (node.lookups > 0 || id === ROOT_ID) return undefined;
    this.#nodes.delete(id);
    return node.value;
  }

  /** All values, the root's first: what is still held when the mount is gone, since no FORGETs come then. */
  *values(): Generator<T> {
    for (const node of this.#nodes.values()) yield node.value;
  }
}
