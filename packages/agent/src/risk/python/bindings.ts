import { declaredNames, GIVEN } from "../declarations.ts";
import { Bindings } from "../program/expression.ts";
import type { SyntaxNode } from "../syntax/node.ts";

/** An identifier as Python compares it: other forms of the same letters are the same name. */
export function nameOf(node: SyntaxNode): string {
  return node.text.normalize("NFKC");
}

/** What an import statement takes, and under which name. */
export function importsOf(
  node: SyntaxNode,
): readonly { readonly qualified: string; readonly alias: string | undefined }[] {
  const isFrom = node.type !== "import_statement";
  return node.parts("name").map((part) => {
    const alias = part.type === "aliased_import" ? nameOf(part.part("alias")!) : undefined;
    const name = dottedName(part.part("name") ?? part);
    return { qualified: isFrom ? `${moduleOf(node)}.${name}` : name, alias: alias ?? (isFrom ? name : undefined) };
  });
}

/** The module of a `from` import; "." for one beside the code. */
export function moduleOf(node: SyntaxNode): string {
  if (node.type === "future_import_statement") return "__future__";
  const module = node.part("module_name");
  if (module === undefined) return "?";
  return module.type === "dotted_name" ? dottedName(module) : `.${module.text.replace(/^\.+/, "")}`;
}

function dottedName(node: SyntaxNode): string {
  return node.children
    .filter((child) => child.type === "identifier")
    .map(nameOf)
    .join(".");
}

export function pythonBindings(root: SyntaxNode): Bindings {
  const bindings = new Bindings();
  for (const node of root.all()) {
    switch (node.type) {
      case "import_statement":
      case "import_from_statement":
      case "future_import_statement":
        if (node.children.some((child) => child.type === "wildcard_import")) bindings.stars.push(moduleOf(node));
        for (const { qualified, alias } of importsOf(node)) {
          // `import a.b` binds a.
          const first = qualified.split(".")[0]!;
          bindings.bind(alias ?? first, { kind: "import", qualified: alias === undefined ? first : qualified });
        }
        break;
      case "assignment":
        bindTarget(node.part("left"), node.part("right"), bindings);
        break;
      case "augmented_assignment": {
        const [left, right] = [node.part("left"), node.part("right")];
        if (left?.type === "identifier" && right !== undefined)
          bindings.bind(nameOf(left), { kind: "added", value: right });
        break;
      }
      case "default_parameter":
      case "typed_default_parameter":
      case "named_expression":
        bindTarget(node.part("name"), node.part("value"), bindings);
        break;
      case "with_item": {
        const as = node.part("value");
        if (as?.type === "as_pattern") bindTarget(as.part("alias"), as.named[0], bindings);
        break;
      }
    }
  }
  for (const name of declaredNames(root, nameOf, GIVEN)) bindings.bind(name, { kind: "given" });
  return bindings;
}

/** Binds what stands on the left of "=" to what stands on the right, part by part where both are written out. */
function bindTarget(left: SyntaxNode | undefined, right: SyntaxNode | undefined, bindings: Bindings): void {
  const waiting: [SyntaxNode | undefined, SyntaxNode | undefined][] = [[left, right]];
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const [target, value] = pair;
    if (target?.type === "identifier") {
      if (value !== undefined) bindings.bind(nameOf(target), { kind: "value", value: lastOf(value) });
    } else if (target !== undefined && TARGETS.test(target.type)) {
      const parts = target.named.filter((part) => part.type !== "type");
      const values = value !== undefined && VALUES.test(value.type) ? value.named : [];
      for (const [index, part] of parts.entries()) {
        waiting.push([part, values.length === parts.length ? values[index] : undefined]);
      }
    }
  }
}

/** `x = y = value`: the value. */
function lastOf(value: SyntaxNode): SyntaxNode {
  let last = value;
  while (last.type === "assignment" && last.part("right") !== undefined) last = last.part("right")!;
  return last;
}

const TARGETS = /^(?:\w+_pattern|pattern_list|typed_parameter|as_pattern_target|parenthesized_expression|tuple|list)$/;
const VALUES = /^(?:expression_list|tuple|list)$/;
