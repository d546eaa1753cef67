import type { Findings, Rule } from "../findings.ts";
import { pathRule, secretIn, UNKNOWN } from "../places.ts";
import { shellWord } from "../shell-word.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { collectBindings, dottedName, moduleOf, nameOf } from "./bindings.ts";
import {
  CODE_CALLS,
  METHOD_RULES,
  NAME_RULES,
  OPENING,
  PATH_CALLS,
  PATH_METHODS,
  SECOND_PATH_CALLS,
  SHELL_CALLS,
} from "./names.ts";
import { checkPurity, escapeRule } from "./purity.ts";
import { argumentsOf, innermost, isPathValue, lookUp, namedArgument, type Reference, Values } from "./values.ts";

/** Looks at each node of a Python program once and tells what keeps it from being SAFE. */
export function assessPython(root: SyntaxNode, findings: Findings): void {
  const bindings = collectBindings(root);
  const values = new Values(bindings);
  const seen = new Set<string>();
  const found = (rule: Rule, line: number): void => {
    seen.add(rule.pattern);
    findings.add(rule, line);
  };

  for (const node of root.all()) {
    checkPurity(node, bindings, values, found);
    switch (node.type) {
      case "import_statement":
        for (const part of node.parts("name")) {
          const name = dottedName(part.type === "aliased_import" ? part.part("name")! : part);
          mention({ name, isHidden: false }, node.line, found);
        }
        break;
      case "import_from_statement": {
        const module = moduleOf(node);
        mention({ name: module, isHidden: false }, node.line, found);
        for (const part of node.parts("name")) {
          const name = dottedName(part.type === "aliased_import" ? part.part("name")! : part);
          mention({ name: `${module}.${name}`, isHidden: false }, node.line, found);
        }
        break;
      }
      case "identifier":
        if (isUse(node)) mentions(node, values, found);
        break;
      case "attribute":
      case "subscript":
        mentions(node, values, found);
        if (node.type === "subscript") namespaceAccess(node, values, found);
        break;
      case "call":
        mentions(node, values, found);
        assessCall(node, values, findings, found);
        break;
      case "decorator":
        assessDecorator(node, values, found);
        break;
      case "string":
      case "concatenated_string":
      case "binary_operator": {
        const isPart = node.parent?.type === "concatenated_string" || node.parent?.type === "binary_operator";
        const secret = isPart ? undefined : secretIn(values.text(node) ?? "");
        if (secret !== undefined) found(secret, node.line);
        break;
      }
      case "exec_statement":
        found(NAME_RULES["builtins.exec"]!, node.line);
        break;
    }
  }
  combinations(root, seen, found);
}

type Found = (rule: Rule, line: number) => void;

const HIDDEN: Omit<Rule, "reason"> = { pattern: "hidden-access", level: "CRITICAL" };

function mentions(node: SyntaxNode, values: Values, found: Found): void {
  for (const reference of values.references(node)) mention(reference, node.line, found);
}

/** A name that stands for something, used in any way. */
function mention(reference: Reference, line: number, found: Found): void {
  const rule = lookUp(reference.name) ?? methodRule(reference.name);
  if (rule === undefined) return;
  // Code and commands are rated with what they are given; by themselves they count as they are.
  found(rule, line);
  if (reference.isHidden && rule.level !== "LOW") {
    found({ ...HIDDEN, reason: `reaches ${reference.name} in a way that hides the name` }, line);
  }
}

function methodRule(name: string): Rule | undefined {
  const method = name.slice(name.lastIndexOf(".") + 1);
  const isMethod = /^(?:\?|.*\(\))\.\w+$/.test(name);
  return isMethod && Object.hasOwn(METHOD_RULES, method) ? METHOD_RULES[method] : undefined;
}

/** Whether an identifier is a value here, and not the name of an attribute, a parameter or an import. */
function isUse(node: SyntaxNode): boolean {
  const parent = node.parent;
  if (parent === undefined) return true;
  if (node.field === "attribute" || parent.type === "dotted_name" || parent.type === "aliased_import") return false;
  if (parent.type === "keyword_argument" && node.field === "name") return false;
  return !(parent.type === "keyword_pattern" && parent.named[0] === node);
}

/** globals()[name], vars(x)[name], builtins.__dict__[name]: which one is not known. */
function namespaceAccess(node: SyntaxNode, values: Values, found: Found): void {
  const owner = node.part("value");
  const key = node.part("subscript");
  if (owner === undefined || key === undefined) return;
  const isNamespace = values
    .references(owner)
    .some(({ name }) =>
      /^(?:builtins$|builtins\.(?:globals|locals|vars)\(\)|sys\.modules$|dict of )|\.__dict__$/.test(name),
    );
  const text = isNamespace ? values.text(key) : undefined;
  if (isNamespace && (text === undefined || text.includes(UNKNOWN))) {
    found(
      { pattern: "hidden-access", level: "HIGH", reason: "takes a name from a namespace that is not known before" },
      node.line,
    );
  }
}

/** A decorator is a call. What it is given is no text of this program. */
function assessDecorator(node: SyntaxNode, values: Values, found: Found): void {
  const callee = node.named[0];
  if (callee === undefined) return;
  const isCode = values.references(callee).some((known) => CODE_CALLS.has(known.name));
  if (isCode)
    found({ pattern: "dynamic-code", level: "HIGH", reason: "runs code that is made while running" }, node.line);
}

function assessCall(call: SyntaxNode, values: Values, findings: Findings, found: Found): void {
  const callee = call.part("function")!;
  const given = argumentsOf(call);
  const [first, second] = given;
  const { line } = call;
  for (const reference of values.references(callee)) {
    const name = innermost(reference.name);
    if (CODE_CALLS.has(name)) assessCode(call, name, first, values, findings, found);
    if (SHELL_CALLS.has(name)) assessShell(call, name, given, values, findings, found);
    if (OPENING.has(name)) assessOpening(call, first, second, values, found);
    const path = Object.hasOwn(PATH_CALLS, name) ? PATH_CALLS[name] : undefined;
    const pathArgument = path === undefined ? undefined : given[path.argument];
    if (path !== undefined && pathArgument !== undefined) {
      found(pathRule(values.text(pathArgument) ?? "", path.use), line);
    }
    if (Object.hasOwn(SECOND_PATH_CALLS, name) && second !== undefined) {
      found(pathRule(values.text(second) ?? "", SECOND_PATH_CALLS[name]!), line);
    }
    if (name === "builtins.__import__" || name === "importlib.import_module") {
      const module = first === undefined ? undefined : values.text(first);
      if (module === undefined || module.includes(UNKNOWN)) {
        found(
          { pattern: "dynamic-import", level: "HIGH", reason: "imports a module whose name is not known before" },
          line,
        );
      }
    }
    if (name === "builtins.getattr" || name === "builtins.setattr") attributeByText(call, given, values, found);
    if (name === "os.fork" && call.around("while_statement", "for_statement") !== undefined) {
      found({ pattern: "fork-bomb", level: "CRITICAL", reason: "makes processes without end" }, line);
    }
    if (name === "os.chmod" && /0o?[4-7]\d{3}|S_ISUID|S_ISGID/.test(second?.text ?? "")) {
      found({ pattern: "privilege", level: "HIGH", reason: "lets a program run as its owner" }, line);
    }
  }
  if (callee.type === "attribute") assessMethod(call, callee, given, values, found);
}

/** eval, exec, compile and what else runs its argument. */
function assessCode(
  call: SyntaxNode,
  name: string,
  code: SyntaxNode | undefined,
  values: Values,
  findings: Findings,
  found: Found,
): void {
  const { line } = call;
  if (code !== undefined && values.isDecoded(code)) {
    found({ pattern: "obfuscated-code", level: "CRITICAL", reason: "runs code that is hidden by an encoding" }, line);
  } else if (code !== undefined && values.isRemote(code)) {
    found({ pattern: "remote-code", level: "CRITICAL", reason: "runs code that comes over the network" }, line);
  }
  if (name === "marshal.loads" || name === "timeit.timeit") return;
  found({ pattern: "dynamic-code", level: "HIGH", reason: "runs code that is made while running" }, line);
  const text = code === undefined ? undefined : values.text(code);
  if (text !== undefined && name !== "pickle.loads") findings.nested.push({ code: text, language: "python", line });
}

function assessShell(
  call: SyntaxNode,
  name: string,
  given: readonly SyntaxNode[],
  values: Values,
  findings: Findings,
  found: Found,
): void {
  const command = given[0] ?? namedArgument(call, "args");
  if (command === undefined) return;
  if (values.isDecoded(command)) {
    found(
      { pattern: "obfuscated-code", level: "CRITICAL", reason: "runs a command that is hidden by an encoding" },
      call.line,
    );
  }
  const isSpread = /^os\.(?:exec|spawn)|subprocess_exec$/.test(name);
  const words = isSpread ? given.map((word) => values.text(word) ?? UNKNOWN) : values.words(command);
  const line = words === undefined ? values.text(command) : words.map(shellWord).join(" ");
  if (line !== undefined) findings.nested.push({ code: line, language: "bash", line: call.line });
}

function assessOpening(
  call: SyntaxNode,
  path: SyntaxNode | undefined,
  modeGiven: SyntaxNode | undefined,
  values: Values,
  found: Found,
): void {
  const mode = modeGiven ?? namedArgument(call, "mode");
  const text = mode === undefined ? "r" : values.text(mode);
  const isRead = text !== undefined && !/[wax+]/.test(text) && !text.includes(UNKNOWN);
  const where = path ?? namedArgument(call, "file");
  found(pathRule((where && values.text(where)) ?? "", isRead ? "read" : "write"), call.line);
}

function attributeByText(call: SyntaxNode, given: readonly SyntaxNode[], values: Values, found: Found): void {
  const [object, attribute] = given;
  const text = attribute === undefined ? undefined : values.text(attribute);
  if (text !== undefined && !text.includes(UNKNOWN)) {
    const way = escapeRule(text);
    if (way !== undefined) found({ ...way, level: "CRITICAL" }, call.line);
    return;
  }
  const isModule =
    object !== undefined &&
    values.references(object).some(({ name }) => !name.startsWith("?") && lookUp(name) !== undefined);
  if (isModule) {
    found(
      { pattern: "hidden-access", level: "HIGH", reason: "takes from a module what is not known before" },
      call.line,
    );
  }
}

/** Methods of paths, and text that is used as a template. */
function assessMethod(
  call: SyntaxNode,
  callee: SyntaxNode,
  given: readonly SyntaxNode[],
  values: Values,
  found: Found,
): void {
  const method = nameOf(callee.part("attribute")!);
  const object = callee.part("object")!;
  const isPath = values.references(object).some(({ name }) => isPathValue(name));
  if (isPath && Object.hasOwn(PATH_METHODS, method)) {
    found(pathRule(values.text(object) ?? "", PATH_METHODS[method]!), call.line);
  }
  if (isPath && method === "open") {
    assessOpening(call, object, given[0], values, found);
  }
  if (method === "format" || method === "format_map") {
    const template = values.text(object);
    const reached = [...(template ?? "").matchAll(/[.[](\w+)/g)].map((match) => escapeRule(match[1]!));
    const way = reached.find((rule) => rule !== undefined);
    if (way !== undefined && /\{[^}]*[.[]/.test(template ?? "")) found({ ...way, level: "CRITICAL" }, call.line);
  }
}

/** What is worse together than each by itself. */
function combinations(root: SyntaxNode, seen: ReadonlySet<string>, found: Found): void {
  const isShell = seen.has("descriptors") || seen.has("terminal");
  if (seen.has("network") && isShell) {
    found(
      { pattern: "reverse-shell", level: "CRITICAL", reason: "gives a shell to the other end of a connection" },
      root.line,
    );
  }
}
