import { each, type Findings, type Rule, rule } from "../findings.ts";
import { UNKNOWN } from "../places.ts";
import { assessProgram, type Look } from "../program/assess.ts";
import { type Dialect, type Expression, OTHER, type Reference } from "../program/expression.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { character, decodeBase64, decodeHex, joinPath, unescapeText } from "../text-codes.ts";
import { javaScriptBindings, moduleName, nameOf, WRAPPING } from "./bindings.ts";
import { CODE_CALLS, DECODERS, ESCAPES, NAME_RULES, PATH_CALLS, SHELL_CALLS, TELLING } from "./names.ts";

export function assessJavaScript(root: SyntaxNode, findings: Findings): void {
  const { seen, found } = assessProgram(root, findings, JAVASCRIPT, look);
  if (/<!--|^\s*-->/m.test(root.text))
    found(rule("MEDIUM", "html-comment", "has comments that some interpreters read as code"), root.line);
  if (seen.has("raw-connection") && seen.has("subprocess"))
    found(rule("CRITICAL", "reverse-shell", "connects a program to another machine"), root.line);
  if (seen.has("whole-environment") && seen.has("network"))
    found(rule("HIGH", "exfiltration", "reads the whole environment and uses the network"), root.line);
}

function read(node: SyntaxNode): Expression {
  switch (node.type) {
    case "identifier":
    case "shorthand_property_identifier":
      return IS_DECLARATION.test(node.parent?.type ?? "") ? OTHER : { kind: "name", name: nameOf(node) };
    case "string":
      return { kind: "text", parts: [unescapeText(node.text.slice(1, -1))] };
    case "number":
      return { kind: "text", parts: [node.text] };
    case "template_string":
      return { kind: "text", parts: node.children.flatMap(templatePart) };
    case "member_expression": {
      const [object, property] = [node.part("object"), node.part("property")];
      if (object === undefined || property === undefined) return OTHER;
      return { kind: "member", object, name: nameOf(property) };
    }
    case "subscript_expression": {
      const [object, key] = [node.part("object"), node.part("index")];
      return object === undefined || key === undefined ? OTHER : { kind: "item", object, key };
    }
    case "call_expression":
    case "new_expression": {
      const callee = node.part("function") ?? node.part("constructor");
      const list = node.part("arguments");
      const given = list === undefined ? [] : list.type === "arguments" ? list.named : [list];
      return callee === undefined ? OTHER : { kind: "call", callee, given };
    }
    case "array":
      return { kind: "list", items: node.named };
    case "sequence_expression":
      return { kind: "either", options: node.named.slice(-1) };
    case "assignment_expression":
      return { kind: "either", options: node.parts("right") };
    case "ternary_expression":
      return { kind: "either", options: node.named };
    case "binary_expression": {
      const [left, right] = [node.part("left"), node.part("right")];
      if (left === undefined || right === undefined) return OTHER;
      return node.part("operator")?.type === "+"
        ? { kind: "sum", left, right }
        : { kind: "either", options: [left, right] };
    }
    case "import":
      return { kind: "known", name: "import" };
    case "meta_property":
      return node.text.startsWith("import") ? { kind: "known", name: "import.meta" } : OTHER;
    case "this":
      // Outside of classes, `this` can be the global object.
      return node.around("class_body") === undefined ? { kind: "known", name: "globalThis" } : OTHER;
    default:
      if (WRAPPING.test(node.type)) return { kind: "either", options: node.named.slice(0, 1) };
      return FUNCTION.test(node.type) ? { kind: "known", name: "function" } : OTHER;
  }
}

const IS_DECLARATION = /^(?:import_specifier|namespace_import|import_clause|nested_type_identifier)$/;
const FUNCTION = /^(?:arrow_function|function_expression|generator_function|class|class_declaration)$/;

function templatePart(part: SyntaxNode): readonly (string | SyntaxNode)[] {
  if (part.type === "template_substitution") return [part.named[0] ?? UNKNOWN];
  return part.isNamed ? [unescapeText(part.text)] : [];
}

const JAVASCRIPT: Dialect = {
  language: "javascript",
  read,
  bindings: javaScriptBindings,
  imports: (node) => {
    const source = /^(?:import|export)_statement$/.test(node.type) ? node.part("source") : undefined;
    return source === undefined ? [] : [moduleName(unescapeText(source.text.slice(1, -1)))];
  },
  lookUp,
  globalName: (name) => name,
  member: (owner, name, isHidden) => member(owner, name, isHidden),
  item: (owner, key) => member(owner, key ?? "[]", true),
  moduleName,
  isLoader: (name) =>
    /^(?:require|import|process\.getBuiltinModule|module:\.createRequire\(\)|module:\._load)$/.test(name) ||
    /^(?:module|.*\.mainModule)\.require$/.test(name),
  texts: {
    ...each("String.fromCharCode String.fromCodePoint", (codes: readonly string[]) => codes.map(character).join("")),
    ...each("Buffer.from buffer:.Buffer.from", bufferText),
    ...each("path:.join path:.resolve", joinPath),
    ...each("os:.homedir process.env.HOME", () => "~"),
    String: ([text]) => text,
    atob: ([text]) => decodeBase64(text),
  },
  decoders: DECODERS,
  code: CODE_CALLS,
  shells: SHELL_CALLS,
  paths: PATH_CALLS,
  telling: TELLING,
};

function bufferText([text, encoding = "utf8"]: readonly string[]): string | undefined {
  return encoding.startsWith("base64") ? decodeBase64(text) : encoding === "hex" ? decodeHex(text) : text;
}

/** The rule of the longest listed beginning of a qualified name. */
function lookUp(name: string): Rule | undefined {
  let key = name.replaceAll("()", "");
  if (/^data:/i.test(key)) return rule("CRITICAL", "obfuscated-code", "imports code that is written as data");
  if (/^https?:\/\//i.test(key)) return rule("CRITICAL", "remote-code", "imports code over the network");
  for (let cuts = 0; cuts < 12; cuts++) {
    if (Object.hasOwn(NAME_RULES, key)) return NAME_RULES[key];
    const dot = key.lastIndexOf(".");
    if (dot === -1) return undefined;
    key = key.slice(0, dot);
  }
  return undefined;
}

function member(owner: Reference, property: string, isBySubscript: boolean): Reference {
  if (/^(?:globalThis|global|window|self)$/.test(owner.name)) {
    if (property === "[]") return { name: `${owner.name}.[]`, isHidden: true };
    return { name: property, isHidden: owner.isHidden || isBySubscript };
  }
  if (property === "constructor") {
    const isFunction = /^(?:function|constructor|.*getPrototypeOf\(\))$/.test(owner.name);
    return isFunction ? { name: "Function", isHidden: true } : { name: "constructor", isHidden: owner.isHidden };
  }
  // The members of modules by default and of what is called indirectly are the thing itself.
  if (/^(?:call|apply)$/.test(property) || (property === "default" && owner.name.endsWith(":"))) return owner;
  const name = `${owner.name}.${property}`.slice(0, 256);
  // obj["key"] hides something only if the key is what makes it dangerous.
  return { name, isHidden: owner.isHidden || (isBySubscript && lookUp(name) !== lookUp(owner.name)) };
}

const look: Look = (node, expression, program) => {
  const { found, seen, values } = program;
  const { line } = node;
  if (/^(?:name|member|item)$/.test(expression.kind)) {
    for (const { name } of values.references(node)) {
      if (/^(?:net|tls):/.test(name)) seen.add("raw-connection");
      if (name === "process.env" && node.field !== "object") seen.add("whole-environment");
      if (UNKNOWN_MEMBER.test(name))
        found(rule("HIGH", "hidden-access", "takes something by a name that is not known before"), line);
      if (name === "Function" && expression.kind !== "name")
        found(rule("CRITICAL", "escape", "reaches the maker of functions through a value"), line);
    }
  }
  const name = expression.kind === "member" ? expression.name : patternKey(node);
  const key = expression.kind === "item" ? values.text(expression.key) : name;
  if (key !== undefined && Object.hasOwn(ESCAPES, key)) found(ESCAPES[key]!, line);
  // Code can be written with six characters, ()[]!+, which build the names of everything.
  const dense = node.type === "expression_statement" ? node.text.replace(/\s/g, "") : "";
  if (dense.length >= 40 && dense.replace(/[[\](){}!+]/g, "").length < dense.length / 20)
    found(rule("HIGH", "obfuscated-code", "is written with brackets and signs only"), line);
};

const UNKNOWN_MEMBER = /(?:^|\.)(?:process|globalThis|global|window|self|child_process:|fs:)\.\[\]$/;

/** `const { key: x } = value` reads the member. */
function patternKey(node: SyntaxNode): string | undefined {
  if (node.type === "shorthand_property_identifier_pattern") return nameOf(node);
  const key = node.type === "pair_pattern" ? node.part("key") : undefined;
  return key?.type === "string" ? key.text.slice(1, -1) : key && nameOf(key);
}
