import { each, type Findings, type Rule, rule } from "../findings.ts";
import { pathRule, UNKNOWN } from "../places.ts";
import { assessProgram, DYNAMIC, type Look, type Program } from "../program/assess.ts";
import { type Dialect, type Expression, OTHER, type Reference } from "../program/expression.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { character, decodeBase64, decodeHex, joinPath, rot13, unescapeText } from "../text-codes.ts";
import { importsOf, moduleOf, nameOf, pythonBindings } from "./bindings.ts";
import {
  CODE_CALLS,
  DECODERS,
  ESCAPES,
  METHOD_RULES,
  NAME_RULES,
  OPENING,
  PATH_CALLS,
  PATH_METHODS,
  SHELL_CALLS,
} from "./names.ts";

export function assessPython(root: SyntaxNode, findings: Findings): void {
  const { seen, found } = assessProgram(root, findings, PYTHON, look);
  if (seen.has("network") && (seen.has("descriptors") || seen.has("terminal"))) {
    found(rule("CRITICAL", "reverse-shell", "gives a shell to the other end of a connection"), root.line);
  }
}

function read(node: SyntaxNode): Expression {
  switch (node.type) {
    case "identifier":
      return isUse(node) ? { kind: "name", name: nameOf(node) } : OTHER;
    case "string":
      return { kind: "text", parts: partsOf(node) };
    case "concatenated_string":
      return { kind: "text", parts: node.named };
    case "integer":
      return { kind: "text", parts: [node.text] };
    case "attribute":
      return { kind: "member", object: node.part("object")!, name: nameOf(node.part("attribute")!) };
    case "subscript": {
      const [of, key] = [node.part("value"), node.part("subscript")];
      if (of === undefined || key === undefined) return OTHER;
      return key.text.replaceAll(" ", "") === "::-1" ? { kind: "reversed", of } : { kind: "item", object: of, key };
    }
    case "call":
      return { kind: "call", callee: node.part("function")!, given: argumentsOf(node) };
    case "list":
    case "tuple":
      return { kind: "list", items: node.named };
    case "parenthesized_expression":
    case "await":
      return { kind: "either", options: node.named.slice(0, 1) };
    case "named_expression":
      return { kind: "either", options: node.parts("value") };
    case "conditional_expression":
    case "boolean_operator":
      return { kind: "either", options: node.named };
    case "binary_operator": {
      const [left, right] = [node.part("left"), node.part("right")];
      if (left === undefined || right === undefined) return OTHER;
      const operator = node.part("operator")?.type;
      if (operator === "%") return { kind: "either", options: [left] };
      return operator === "+"
        ? { kind: "sum", left, right }
        : operator === "/"
          ? { kind: "below", left, right }
          : OTHER;
    }
    default:
      return OTHER;
  }
}

/** Whether an identifier is a value here, and not the name of an attribute, a parameter or an import. */
function isUse(node: SyntaxNode): boolean {
  const parent = node.parent?.type;
  if (node.field === "attribute" || parent === "dotted_name" || parent === "aliased_import") return false;
  if (parent === "keyword_argument" && node.field === "name") return false;
  return !(parent === "keyword_pattern" && node.parent!.named[0] === node);
}

function partsOf(node: SyntaxNode): readonly (string | SyntaxNode)[] {
  const isRaw = /r/i.test(node.children[0]?.text ?? "");
  return node.children.flatMap((part) => {
    if (part.type === "interpolation") return [part.part("expression") ?? UNKNOWN];
    return part.type === "string_content" ? [isRaw ? part.text : unescapeText(part.text)] : [];
  });
}

/** The arguments that are not given by name. */
function argumentsOf(call: SyntaxNode): readonly SyntaxNode[] {
  const list = call.part("arguments");
  // sum(x for x in y)
  if (list?.type !== "argument_list") return list === undefined ? [] : [list];
  return list.named.flatMap((child) => {
    if (child.type !== "keyword_argument") return [child];
    return child.part("name")?.text === "args" ? child.parts("value") : [];
  });
}

const PYTHON: Dialect = {
  language: "python",
  read,
  bindings: pythonBindings,
  imports: (node) => {
    if (!/^(?:import|import_from)_statement$/.test(node.type)) return [];
    const names = importsOf(node).map(({ qualified }) => qualified);
    return node.type === "import_statement" ? names : [moduleOf(node), ...names];
  },
  lookUp: (name) => lookUp(name) ?? methodRule(name),
  globalName,
  member,
  item: (owner, key) => {
    const name = owner.name.replace(/\.__dict__$/, "");
    if (key === undefined) return { name: `${owner.name}[]`, isHidden: owner.isHidden };
    if (name === "sys.modules") return { name: key, isHidden: true };
    if (/^os\.environb?$/.test(name))
      return { name: key === "HOME" ? "os.environ.HOME" : name, isHidden: owner.isHidden };
    if (/^builtins\.(?:globals|locals|vars)\(\)/.test(name)) return { name: globalName(key), isHidden: true };
    if (name !== owner.name || name === "builtins") return member({ ...owner, name }, key, true);
    return { name: `${name}[]`, isHidden: owner.isHidden };
  },
  moduleName: (text) => text,
  isLoader: (name) => /^(?:builtins\.__import__|importlib\.(?:import_module|__import__))$/.test(name),
  texts: {
    "builtins.chr": ([code]) => character(code),
    ...each("builtins.str builtins.bytes os.path.expanduser os.path.abspath os.path.realpath", ([text]) => text),
    ...each("base64.b64decode base64.urlsafe_b64decode binascii.a2b_base64", ([text]) => decodeBase64(text)),
    ...each("builtins.bytes.fromhex builtins.bytearray.fromhex binascii.unhexlify", ([text]) => decodeHex(text)),
    "codecs.decode": ([text, code = ""]) => (/^rot_?13$/.test(code) ? rot13(text) : undefined),
    ...each("os.path.join pathlib.Path pathlib.PurePath pathlib.PosixPath", joinPath),
    ...each("os.getenv os.environ.get", ([name]) => (name === "HOME" ? "~" : undefined)),
    ...each("pathlib.Path.home os.environ.HOME", () => "~"),
    "sys.executable": () => "python3",
  },
  decoders: DECODERS,
  code: CODE_CALLS,
  shells: SHELL_CALLS,
  paths: PATH_CALLS,
  telling: [
    [/^os\.chmod$/, /0o?[4-7]\d{3}|S_ISUID|S_ISGID/, rule("HIGH", "privilege", "lets a program run as its owner")],
  ],
};

function globalName(name: string): string {
  return name === "__builtins__" ? "builtins" : `builtins.${name}`;
}

function member(owner: Reference, name: string, isHidden: boolean): Reference {
  return { name: `${owner.name}.${name}`.slice(0, 256), isHidden: owner.isHidden || isHidden };
}

const MODULES_INSIDE = /^(?:os|sys|subprocess|codecs|builtins|socket|io|importlib|shutil|ctypes)$/;

/** The rule of the longest listed beginning of a qualified name; also of a module that is reached through another. */
function lookUp(name: string): Rule | undefined {
  const parts = name.split(".").slice(0, 12);
  for (let from = 0; from < parts.length; from++) {
    const module = parts[from]!.replace(/^_+(?=\w)/, "");
    if (from > 0 && (parts[from - 1] === "builtins" || !MODULES_INSIDE.test(module))) continue;
    for (let to = parts.length; to > from; to--) {
      const key = [from === 0 ? parts[0]! : module, ...parts.slice(from + 1, to)].join(".").replace(/\(\)$/, "");
      // The rule of the whole module is not one of each builtin function.
      if (key === "builtins" && parts.length > to) continue;
      if (Object.hasOwn(NAME_RULES, key)) return NAME_RULES[key];
    }
  }
  return undefined;
}

/** A method of an unknown value, of a name that nobody gives a value, or of what a call gives. */
function methodRule(name: string): Rule | undefined {
  const method = /^(?:\?|.*\(\)|builtins\.\w+)\.(\w+)$/.exec(name)?.[1] ?? "";
  return Object.hasOwn(METHOD_RULES, method) ? METHOD_RULES[method] : undefined;
}

/** A qualified name without the modules it was reached through: "json.codecs.open" is "codecs.open". */
function innermost(name: string): string {
  const parts = name.split(".");
  const from = parts.findLastIndex((part, index) => index > 0 && index < parts.length - 1 && MODULES_INSIDE.test(part));
  return from === -1 ? name : parts.slice(from).join(".");
}

const look: Look = (node, expression, program) => {
  const { found, values } = program;
  const reach = (name: string, level?: Rule["level"]): void => {
    if (Object.hasOwn(ESCAPES, name)) found({ ...ESCAPES[name]!, ...(level && { level }) }, node.line);
  };
  if (expression.kind === "name" || expression.kind === "member") reach(expression.name);
  if (node.type === "keyword_pattern" && node.named[0] !== undefined) reach(nameOf(node.named[0]));
  if (node.type === "exec_statement") found(DYNAMIC, node.line);
  // A decorator is a call. What it is given is no text of this program.
  const decorator = node.type === "decorator" ? node.named[0] : undefined;
  const called = decorator === undefined ? [] : values.references(decorator);
  if (called.some(({ name }) => Object.hasOwn(CODE_CALLS, name))) found(DYNAMIC, node.line);
  const items = expression.kind === "item" ? values.references(node) : [];
  if (items.some(({ name }) => NAMESPACE_ITEM.test(name)))
    found(rule("HIGH", "hidden-access", "takes a name from a namespace that is not known before"), node.line);
  if (expression.kind === "call") lookAtCall(node, expression, program, reach);
};

const NAMESPACE_ITEM = /^(?:builtins|builtins\.(?:globals|locals|vars)\(\)|sys\.modules|.*\.__dict__)\[\]$/;

function lookAtCall(
  node: SyntaxNode,
  { callee, given }: Expression & { readonly kind: "call" },
  { found, values }: Program,
  reach: (name: string, rated?: Rule["level"]) => void,
): void {
  const { line } = node;
  const [one, two] = given;
  const opens = (path: SyntaxNode | undefined, mode: SyntaxNode | undefined): void => {
    const named = (name: string): SyntaxNode | undefined =>
      node.part("arguments")?.children.find((child) => child.part("name")?.text === name);
    const how = mode ?? named("mode")?.part("value");
    const text = how === undefined ? "r" : (values.text(how) ?? UNKNOWN);
    const use = /[wax+\uFFFC]/.test(text) ? "write" : "read";
    found(pathRule(values.text(path ?? named("file")?.part("value")) ?? "", use), line);
  };
  for (const reference of values.references(callee)) {
    const name = innermost(reference.name);
    if (OPENING.has(name)) opens(one, two);
    if (/^builtins\.[gs]etattr$/.test(name)) {
      const text = values.text(two);
      if (text !== undefined && !text.includes(UNKNOWN)) reach(text, "CRITICAL");
      else if (one !== undefined && values.references(one).some((known) => lookUp(known.name) !== undefined))
        found(rule("HIGH", "hidden-access", "takes from a module what is not known before"), line);
    }
    if (name === "os.fork" && node.around("while_statement", "for_statement") !== undefined)
      found(rule("CRITICAL", "fork-bomb", "makes processes without end"), line);
  }
  const method = read(callee);
  if (method.kind !== "member") return;
  if (values.references(method.object).some(({ name }) => IS_PATH.test(name))) {
    const use = Object.hasOwn(PATH_METHODS, method.name) ? PATH_METHODS[method.name] : undefined;
    if (use !== undefined) found(pathRule(values.text(method.object) ?? "", use), line);
    if (method.name === "open") opens(method.object, one);
  }
  // "{0.name}".format(x) reads attributes.
  const template = /^format(?:_map)?$/.test(method.name) ? (values.text(method.object) ?? "").slice(0, 512) : "";
  for (const [, name] of template.matchAll(/\{[^}]*?[.[](\w+)/g)) reach(name!, "CRITICAL");
}

/** The qualified names of path objects. */
const IS_PATH = /^pathlib\.\w+(?:\.home|\.cwd)?\(\)(?:\.(?:expanduser|resolve|absolute|joinpath)\(\)|\.parent)*$/;
