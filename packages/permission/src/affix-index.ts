import { type WildSegment, wildMatches } from "./segment.ts";

/** What collects the values met on the way; without a callback, so that a walk allocates nothing. */
export interface Trail<T, V extends Trail<T, V>> {
  to(value: T): V;
}

/**
 * Finds, among any number of segments that start (or end) with literal text, the few that can match a name, by one walk
 * over the name. A radix tree: each node stands for a text, its label is what it adds to its parent's.
 */
export class AffixIndex<T> {
  readonly #fromEnd: boolean;
  readonly #root: RadixNode<T> = { label: "", children: undefined, entries: [] };

  constructor(end: "prefix" | "suffix") {
    this.#fromEnd = end === "suffix";
  }

  /** Adds a segment under its prefix or suffix, which must not be empty. */
  insert(wild: WildSegment, value: T): void {
    const affix = this.#fromEnd ? reversed(wild.suffix) : wild.prefix;
    const oneSided = wild.plain && (this.#fromEnd ? wild.prefix : wild.suffix) === "";
    placeFor(this.#root, affix).entries.push({ value, remainder: oneSided ? undefined : wild });
  }

  /** Takes the trail on to every value whose segment matches the name, shortest affix first. */
  follow<V extends Trail<T, V>>(name: string, trail: V): V {
    let result = trail;
    let node: RadixNode<T> | undefined = this.#root;
    const { length } = name;
    let depth = 0;
    while (depth < length) {
      node = node.children?.get(name.charCodeAt(this.#fromEnd ? length - 1 - depth : depth));
      if (node === undefined) return result;
      const { label } = node;
      if (depth + label.length > length) return result;
      for (let i = 1; i < label.length; i++) {
        const at = depth + i;
        if (label.charCodeAt(i) !== name.charCodeAt(this.#fromEnd ? length - 1 - at : at)) return result;
      }
      depth += label.length;
      for (const { value, remainder } of node.entries) {
        if (remainder === undefined || wildMatches(remainder, name)) result = result.to(value);
      }
    }
    return result;
  }
}

interface RadixNode<T> {
  /** Never empty but in the root; its first unit is the key in the parent's children. */
  label: string;
  children: Map<number, RadixNode<T>> | undefined;
  entries: { readonly value: T; readonly remainder: WildSegment | undefined }[];
}

/** The node that stands for exactly this text, made when there is none. */
function placeFor<T>(root: RadixNode<T>, text: string): RadixNode<T> {
  let node = root;
  let rest = text;
  while (rest !== "") {
    node.children ??= new Map();
    const child = node.children.get(rest.charCodeAt(0));
    if (child === undefined) {
      const leaf: RadixNode<T> = { label: rest, children: undefined, entries: [] };
      node.children.set(rest.charCodeAt(0), leaf);
      return leaf;
    }
    const common = commonLength(child.label, rest);
    if (common < child.label.length) splitNode(child, common);
    node = child;
    rest = rest.slice(common);
  }
  return node;
}

/** Shortens a node to the first `length` units of its label; the remainder becomes its only child. */
function splitNode<T>(node: RadixNode<T>, length: number): void {
  const lower: RadixNode<T> = { label: node.label.slice(length), children: node.children, entries: node.entries };
  node.label = node.label.slice(0, length);
  node.children = new Map([[lower.label.charCodeAt(0), lower]]);
  node.entries = [];
}

function commonLength(a: string, b: string): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

/** Turns a text round by UTF-16 units: the tree compares units too. */
function reversed(text: string): string {
  let result = "";
  for (let i = text.length - 1; i >= 0; i--) result += text[i];
  return result;
}
