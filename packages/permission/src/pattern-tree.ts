import { AffixIndex, type Trail } from "./affix-index.ts";
import type { Contender } from "./resolve.ts";
import { type Segment, segmentKey, type WildSegment, wildMatches } from "./segment.ts";

/** The order of something that is not there: weaker than every contender. */
const NO_ORDER = Number.MAX_SAFE_INTEGER;

/**
 * All patterns of a rule set, merged where they begin alike. An edge is one segment of a pattern; a node is the place
 * where a pattern ends or goes on. Ten thousand rules over `any depth/name` share the edge `**` and one hash table of names.
 */
export class PatternNode {
  /** Unique within the tree. */
  readonly id: number;
  /** Whether the edge to this node is `**`: once here, any name leads back here. */
  readonly isGlobstar: boolean;
  /** Orders of the contenders that end here, strongest first. */
  readonly endings: number[] = [];
  /** The strongest ending, and the strongest that says `none`. */
  strongestEnding = NO_ORDER;
  strongestNoneEnding = NO_ORDER;
  /** The strongest contender at each level that ends further down, and not by way of `globstar`. */
  readonly below: [number, number, number, number] = [NO_ORDER, NO_ORDER, NO_ORDER, NO_ORDER];
  /** The strongest contender that ends here or anywhere further down. */
  strongest = NO_ORDER;
  any: PatternNode | undefined;
  globstar: PatternNode | undefined;

  #literals: Map<string, PatternNode> | undefined;
  #prefixes: AffixIndex<PatternNode> | undefined;
  #suffixes: AffixIndex<PatternNode> | undefined;
  /** Segments that neither start nor end with literal text: these alone are tried one by one. */
  #odd: { readonly wild: WildSegment; readonly node: PatternNode }[] | undefined;
  /** Only for building: the nodes behind wildcard edges. */
  #wild: Map<string, PatternNode> | undefined;

  constructor(id: number, isGlobstar: boolean) {
    this.id = id;
    this.isGlobstar = isGlobstar;
  }

  /**
   * Takes the trail on to every node that a name leads to, but for those that any name leads to: `any`, and this node
   * itself when it is a globstar.
   */
  follow<V extends Trail<PatternNode, V>>(name: string, trail: V): V {
    let result = trail;
    const literal = this.#literals?.get(name);
    if (literal !== undefined) result = result.to(literal);
    if (this.#prefixes !== undefined) result = this.#prefixes.follow(name, result);
    if (this.#suffixes !== undefined) result = this.#suffixes.follow(name, result);
    if (this.#odd !== undefined) {
      for (const { wild, node } of this.#odd) if (wildMatches(wild, name)) result = result.to(node);
    }
    return result;
  }

  /** The node behind a segment, made when there is none. */
  grow(segment: Segment, id: number): PatternNode {
    switch (segment.kind) {
      case "globstar":
        this.globstar ??= new PatternNode(id, true);
        return this.globstar;
      case "any":
        this.any ??= new PatternNode(id, false);
        return this.any;
      case "literal":
        this.#literals ??= new Map();
        return getOrMake(this.#literals, segment.text, () => new PatternNode(id, false));
      case "wild":
        this.#wild ??= new Map();
        return getOrMake(this.#wild, segmentKey(segment), () => this.#index(segment.wild, id));
    }
  }

  #index(wild: WildSegment, id: number): PatternNode {
    const node = new PatternNode(id, false);
    if (wild.prefix === "" && wild.suffix === "") {
      this.#odd ??= [];
      this.#odd.push({ wild, node });
    } else if (wild.prefix.length > wild.suffix.length) {
      this.#prefixes ??= new AffixIndex("prefix");
      this.#prefixes.insert(wild, node);
    } else {
      this.#suffixes ??= new AffixIndex("suffix");
      this.#suffixes.insert(wild, node);
    }
    return node;
  }
}

/** The tree of all contenders, which are given strongest first. */
export function growTree(contenders: readonly Contender[]): PatternNode {
  const root = new PatternNode(0, false);
  let nextId = 1;
  for (const [order, { rule, alternative }] of contenders.entries()) {
    let node = root;
    node.strongest = Math.min(node.strongest, order);
    for (const segment of alternative.segments) {
      const next = node.grow(segment, nextId++);
      next.strongest = Math.min(next.strongest, order);
      if (segment.kind !== "globstar") node.below[rule.level] = Math.min(node.below[rule.level], order);
      node = next;
    }
    node.endings.push(order);
    node.strongestEnding = Math.min(node.strongestEnding, order);
    if (rule.level === 0) node.strongestNoneEnding = Math.min(node.strongestNoneEnding, order);
  }
  return root;
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
