import type { Parser, Tree } from "web-tree-sitter";
import { SyntaxNode } from "./node.ts";

/** How much work one text may cause. What is beyond is not looked at, and so never SAFE. */
export const PARSE_LIMITS = {
  /** Characters. Far beyond what a person or a model writes at once. */
  codeLength: 128 * 1024,
  /** Nodes of the tree. */
  nodes: 150_000,
  /** How deep nodes may be in nodes. What is done for each node may go up to the root. */
  depth: 600,
  /** Steps of the parser, each some 100 operations: a bound that does not depend on how busy the machine is. */
  steps: 8_000,
  /** In case the steps are slow ones. */
  milliseconds: 2_000,
} as const;

/** The tree of a text as plain objects, or undefined when the limits were reached. */
export function parse(parser: Parser, source: string): SyntaxNode | undefined {
  const tree = parseWithinLimits(parser, source);
  if (tree === null) return undefined;
  try {
    return copyTree(tree, source);
  } finally {
    tree.delete();
  }
}

function parseWithinLimits(parser: Parser, source: string): Tree | null {
  const endsAtMs = performance.now() + PARSE_LIMITS.milliseconds;
  let steps = 0;
  const isOver = () => ++steps > PARSE_LIMITS.steps || performance.now() > endsAtMs;
  try {
    return parser.parse(source, null, { progressCallback: isOver });
  } finally {
    // An interrupted parse would go on with the next text.
    parser.reset();
  }
}

/** Copies node by node with a cursor: depth costs no stack, and the memory of the parser is freed at once. */
function copyTree(tree: Tree, source: string): SyntaxNode | undefined {
  const cursor = tree.walk();
  try {
    const types = tree.language.types;
    const read = (parent: SyntaxNode | undefined): SyntaxNode =>
      new SyntaxNode({
        source,
        type: types[cursor.nodeTypeId] ?? cursor.nodeType,
        isNamed: cursor.nodeIsNamed,
        isMissing: cursor.nodeIsMissing,
        field: cursor.currentFieldName ?? undefined,
        start: cursor.startIndex,
        end: cursor.endIndex,
        line: cursor.startPosition.row + 1,
        parent,
      });
    const root = read(undefined);
    let node = root;
    let count = 1;
    let depth = 0;
    for (;;) {
      if (cursor.gotoFirstChild()) {
        node = read(node);
        if (++depth > PARSE_LIMITS.depth) return undefined;
      } else {
        while (!cursor.gotoNextSibling()) {
          if (!cursor.gotoParent() || node.parent === undefined) return root;
          node = node.parent;
          depth--;
        }
        // The cursor stands on a sibling: its parent is the parent of where we were.
        if (node.parent === undefined) return root;
        node = read(node.parent);
      }
      if (++count > PARSE_LIMITS.nodes) return undefined;
    }
  } finally {
    cursor.delete();
  }
}
