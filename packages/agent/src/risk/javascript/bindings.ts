import type { SyntaxNode } from "../syntax/node.ts";

/** One way in which a name gets its value. */
export type Binding =
  /** A module, or a member of one: "fs:", "fs:.readFile". */
  | { readonly kind: "import"; readonly qualified: string }
  /** A value, or the member of that name of a value. */
  | { readonly kind: "value"; readonly value: SyntaxNode; readonly member?: string | undefined }
  /** `x += value`, `x++`. */
  | { readonly kind: "changed"; readonly operator: string; readonly value: SyntaxNode | undefined }
  /** A parameter, a loop variable, a function: nothing is known of its value. */
  | { readonly kind: "own" };

/** Who binds which name, anywhere in the text; scopes and order are not looked at. */
export interface Bindings {
  readonly names: ReadonlyMap<string, readonly Binding[]>;
  /** Members that the code itself gives to objects. */
  readonly properties: ReadonlySet<string>;
}

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

export function collectBindings(root: SyntaxNode): Bindings {
  const names = new Map<string, Binding[]>();
  const properties = new Set<string>();
  const bind = (name: string, binding: Binding): void => {
    const known = names.get(name);
    if (known === undefined) names.set(name, [binding]);
    else if (known.length < 64) known.push(binding);
  };
  for (const node of root.all()) {
    switch (node.type) {
      case "import_statement":
        bindImports(node, bind);
        break;
      case "variable_declarator":
        bindPattern(node.part("name")!, node.part("value"), bind);
        break;
      case "assignment_expression": {
        const left = bare(node.part("left")!);
        if (left.type === "member_expression") addProperty(left.part("property"), properties);
        else bindPattern(left, node.part("right"), bind);
        break;
      }
      case "augmented_assignment_expression": {
        const left = bare(node.part("left")!);
        const operator = node.part("operator")?.text ?? "";
        if (left.type === "identifier") bind(nameOf(left), { kind: "changed", operator, value: node.part("right") });
        break;
      }
      case "update_expression": {
        const argument = node.part("argument");
        if (argument !== undefined && bare(argument).type === "identifier")
          bind(nameOf(bare(argument)), { kind: "changed", operator: "++", value: undefined });
        break;
      }
      case "for_in_statement": {
        const left = node.part("left");
        if (left !== undefined) bindPattern(left, undefined, bind);
        break;
      }
      case "catch_clause":
      case "arrow_function": {
        const parameter = node.part("parameter");
        if (parameter !== undefined) bindPattern(parameter, undefined, bind);
        break;
      }
      case "formal_parameters":
        for (const child of node.named) bindPattern(child, undefined, bind);
        break;
      case "function_declaration":
      case "generator_function_declaration":
      case "function_expression":
      case "class_declaration":
      case "abstract_class_declaration":
      case "class":
      case "enum_declaration": {
        const name = node.part("name");
        if (name !== undefined) bind(nameOf(name), { kind: "own" });
        break;
      }
      case "pair":
      case "method_definition":
      case "field_definition":
      case "public_field_definition":
      case "property_signature":
        addProperty(node.part("key") ?? node.part("name") ?? node.part("property"), properties);
        break;
      case "shorthand_property_identifier":
        properties.add(nameOf(node));
        break;
    }
  }
  return { names, properties };
}

/** `(x)`, `x!` and `(x as T)` on the left of "=" are x. */
function bare(node: SyntaxNode): SyntaxNode {
  let inner = node;
  while (/^(?:parenthesized|non_null|as|satisfies)_expression$/.test(inner.type) && inner.named[0] !== undefined) {
    inner = inner.named[0];
  }
  return inner;
}

type Bind = (name: string, binding: Binding) => void;

function addProperty(node: SyntaxNode | undefined, properties: Set<string>): void {
  if (node?.type === "property_identifier") properties.add(nameOf(node));
  if (node?.type === "string") properties.add(node.text.slice(1, -1));
}

function bindImports(node: SyntaxNode, bind: Bind): void {
  const source = node.part("source");
  const clause = node.named.find((child) => child.type === "import_clause");
  if (source === undefined || clause === undefined) return;
  const module = moduleName(source.text.slice(1, -1));
  for (const child of clause.named) {
    if (child.type === "identifier") bind(nameOf(child), { kind: "import", qualified: module });
    if (child.type === "namespace_import" && child.named[0] !== undefined) {
      bind(nameOf(child.named[0]), { kind: "import", qualified: module });
    }
    if (child.type !== "named_imports") continue;
    for (const specifier of child.named) {
      const name = specifier.part("name");
      if (name === undefined) continue;
      const imported = name.type === "string" ? name.text.slice(1, -1) : nameOf(name);
      const qualified = imported === "default" ? module : `${module}.${imported}`;
      bind(nameOf(specifier.part("alias") ?? name), { kind: "import", qualified });
    }
  }
}

/** Binds each name of a pattern, with the member it takes where one can see it. */
function bindPattern(pattern: SyntaxNode, value: SyntaxNode | undefined, bind: Bind): void {
  const waiting: { readonly target: SyntaxNode; readonly value: SyntaxNode | undefined; readonly member?: string }[] = [
    { target: pattern, value },
  ];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { member } = next;
    const target = bare(next.target);
    switch (target.type) {
      case "identifier":
      case "shorthand_property_identifier_pattern":
        bind(nameOf(target), next.value === undefined ? { kind: "own" } : { kind: "value", value: next.value, member });
        break;
      case "required_parameter":
      case "optional_parameter": {
        const inner = target.part("pattern");
        if (inner !== undefined) waiting.push({ target: inner, value: undefined });
        const initial = target.part("value");
        if (inner !== undefined && initial !== undefined) waiting.push({ target: inner, value: initial });
        break;
      }
      case "assignment_pattern":
      case "object_assignment_pattern": {
        const left = target.part("left");
        if (left === undefined) break;
        const isShorthand = left.type === "shorthand_property_identifier_pattern";
        waiting.push({ target: left, value: next.value, ...(isShorthand ? { member: nameOf(left) } : {}) });
        waiting.push({ target: left, value: target.part("right") });
        break;
      }
      case "object_pattern":
        for (const child of target.named) {
          // Only one level is followed; deeper members are found where they are named.
          const outer = member === undefined ? next.value : undefined;
          if (child.type === "shorthand_property_identifier_pattern") {
            waiting.push({ target: child, value: outer, member: nameOf(child) });
          } else if (child.type === "pair_pattern") {
            const key = child.part("key");
            const inner = child.part("value");
            if (inner === undefined) continue;
            const name =
              key?.type === "property_identifier"
                ? nameOf(key)
                : key?.type === "string"
                  ? key.text.slice(1, -1)
                  : undefined;
            if (name === undefined) waiting.push({ target: inner, value: undefined });
            else waiting.push({ target: inner, value: outer, member: name });
          } else {
            waiting.push({ target: child, value: outer });
          }
        }
        break;
      case "array_pattern": {
        const values = next.value?.type === "array" ? next.value.named : undefined;
        const parts = target.named;
        for (const [index, child] of parts.entries()) {
          waiting.push({ target: child, value: values?.length === parts.length ? values[index] : undefined });
        }
        break;
      }
      case "rest_pattern":
        for (const child of target.named) waiting.push({ target: child, value: undefined });
        break;
    }
  }
}
