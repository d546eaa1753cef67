import type { Trail } from "./affix-index.ts";
import type { PatternNode } from "./pattern-tree.ts";
import type { Contender } from "./resolve.ts";

/** The contenders, by order, that have to do with one path. */
export interface Matches {
  /** Those whose pattern matches the path itself. */
  readonly own: readonly number[];
  /** Those and the `none` rules that match a directory above: all that compete for the path. */
  readonly counting: readonly number[];
}

interface Place extends Matches {
  readonly name: string;
  readonly nodes: readonly PatternNode[];
}

/**
 * Finds *every* contender that matches a path, where the automaton keeps only what can still win. Remembers the way to
 * the last path, so that a tree listed in order is walked once.
 */
export class TreeWalk {
  readonly #contenders: readonly Contender[];
  readonly #way: Place[];

  constructor(tree: PatternNode, contenders: readonly Contender[]) {
    this.#contenders = contenders;
    this.#way = [this.#arrive("", [tree], [], [])];
  }

  get root(): Matches {
    return this.#way[0]!;
  }

  /** Walks to a path; gives the places on the way that the last walk did not pass, by their depth below the root. */
  to(names: readonly string[]): (Matches & { readonly depth: number })[] {
    let known = 0;
    while (known < names.length && this.#way[known + 1]?.name === names[known]) known++;
    this.#way.length = known + 1;
    return names.slice(known).map((name, i) => {
      const place = this.#down(this.#way.at(-1)!, name);
      this.#way.push(place);
      return { depth: known + i + 1, own: place.own, counting: place.counting };
    });
  }

  #down({ nodes, counting }: Place, name: string): Place {
    const entered = new Collector();
    for (const node of nodes) {
      if (node.any !== undefined) entered.to(node.any);
      node.follow(name, entered);
    }
    const hiding = counting.filter((order) => this.#contenders[order]!.rule.level === 0);
    const staying = nodes.filter((node) => node.isGlobstar);
    return this.#arrive(name, entered.nodes, staying, hiding);
  }

  #arrive(
    name: string,
    entered: readonly PatternNode[],
    staying: readonly PatternNode[],
    hiding: readonly number[],
  ): Place {
    const nodes = new Set(staying);
    for (const node of entered) {
      nodes.add(node);
      if (node.globstar !== undefined) nodes.add(node.globstar);
    }
    const own = [...nodes].flatMap((node) => node.endings);
    return { name, nodes: [...nodes], own, counting: [...new Set([...own, ...hiding])] };
  }
}

class Collector implements Trail<PatternNode, Collector> {
  readonly nodes: PatternNode[] = [];

  to(node: PatternNode): this {
    this.nodes.push(node);
    return this;
  }
}
