import type { SyntaxNode } from "./syntax/node.ts";

/** What declares names for values that come from elsewhere: parameters, loops, caught exceptions. */
export const GIVEN =
  /^(?:(?:lambda_|formal_)?parameters|\w*_parameter|for_statement|for_in_(?:clause|statement)|catch_clause|arrow_function|as_pattern_target)$/;

/** The names that nodes of some types declare, also as parts of a pattern. */
export function declaredNames(root: SyntaxNode, nameOf: (node: SyntaxNode) => string, types: RegExp): Set<string> {
  const names = new Set<string>();
  for (const node of root.all()) {
    if (node.type !== "identifier") continue;
    let inner = node;
    while (/^(?:pattern_list|\w+_pattern|tuple)$/.test(inner.parent?.type ?? "")) inner = inner.parent!;
    const isTarget = inner.field === undefined || /^(?:name|left|parameter|pattern)$/.test(inner.field);
    if (isTarget && types.test(inner.parent?.type ?? "")) names.add(nameOf(node));
  }
  return names;
}

/** How many nodes are looked at when it is asked what a value is made of; one of more is taken for the worst. */
const MAX_INGREDIENTS = 4000;
const MAX_DEPTH = 40;

/** What values are made of, here or in the statements that made their parts. */
export class Origins {
  readonly #nameOf: (node: SyntaxNode) => string | undefined;
  readonly #valuesOf: (name: string) => readonly SyntaxNode[];
  readonly #known = new Map<string, boolean>();
  #depth = 0;

  constructor(nameOf: (node: SyntaxNode) => string | undefined, valuesOf: (name: string) => readonly SyntaxNode[]) {
    this.#nameOf = nameOf;
    this.#valuesOf = valuesOf;
  }

  /** Whether something for which `test` holds is part of it; `what` names the test. */
  has(node: SyntaxNode, what: string, test: (inner: SyntaxNode) => boolean): boolean {
    let ingredients = 0;
    for (const inner of node.all()) {
      if (++ingredients > MAX_INGREDIENTS || test(inner)) return true;
      const name = this.#nameOf(inner);
      if (name === undefined) continue;
      const key = `${what} ${name}`;
      const known = this.#known.get(key);
      if (known === true) return true;
      if (known !== undefined || this.#depth > MAX_DEPTH) continue;
      // False while it is worked out, so that circles end.
      this.#known.set(key, false);
      this.#depth += 1;
      const isMade = this.#valuesOf(name).some((value) => this.has(value, what, test));
      this.#depth -= 1;
      this.#known.set(key, isMade);
      if (isMade) return true;
    }
    return false;
  }
}
