import type { Rule } from "../findings.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { type Bindings, dottedName, moduleOf, nameOf } from "./bindings.ts";
import { ESCAPES, MILD_ESCAPES } from "./names.ts";
import { NEVER_PURE, PURE_ATTRIBUTES, PURE_BUILTINS, PURE_DUNDERS, PURE_MODULES, PURE_NODES } from "./pure.ts";
import { lookUp, type Values } from "./values.ts";

type Found = (rule: Rule, line: number) => void;

/** Finds what is not on the allow lists of SAFE code. */
export function checkPurity(node: SyntaxNode, bindings: Bindings, values: Values, found: Found): void {
  if (!node.isNamed || node.isError) return;
  if (!PURE_NODES.has(node.type)) {
    found(
      { pattern: "unlisted-syntax", level: "LOW", reason: `uses ${node.type}, which is not known to be harmless` },
      node.line,
    );
    return;
  }
  // Where a rule says more, that is enough.
  const isNamedUse = node.type === "identifier" || node.type === "attribute";
  if (isNamedUse && !isEscape(node) && values.references(node).some(({ name }) => lookUp(name) !== undefined)) return;
  switch (node.type) {
    case "import_statement":
      for (const part of node.parts("name")) {
        checkModule(dottedName(part.type === "aliased_import" ? part.part("name")! : part), node.line, found);
      }
      break;
    case "import_from_statement":
    case "future_import_statement":
      checkFromImport(node, found);
      break;
    case "identifier":
      checkName(node, bindings, found);
      break;
    case "attribute":
      checkAttribute(node, bindings, values, found);
      break;
    case "keyword_pattern":
      // `case C(attribute=x)` reads an attribute.
      if (node.named[0] !== undefined) checkAttributeName(nameOf(node.named[0]), node.line, bindings, found);
      break;
    case "case_pattern":
    case "class_pattern":
      checkPositions(node, bindings, found);
      for (const child of node.named) {
        if (child.type === "dotted_name") {
          for (const part of child.named.slice(1)) checkAttributeName(nameOf(part), node.line, bindings, found);
        }
      }
      break;
    case "call":
      checkTemplate(node, values, found);
      checkCopiedAttributes(node, values, found);
      break;
    case "string":
    case "concatenated_string":
      // A key like "__globals__" is of use only where one has got at a namespace.
      if (escapeRule(values.text(node) ?? "") !== undefined) {
        found(
          { pattern: "unlisted-text", level: "LOW", reason: "names an inner attribute of Python as text" },
          node.line,
        );
      }
      break;
  }
}

/** What an attribute of this name is good for, if that is getting out. */
export function escapeRule(attribute: string): Rule | undefined {
  const name = attribute.normalize("NFKC");
  if (!ESCAPES.has(name)) return undefined;
  return {
    pattern: "escape",
    level: MILD_ESCAPES.has(name) ? "MEDIUM" : "CRITICAL",
    reason: `reaches into the interpreter by ${name}`,
  };
}

function isEscape(node: SyntaxNode): boolean {
  const name = node.type === "attribute" ? node.part("attribute")! : node;
  return escapeRule(nameOf(name)) !== undefined;
}

function checkModule(module: string, line: number, found: Found): void {
  if (Object.hasOwn(PURE_MODULES, module) || lookUp(module) !== undefined) return;
  found({ pattern: "import", level: "LOW", reason: `imports ${module}, which is not known to be harmless` }, line);
}

function checkFromImport(node: SyntaxNode, found: Found): void {
  const module = moduleOf(node);
  const pure = Object.hasOwn(PURE_MODULES, module) ? PURE_MODULES[module] : undefined;
  if (pure === undefined) {
    checkModule(module, node.line, found);
    return;
  }
  const names = node
    .parts("name")
    .map((part) => dottedName(part.type === "aliased_import" ? part.part("name")! : part));
  const isListed = names.length > 0 && names.every((name) => pure.has(name));
  const isSubmodule = names.every((name) => pure.has(name) || Object.hasOwn(PURE_MODULES, `${module}.${name}`));
  if (!isListed && !(isSubmodule && names.length > 0)) {
    found(
      { pattern: "import", level: "LOW", reason: `imports from ${module} what is not known to be harmless` },
      node.line,
    );
  }
}

function checkName(node: SyntaxNode, bindings: Bindings, found: Found): void {
  const parent = node.parent;
  if (node.field === "attribute" || parent?.type === "dotted_name" || parent?.type === "aliased_import") return;
  if (parent?.type === "keyword_argument" && node.field === "name") return;
  if (parent?.type === "keyword_pattern" && parent.named[0] === node) return;
  const name = nameOf(node);
  const isDunder = name.startsWith("__") && name.endsWith("__");
  if (isDunder && !PURE_DUNDERS.has(name)) {
    const rule = escapeRule(name);
    const reason = `uses ${name}, which is not known to be harmless`;
    found(rule ?? { pattern: "unlisted-name", level: "LOW", reason }, node.line);
    return;
  }
  const way = escapeRule(name);
  if (way !== undefined) {
    found(way, node.line);
    return;
  }
  if (name === "type" && !isQuestionOfType(node, bindings)) {
    found({ pattern: "unlisted-name", level: "LOW", reason: "uses type in a way that can make classes" }, node.line);
    return;
  }
  const bound = bindings.names.get(name);
  const isModule = bound?.some(
    (binding) => binding.kind === "import" && Object.hasOwn(PURE_MODULES, binding.qualified),
  );
  if (isModule && !(parent?.type === "attribute" && node.field === "object")) {
    found(
      { pattern: "module-as-value", level: "LOW", reason: `hands the module ${name} around as a value` },
      node.line,
    );
    return;
  }
  if (bound !== undefined || PURE_BUILTINS.has(name) || isDunder) return;
  found(
    { pattern: "unlisted-name", level: "LOW", reason: `uses ${name}, which is not known to be harmless` },
    node.line,
  );
}

function checkAttribute(node: SyntaxNode, bindings: Bindings, values: Values, found: Found): void {
  const object = node.part("object")!;
  const name = nameOf(node.part("attribute")!);
  if (object.type === "identifier") {
    const imports = (bindings.names.get(nameOf(object)) ?? []).filter((binding) => binding.kind === "import");
    const modules = imports.filter((binding) => Object.hasOwn(PURE_MODULES, binding.qualified));
    if (modules.length > 0) {
      const isListed = modules.every(({ qualified }) => {
        // `import collections.abc` binds collections; the submodule's own names are checked one attribute further.
        return (
          PURE_MODULES[qualified]!.has(name) || (isInner(node) && Object.hasOwn(PURE_MODULES, `${qualified}.${name}`))
        );
      });
      if (isListed && !NEVER_PURE.has(name)) return;
      found(
        {
          pattern: "unlisted-name",
          level: "LOW",
          reason: `uses ${node.text.slice(0, 64)}, which is not known to be harmless`,
        },
        node.line,
      );
      return;
    }
  }
  for (const reference of values.references(object)) {
    const pure = Object.hasOwn(PURE_MODULES, reference.name) ? PURE_MODULES[reference.name] : undefined;
    if (pure !== undefined && !pure.has(name)) {
      found({ pattern: "unlisted-name", level: "LOW", reason: `uses ${reference.name}.${name}` }, node.line);
    }
  }
  // "…".format(…) is looked at with its template.
  if (name === "format" && node.field === "function") return;
  checkAttributeName(name, node.line, bindings, found);
}

function isInner(node: SyntaxNode): boolean {
  return node.parent?.type === "attribute" && node.field === "object";
}

function checkAttributeName(name: string, line: number, bindings: Bindings, found: Found): void {
  const way = escapeRule(name);
  if (way !== undefined) {
    found(way, line);
    return;
  }
  if (/^(?:buffer|raw|detach)$/.test(name)) {
    const level = name === "buffer" ? "LOW" : "MEDIUM";
    found({ pattern: "unwrapped-stream", level, reason: `takes the file out of a stream by .${name}` }, line);
    return;
  }
  if (PURE_DUNDERS.has(name)) return;
  const isDunder = name.startsWith("__") && name.endsWith("__");
  const isOwn = bindings.attributes.has(name) && !isDunder && !/^(?:gi|cr|ag|f|tb|co|func|im)_/.test(name);
  if ((PURE_ATTRIBUTES.has(name) || isOwn) && !NEVER_PURE.has(name)) return;
  found(
    { pattern: "unlisted-attribute", level: "LOW", reason: `uses .${name}, which is not known to be harmless` },
    line,
  );
}

/** "{0.name}".format(x) reads attributes; what a template holds must be known. */
function checkTemplate(call: SyntaxNode, values: Values, found: Found): void {
  const callee = call.part("function");
  if (callee?.type !== "attribute" || nameOf(callee.part("attribute")!) !== "format") return;
  const object = callee.part("object")!;
  const template = object.type === "string" || object.type === "concatenated_string" ? values.text(object) : undefined;
  if (template !== undefined && !/\{[^{}]*[.[]\s*[^\d{}]/.test(template.replace(/:[^{}]*/g, ""))) return;
  found({ pattern: "template", level: "LOW", reason: "formats with a template that may read attributes" }, call.line);
}

/**
 * type(x) as a question: compared, printed, or asked for its name. Otherwise it can be called again: type(int) is the
 * class of all classes, and makes some with attributes that are given as text.
 */
function isQuestionOfType(node: SyntaxNode, bindings: Bindings): boolean {
  const call = node.parent;
  if (node.parent?.type === "type" || call?.type !== "call" || node.field !== "function")
    return node.parent?.type === "type";
  const given = call.part("arguments")?.named ?? [];
  if (given.length !== 1 || /splat|keyword/.test(given[0]!.type)) return false;
  const use = call.parent;
  if (use?.type === "comparison_operator" || use?.type === "interpolation") return true;
  if (use?.type === "attribute") return use.part("attribute")?.text === "__name__";
  const callee = use?.type === "argument_list" ? use.parent?.part("function")?.text : undefined;
  return /^(?:print|str|repr)$/.test(callee ?? "") && !bindings.names.has(callee!);
}

/** `case C(x)` reads the attributes that C names as text; which ones is known of the builtin classes only. */
function checkPositions(node: SyntaxNode, bindings: Bindings, found: Found): void {
  if (node.type !== "class_pattern") return;
  const [name, ...given] = node.named;
  const isPositional = given.some((pattern) => pattern.named[0]?.type !== "keyword_pattern");
  const isBuiltin =
    /^(?:int|str|float|bool|bytes|list|dict|tuple|set)$/.test(name?.text ?? "") && !bindings.names.has(name!.text);
  if (isPositional && !isBuiltin) {
    found(
      { pattern: "unlisted-syntax", level: "LOW", reason: "matches the attributes that a class names itself" },
      node.line,
    );
  }
}

/** functools.wraps copies the attributes that it is told as text. */
function checkCopiedAttributes(call: SyntaxNode, values: Values, found: Found): void {
  const names = call.part("arguments")?.named ?? [];
  const isTold = names.some((argument) => /^(?:assigned|updated)$/.test(argument.part("name")?.text ?? ""));
  const isSpread = names.some((argument) => argument.type === "dictionary_splat") || names.length > 1;
  const callee = call.part("function");
  const isWraps =
    isSpread && callee !== undefined && values.references(callee).some(({ name }) => name === "functools.wraps");
  if (isTold || isWraps) {
    found({ pattern: "unlisted-name", level: "LOW", reason: "copies attributes that are named as text" }, call.line);
  }
}
