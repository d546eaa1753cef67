import type { Trail } from "./affix-index.ts";
import type { PatternNode } from "./pattern-tree.ts";
import type { Contender } from "./resolve.ts";
import type { LevelValue } from "./rule.ts";

/** What the rules say about one path and what lies below it. Immutable, interned: equal situations share one object. */
export interface Scope {
  /** The level of this path itself, by the rules alone; the root of the workspace exists whatever its level. */
  readonly level: LevelValue;
  /** Index of the deciding rule, -1 when nothing matched. */
  readonly rule: number;
  /** Some path strictly below could have a level above none. */
  readonly mayShowBelow: boolean;
  /** Some path strictly below could have level none. */
  readonly mayHideBelow: boolean;
  /** Every path at or below has certainly exactly this level. */
  readonly uniform: boolean;
  /** The scope of an entry in this directory; `name` is one segment. */
  child(name: string): Scope;
}

/**
 * States and transitions kept before all are dropped and made anew; a state of many nodes counts for several. An agent
 * chooses the names it asks for; without a bound, names that hit ever new combinations of rules would fill the memory
 * of the server.
 */
const MEMORY_LIMIT = 8192;

/**
 * Walks the pattern tree with a set of nodes at once, and remembers every set it has seen as a scope.
 *
 * Orders are positions in the list of contenders: lower wins. A scope is determined by three things:
 *
 * - `decided`: the order of the contender that decides for the path;
 * - `cover`: the strongest contender that counts for *every* path strictly below, be it a pattern that ends in `**` or
 *   a `none` rule that matched here or above;
 * - `live`: the nodes from which a contender stronger than `cover` can still be reached.
 *
 * Whatever is weaker than the cover can never decide below and is forgotten, so most scopes have one or two live nodes.
 */
export class Automaton {
  readonly root: Scope;
  readonly #contenders: readonly Contender[];
  readonly #scopes = new Map<string, LiveScope>();
  /** Scopes that remember transitions, among them such as are no longer in `#scopes` and held by a caller only. */
  #remembering: LiveScope[] = [];
  #size = 0;

  constructor(tree: PatternNode, contenders: readonly Contender[]) {
    this.#contenders = contenders;
    this.root = this.enter([tree], [], contenders.length);
  }

  /**
   * The scope of a path that leads to the nodes in `entered`, below a scope with that cover.
   * `staying` are the globstars of the scope above, which any name leads back to.
   */
  enter(entered: readonly PatternNode[], staying: readonly PatternNode[], coverAbove: number): LiveScope {
    let decided = coverAbove;
    let cover = coverAbove;
    const reached = new Set(staying);
    for (const node of entered) {
      decided = Math.min(decided, node.strongestEnding);
      cover = Math.min(cover, node.strongestNoneEnding);
      reached.add(node);
      if (node.globstar !== undefined) {
        // `**` stands for no segment at all too, so X/** counts for X and for everything below.
        decided = Math.min(decided, node.globstar.strongestEnding);
        cover = Math.min(cover, node.globstar.strongestEnding);
        reached.add(node.globstar);
      }
    }
    for (const node of reached) {
      // X/**/* counts for everything below X and not for X.
      if (node.isGlobstar && node.any !== undefined) cover = Math.min(cover, node.any.strongestEnding);
    }
    const live = [...reached].filter((node) => Math.min(...node.below) < cover).sort((a, b) => a.id - b.id);
    return this.#intern(decided, cover, live);
  }

  /** Called before a state or a transition is kept; `scope` is one that begins to keep transitions. */
  remember(weight: number, scope?: LiveScope): void {
    if (this.#size >= MEMORY_LIMIT) {
      for (const one of this.#remembering) one.forget();
      this.#remembering = [];
      this.#scopes.clear();
      this.#size = 0;
    }
    if (scope !== undefined) this.#remembering.push(scope);
    this.#size += weight;
  }

  levelAt(order: number): LevelValue {
    return this.#contenders[order]?.rule.level ?? 0;
  }

  ruleAt(order: number): number {
    return this.#contenders[order]?.rule.index ?? -1;
  }

  #intern(decided: number, cover: number, live: readonly PatternNode[]): LiveScope {
    const key = `${decided} ${cover} ${live.map((node) => node.id).join(" ")}`;
    const known = this.#scopes.get(key);
    if (known !== undefined) return known;
    this.remember(1 + (live.length >> 4));
    const scope = new LiveScope(this, decided, cover, live);
    this.#scopes.set(key, scope);
    return scope;
  }
}

class LiveScope implements Scope {
  readonly level: LevelValue;
  readonly rule: number;
  readonly mayShowBelow: boolean;
  readonly mayHideBelow: boolean;
  readonly uniform: boolean;

  readonly #automaton: Automaton;
  readonly #cover: number;
  readonly #live: readonly PatternNode[];
  /** Nothing below can differ from this path, not even in the rule that decides. */
  readonly #final: boolean;
  /** The remembered way down for a name that hits no edge. */
  #start: Step | undefined;

  constructor(automaton: Automaton, decided: number, cover: number, live: readonly PatternNode[]) {
    const level = automaton.levelAt(decided);
    const coverLevel = automaton.levelAt(cover);
    // Below, the decision is the cover's or that of a live contender which outranks it.
    const may: boolean[] = [false, false, false, false];
    may[coverLevel] = true;
    for (const node of live) {
      for (let i = 0; i < 4; i++) if (node.below[i as LevelValue] < cover) may[i] = true;
    }
    this.level = level;
    this.rule = automaton.ruleAt(decided);
    this.mayHideBelow = may[0]!;
    this.mayShowBelow = may[1]! || may[2]! || may[3]!;
    this.uniform = may.every((possible, i) => possible === (i === level));
    this.#automaton = automaton;
    this.#cover = cover;
    this.#live = live;
    this.#final = live.length === 0 && decided === cover;
  }

  child(name: string): Scope {
    if (this.#final) return this;
    let step = this.#start ?? this.#begin();
    const live = this.#live;
    for (let i = 0; i < live.length; i++) step = live[i]!.follow(name, step);
    return step.scope ?? this.#arrive(step);
  }

  forget(): void {
    this.#start = undefined;
  }

  #begin(): Step {
    this.#automaton.remember(1, this);
    const start = new Step(this.#automaton, this.#cover, undefined, undefined);
    this.#start = start;
    return start;
  }

  #arrive(step: Step): Scope {
    const entered = this.#live.flatMap((node) => (node.any === undefined ? [] : [node.any]));
    const staying = this.#live.filter((node) => node.isGlobstar);
    for (let at: Step | undefined = step; at?.node !== undefined; at = at.before) entered.push(at.node);
    step.scope = this.#automaton.enter(entered, staying, this.#cover);
    return step.scope;
  }
}

/** A set of edges that a name hits, built edge by edge, so that finding it again takes a lookup per edge and no key. */
class Step implements Trail<PatternNode, Step> {
  readonly before: Step | undefined;
  readonly node: PatternNode | undefined;
  scope: Scope | undefined;
  readonly #automaton: Automaton;
  readonly #cover: number;
  #next: Map<PatternNode, Step> | undefined;

  constructor(automaton: Automaton, cover: number, before: Step | undefined, node: PatternNode | undefined) {
    this.#automaton = automaton;
    this.#cover = cover;
    this.before = before;
    this.node = node;
  }

  to(node: PatternNode): Step {
    if (node.strongest >= this.#cover) return this;
    const known = this.#next?.get(node);
    if (known !== undefined) return known;
    this.#automaton.remember(1);
    const next = new Step(this.#automaton, this.#cover, this, node);
    this.#next ??= new Map();
    this.#next.set(node, next);
    return next;
  }
}
