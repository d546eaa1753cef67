import type { SyntaxNode } from "../syntax/node.ts";

/** One way in which a name gets its value. */
export type Binding =
  /** `import os as o`: o is "os". */
  | { readonly kind: "import"; readonly qualified: string }
  | { readonly kind: "value"; readonly value: SyntaxNode }
  /** `x += value`. */
  | { readonly kind: "added"; readonly value: SyntaxNode }
  /** A parameter, a loop variable, a function: nothing is known of its value. */
  | { readonly kind: "own" };

/**
 * Who binds which name, anywhere in the text. Scopes and order are not looked at: a name may mean any of its bindings.
 * That errs on the side of finding more.
 */
export interface Bindings {
  readonly names: ReadonlyMap<string, readonly Binding[]>;
  /** Modules of `from m import *`. */
  readonly stars: readonly string[];
  /** Attributes that the code itself gives to objects. */
  readonly attributes: ReadonlySet<string>;
}

/** An identifier as Python compares it: other forms of the same letters are the same name. */
export function nameOf(node: SyntaxNode): string {
  return node.text.normalize("NFKC");
}

export function dottedName(node: SyntaxNode): string {
  return node.children
    .filter((child) => child.type === "identifier")
    .map(nameOf)
    .join(".");
}

export function collectBindings(root: SyntaxNode): Bindings {
  const names = new Map<string, Binding[]>();
  const stars: string[] = [];
  const attributes = new Set<string>();
  const bind = (name: string, binding: Binding): void => {
    const known = names.get(name);
    if (known === undefined) names.set(name, [binding]);
    // More bindings than this of one name say nothing more.
    else if (known.length < 64) known.push(binding);
  };

  for (const node of root.all()) {
    switch (node.type) {
      case "import_statement":
        for (const part of node.parts("name")) {
          if (part.type === "aliased_import") {
            bind(nameOf(part.part("alias")!), { kind: "import", qualified: dottedName(part.part("name")!) });
          } else {
            const first = dottedName(part).split(".")[0]!;
            bind(first, { kind: "import", qualified: first });
          }
        }
        break;
      case "import_from_statement":
      case "future_import_statement": {
        const module = moduleOf(node);
        if (node.children.some((child) => child.type === "wildcard_import")) stars.push(module);
        for (const part of node.parts("name")) {
          const isAliased = part.type === "aliased_import";
          const name = dottedName(isAliased ? part.part("name")! : part);
          const alias = isAliased ? nameOf(part.part("alias")!) : name;
          bind(alias, { kind: "import", qualified: `${module}.${name}` });
        }
        break;
      }
      case "assignment": {
        const left = node.part("left");
        const right = node.part("right");
        if (left !== undefined) bindTarget(left, right, bind, attributes);
        break;
      }
      case "augmented_assignment": {
        const left = node.part("left")!;
        const right = node.part("right");
        if (left.type !== "identifier") bindTarget(left, undefined, bind, attributes);
        else bind(nameOf(left), right === undefined ? { kind: "own" } : { kind: "added", value: right });
        break;
      }
      case "named_expression":
        bindTarget(node.part("name")!, node.part("value"), bind, attributes);
        break;
      case "default_parameter":
      case "typed_default_parameter":
        bindTarget(node.part("name")!, node.part("value"), bind, attributes);
        // A caller may give another value.
        bindTarget(node.part("name")!, undefined, bind, attributes);
        break;
      case "parameters":
      case "lambda_parameters":
        for (const child of node.named) bindTarget(child, undefined, bind, attributes);
        break;
      case "for_statement":
      case "for_in_clause": {
        const left = node.part("left");
        if (left !== undefined) bindTarget(left, undefined, bind, attributes);
        break;
      }
      case "as_pattern": {
        const target = node.part("alias") ?? node.named.at(-1);
        const value = node.named[0];
        const isContext = node.parent?.type === "with_item";
        if (target !== undefined) bindTarget(target, isContext ? value : undefined, bind, attributes);
        break;
      }
      case "function_definition":
      case "class_definition": {
        const name = node.part("name");
        if (name === undefined) break;
        bind(nameOf(name), { kind: "own" });
        if (node.around("class_definition") !== undefined) attributes.add(nameOf(name));
        break;
      }
      case "case_pattern":
      case "splat_pattern":
      case "keyword_pattern":
        for (const child of node.named) {
          const isCapture = child.type === "dotted_name" && child.named.length === 1;
          if (isCapture) bind(dottedName(child), { kind: "own" });
          else if (child.type === "identifier") bind(nameOf(child), { kind: "own" });
        }
        break;
      case "type_parameter":
        for (const inner of node.all()) if (inner.type === "identifier") bind(nameOf(inner), { kind: "own" });
        break;
    }
  }
  return { names, stars, attributes };
}

/** The module of a `from` import; "." for one beside the code. */
export function moduleOf(node: SyntaxNode): string {
  if (node.type === "future_import_statement") return "__future__";
  const module = node.part("module_name");
  if (module === undefined) return "?";
  return module.type === "dotted_name" ? dottedName(module) : `.${module.text.replace(/^\.+/, "")}`;
}

type Bind = (name: string, binding: Binding) => void;

/** Binds what stands on the left of "=" to what stands on the right, part by part where both are written out. */
function bindTarget(left: SyntaxNode, right: SyntaxNode | undefined, bind: Bind, attributes: Set<string>): void {
  const waiting: [SyntaxNode, SyntaxNode | undefined][] = [[left, right]];
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const [target, value] = pair;
    if (target.type === "identifier") {
      bind(nameOf(target), value === undefined ? { kind: "own" } : { kind: "value", value: lastOf(value) });
      // In a class this is an attribute too.
      if (target.around("class_definition", "function_definition", "lambda")?.type === "class_definition") {
        attributes.add(nameOf(target));
      }
    } else if (target.type === "attribute") {
      const attribute = target.part("attribute");
      if (attribute !== undefined) attributes.add(nameOf(attribute));
    } else if (TARGET_LISTS.has(target.type)) {
      const parts = target.named;
      const values = value !== undefined && VALUE_LISTS.has(value.type) ? value.named : undefined;
      const isPaired = values?.length === parts.length;
      for (const [index, part] of parts.entries()) {
        if (part.type === "type") continue;
        waiting.push([part, isPaired ? values![index] : undefined]);
      }
    }
  }
}

/** `x = y = value`: the value. */
function lastOf(value: SyntaxNode): SyntaxNode {
  let last = value;
  while (last.type === "assignment") {
    const right = last.part("right");
    if (right === undefined) break;
    last = right;
  }
  return last;
}

const TARGET_LISTS = new Set([
  "pattern_list",
  "tuple_pattern",
  "list_pattern",
  "list_splat_pattern",
  "dictionary_splat_pattern",
  "typed_parameter",
  "as_pattern_target",
  "parenthesized_expression",
  "tuple",
  "list",
]);
const VALUE_LISTS = new Set(["expression_list", "tuple", "list"]);
