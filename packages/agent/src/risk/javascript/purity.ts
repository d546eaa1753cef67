import type { Rule } from "../findings.ts";
import { UNKNOWN } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { type Bindings, moduleName, nameOf } from "./bindings.ts";
import { ESCAPES } from "./names.ts";
import type { Numbers } from "./numeric.ts";
import { NEVER_PURE, PURE_GLOBALS, PURE_MEMBERS, PURE_MODULES, PURE_NODES, PURE_PROPERTIES } from "./pure.ts";
import { lookUp, type Values } from "./values.ts";

export interface Code {
  readonly bindings: Bindings;
  readonly values: Values;
  readonly numbers: Numbers;
  readonly found: (rule: Rule, line: number) => void;
}

/** Finds what is not on the allow lists of SAFE code. */
export function checkPurity(node: SyntaxNode, code: Code): void {
  if (!node.isNamed || node.isError) return;
  if (!PURE_NODES.has(node.type)) {
    // What is named by a rule of its own: import(…), import.meta.
    if (node.type === "import" || node.text === "import.meta") return;
    code.found(unlisted("syntax", `uses ${node.type.replaceAll("_", " ")}`), node.line);
    return;
  }
  switch (node.type) {
    case "identifier":
    case "shorthand_property_identifier":
      checkName(node, code);
      break;
    case "this":
      if (node.around("class_body") === undefined)
        code.found(unlisted("name", "uses this outside of a class"), node.line);
      break;
    case "member_expression":
      checkMember(node, code);
      break;
    case "subscript_expression":
      checkSubscript(node, code);
      break;
    case "shorthand_property_identifier_pattern":
      checkProperty(nameOf(node), node, code);
      break;
    case "pair_pattern":
      checkPatternKey(node, code);
      break;
    case "pair":
    case "method_definition":
      checkKey(node, code);
      break;
    case "import_statement":
    case "export_statement":
      checkImport(node, code);
      break;
    case "regex":
      // A division read as a regular expression would hide code.
      if (/\b(?:eval|Function|require|import|process|constructor|globalThis|global|this)\b/.test(node.text)) {
        code.found(unlisted("syntax", "names dangerous things in a regular expression"), node.line);
      }
      break;
  }
}

function unlisted(what: string, reason: string): Rule {
  return { pattern: `unlisted-${what}`, level: "LOW", reason: `${reason}, which is not known to be harmless` };
}

/** Whether an identifier is a value here, and not a declaration of types or an import. */
export function isUse(node: SyntaxNode): boolean {
  const parent = node.parent?.type ?? "";
  return !/^(?:import_specifier|namespace_import|import_clause|nested_type_identifier)$/.test(parent);
}

function checkName(node: SyntaxNode, { bindings, values, found }: Code): void {
  const name = nameOf(node);
  if (!isUse(node)) return;
  if (name === "require") {
    if (!isPlainRequire(node)) found(unlisted("name", "uses require as a value"), node.line);
    return;
  }
  if (values.references(node).some((known) => lookUp(known.name) !== undefined)) return;
  const bound = bindings.names.get(name);
  if (bound !== undefined) {
    const module = bound.find((binding) => binding.kind === "import");
    const isMemberOf = node.parent?.type === "member_expression" && node.field === "object";
    const isCalled = node.field === "function";
    const isWhole = module?.kind === "import" && Object.hasOwn(PURE_MODULES, module.qualified);
    if (isWhole && !isMemberOf && !isCalled) found(unlisted("name", `hands the module ${name} around`), node.line);
    return;
  }
  if (Object.hasOwn(PURE_MEMBERS, name)) {
    const isPlace =
      (node.parent?.type === "member_expression" && node.field === "object") ||
      node.field === "function" ||
      node.field === "constructor" ||
      node.parent?.type === "class_heritage" ||
      (node.parent?.type === "binary_expression" && node.parent.part("operator")?.type === "instanceof");
    if (!isPlace) found(unlisted("name", `hands ${name} around`), node.line);
    return;
  }
  if (!PURE_GLOBALS.has(name)) found(unlisted("name", `uses ${name.slice(0, 64)}`), node.line);
}

function isPlainRequire(node: SyntaxNode): boolean {
  const isCallee = node.parent?.type === "call_expression" && node.field === "function";
  const given = isCallee ? (node.parent!.part("arguments")?.named ?? []) : [];
  return given.length === 1 && given[0]!.type === "string";
}

function checkMember(node: SyntaxNode, code: Code): void {
  const property = node.part("property");
  const object = node.part("object");
  if (property === undefined || object === undefined || property.type === "private_property_identifier") return;
  const name = nameOf(property);
  const owners = code.values.references(object);
  for (const { name: owner } of owners) {
    const listed = Object.hasOwn(PURE_MODULES, owner) ? PURE_MODULES[owner] : ownMember(PURE_MEMBERS, owner);
    if (listed === undefined) continue;
    if (!listed.has(name) || NEVER_PURE.has(name))
      code.found(unlisted("name", `uses ${owner}.${name}`.slice(0, 96)), node.line);
    return;
  }
  if (!Object.hasOwn(ESCAPES, name) && code.values.references(node).some((known) => lookUp(known.name) !== undefined))
    return;
  checkProperty(name, node, code);
}

function ownMember(
  table: Readonly<Record<string, ReadonlySet<string>>>,
  name: string,
): ReadonlySet<string> | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function checkSubscript(node: SyntaxNode, code: Code): void {
  const index = node.part("index");
  if (index === undefined || code.numbers.isNumeric(index)) return;
  const isPlain = index.type === "string" || index.type === "template_string";
  const text = isPlain ? code.values.text(index) : undefined;
  if (text !== undefined && !text.includes(UNKNOWN)) {
    checkProperty(text, node, code);
    return;
  }
  code.found(unlisted("member", "takes a member by a key that is not known to be a number"), node.line);
}

function checkProperty(name: string, node: SyntaxNode, { bindings, found }: Code): void {
  if (Object.hasOwn(ESCAPES, name)) {
    found(ESCAPES[name]!, node.line);
    return;
  }
  const isNumber = /^\d+$/.test(name);
  if (!NEVER_PURE.has(name) && (isNumber || PURE_PROPERTIES.has(name) || bindings.properties.has(name))) return;
  found(unlisted("member", `uses .${name.slice(0, 64)}`), node.line);
}

/** `const { key: x } = value` reads the member. */
function checkPatternKey(node: SyntaxNode, code: Code): void {
  const key = node.part("key");
  if (key?.type === "property_identifier") checkProperty(nameOf(key), node, code);
  else if (key?.type === "string") checkProperty(code.values.text(key) ?? "", node, code);
  else code.found(unlisted("member", "takes a member by a key that is computed"), node.line);
}

function checkKey(node: SyntaxNode, { found }: Code): void {
  const key = node.part("key") ?? node.part("name");
  if (key?.type !== "property_identifier" && key?.type !== "string") return;
  const name = key.type === "string" ? key.text.slice(1, -1) : nameOf(key);
  const isConstructor = name === "constructor" && node.parent?.type === "class_body";
  if (NEVER_PURE.has(name) && !isConstructor) found(unlisted("member", `has a member ${name}`), node.line);
}

function checkImport(node: SyntaxNode, { found }: Code): void {
  const source = node.part("source");
  if (source === undefined) return;
  const module = moduleName(source.text.slice(1, -1));
  const listed = ownMember(PURE_MODULES, module);
  if (listed === undefined) {
    if (lookUp(module) === undefined) found(unlisted("module", `uses ${module.slice(0, -1)}`), node.line);
    return;
  }
  for (const specifier of node.all()) {
    if (specifier.type !== "import_specifier" && specifier.type !== "export_specifier") continue;
    const name = specifier.part("name");
    if (name === undefined || !listed.has(nameOf(name)))
      found(unlisted("name", `takes from ${module.slice(0, -1)}`), node.line);
  }
}

/** A module that is loaded by a call. */
export function checkLoaded(module: string, line: number, { found }: Code): void {
  if (Object.hasOwn(PURE_MODULES, module) || lookUp(module) !== undefined) return;
  found(unlisted("module", `uses ${module.slice(0, -1).slice(0, 64)}`), line);
}
