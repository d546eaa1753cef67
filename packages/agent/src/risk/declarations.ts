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
