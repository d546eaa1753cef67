import { declaredNames, GIVEN } from "../declarations.ts";
import { each } from "../findings.ts";
import { Bindings } from "../program/expression.ts";
import type { SyntaxNode } from "../syntax/node.ts";

/** An identifier, with its escapes undone. */
export function nameOf(node: SyntaxNode): string {
  return node.text.replace(/\\u(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{4}))/g, (_whole, braced, plain) => {
    const code = Number.parseInt(braced ?? plain, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : "";
  });
}

/** "node:fs" and "fs" are the same module. */
export function moduleName(specifier: string): string {
  return `${specifier.replace(/^node:/, "")}:`;
}

/** `(x)`, `x!` and `(x as T)` are x. */
export const WRAPPING = /^(?:parenthesized|await|non_null|as|satisfies)_expression$/;

/** The nodes that give a value to a pattern, with the parts that these are. */
const ASSIGNING: Readonly<Record<string, readonly [target: string, value: string]>> = {
  variable_declarator: ["name", "value"],
  ...each("assignment_expression assignment_pattern object_assignment_pattern", ["left", "right"] as const),
  ...each("required_parameter optional_parameter", ["pattern", "value"] as const),
};

export function javaScriptBindings(root: SyntaxNode): Bindings {
  const bindings = new Bindings();
  for (const node of root.all()) {
    const parts = Object.hasOwn(ASSIGNING, node.type) ? ASSIGNING[node.type]! : undefined;
    if (parts !== undefined) bindPattern(node.part(parts[0]), node.part(parts[1]), bindings);
    if (node.type === "import_statement") bindImports(node, bindings);
    if (node.type === "augmented_assignment_expression" && node.part("operator")?.text === "+=") {
      bindings.bind(nameOf(node.part("left")!), { kind: "added", value: node.part("right")! });
    }
  }
  for (const name of declaredNames(root, nameOf, GIVEN)) bindings.bind(name, { kind: "given" });
  return bindings;
}

function bindImports(node: SyntaxNode, bindings: Bindings): void {
  const source = node.part("source");
  const clause = node.named.find((child) => child.type === "import_clause");
  if (source === undefined || clause === undefined) return;
  const module = moduleName(source.text.slice(1, -1));
  for (const child of clause.named) {
    const whole = child.type === "namespace_import" ? child.named[0] : child.type === "identifier" ? child : undefined;
    if (whole !== undefined) bindings.bind(nameOf(whole), { kind: "import", qualified: module });
    for (const specifier of child.type === "named_imports" ? child.named : []) {
      const name = specifier.part("name");
      if (name === undefined) continue;
      const imported = name.type === "string" ? name.text.slice(1, -1) : nameOf(name);
      const qualified = imported === "default" ? module : `${module}.${imported}`;
      bindings.bind(nameOf(specifier.part("alias") ?? name), { kind: "import", qualified });
    }
  }
}

interface Waiting {
  readonly target: SyntaxNode | undefined;
  readonly value: SyntaxNode | undefined;
  readonly member?: string | undefined;
}

/** Binds each name of a pattern, with the member it takes where one can see it; only one level is followed. */
function bindPattern(pattern: SyntaxNode | undefined, given: SyntaxNode | undefined, bindings: Bindings): void {
  const waiting: Waiting[] = [{ target: pattern, value: given }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { member, value } = next;
    let { target } = next;
    while (target !== undefined && WRAPPING.test(target.type)) target = target.named[0];
    switch (target?.type) {
      case "identifier":
      case "shorthand_property_identifier_pattern":
        if (value !== undefined) bindings.bind(nameOf(target), { kind: "value", value, member });
        break;
      case "assignment_pattern":
      case "object_assignment_pattern": {
        const left = target.part("left");
        const isShorthand = left?.type === "shorthand_property_identifier_pattern";
        waiting.push({ target: left, value, member: isShorthand ? nameOf(left) : member });
        break;
      }
      case "object_pattern":
        for (const child of target.named) {
          const outer = member === undefined ? value : undefined;
          const isPair = child.type === "pair_pattern";
          const key = isPair ? child.part("key") : child;
          const name = key?.type === "string" ? key.text.slice(1, -1) : key === undefined ? undefined : nameOf(key);
          const isPlain = /^(?:string|(?:shorthand_)?property_identifier(?:_pattern)?)$/.test(key?.type ?? "");
          const taken = isPlain ? { value: outer, member: name } : { value: isPair ? undefined : outer };
          waiting.push({ target: isPair ? child.part("value") : child, ...taken });
        }
        break;
    }
  }
}
