import type { Findings, Rule } from "../findings.ts";
import { pathRule, secretIn, UNKNOWN } from "../places.ts";
import { shellWord } from "../shell-word.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { collectBindings, moduleName } from "./bindings.ts";
import { CODE_CALLS, PATH_CALLS, SHELL_CALLS, TIMERS } from "./names.ts";
import { Numbers } from "./numeric.ts";
import { type Code, checkLoaded, checkPurity, isUse } from "./purity.ts";
import { argumentsOf, isLoader, lookUp, type Reference, Values } from "./values.ts";

/** Looks at each node of a JavaScript or TypeScript program once and tells what keeps it from being SAFE. */
export function assessJavaScript(root: SyntaxNode, findings: Findings): void {
  const bindings = collectBindings(root);
  const values = new Values(bindings);
  const seen = new Set<string>();
  const found = (rule: Rule, line: number): void => {
    seen.add(rule.pattern);
    findings.add(rule, line);
  };
  const code: Code = { bindings, values, numbers: new Numbers(bindings), found };

  for (const node of root.all()) {
    checkPurity(node, code);
    switch (node.type) {
      case "import_statement":
      case "export_statement": {
        const source = node.part("source");
        if (source !== undefined) loads(values.text(source) ?? "", node.line, code);
        break;
      }
      case "identifier":
      case "shorthand_property_identifier":
        if (isUse(node)) mentions(node, code, seen);
        break;
      case "member_expression":
      case "subscript_expression":
        mentions(node, code, seen);
        break;
      case "call_expression":
      case "new_expression":
        mentions(node, code, seen);
        assessCall(node, code, findings);
        break;
      case "meta_property":
        mentions(node, code, seen);
        break;
      case "expression_statement":
        assessSigns(node, found);
        break;
      case "string":
      case "template_string":
      case "binary_expression": {
        const secret = node.parent?.type === "binary_expression" ? undefined : secretIn(values.text(node) ?? "");
        if (secret !== undefined) found(secret, node.line);
        break;
      }
    }
  }
  assessText(root, found);
  combinations(root, seen, found);
}

type Found = (rule: Rule, line: number) => void;

const HIDDEN_UNKNOWN: Rule = {
  pattern: "hidden-access",
  level: "HIGH",
  reason: "takes something by a name that is not known before",
};

function mentions(node: SyntaxNode, code: Code, seen: Set<string>): void {
  for (const reference of code.values.references(node)) {
    mention(reference, node.line, code.found);
    if (/^(?:net|tls):/.test(reference.name)) seen.add("raw-connection");
    if (reference.name === "process.env" && !isObjectOf(node)) seen.add("whole-environment");
    if (/(?:^|\.)(?:process|globalThis|global|window|self|child_process:|fs:)(?:\[\]|\.\[\])$/.test(reference.name)) {
      code.found(HIDDEN_UNKNOWN, node.line);
    }
    if (reference.name === "Function" && isConstructorAccess(node)) {
      code.found(
        { pattern: "escape", level: "CRITICAL", reason: "reaches the maker of functions through a value" },
        node.line,
      );
    }
  }
}

function mention(reference: Reference, line: number, found: Found): void {
  const rule = lookUp(reference.name);
  if (rule === undefined) return;
  found(rule, line);
  if (reference.isHidden && rule.level !== "LOW") {
    const reason = `reaches ${reference.name} in a way that hides the name`;
    found({ pattern: "hidden-access", level: "CRITICAL", reason }, line);
  }
}

function isObjectOf(node: SyntaxNode): boolean {
  return node.field === "object" && /^(?:member|subscript)_expression$/.test(node.parent?.type ?? "");
}

function isConstructorAccess(node: SyntaxNode): boolean {
  return node.type === "subscript_expression" || node.part("property")?.text === "constructor";
}

/** A module by its specifier. */
function loads(specifier: string, line: number, code: Code): void {
  if (/^data:/i.test(specifier)) {
    code.found({ pattern: "obfuscated-code", level: "CRITICAL", reason: "imports code that is written as data" }, line);
  } else if (/^https?:/i.test(specifier)) {
    code.found({ pattern: "remote-code", level: "CRITICAL", reason: "imports code over the network" }, line);
  } else {
    const rule = lookUp(moduleName(specifier));
    if (rule !== undefined) code.found(rule, line);
    else checkLoaded(moduleName(specifier), line, code);
  }
}

function assessCall(call: SyntaxNode, code: Code, findings: Findings): void {
  const callee = call.part("function") ?? call.part("constructor");
  if (callee === undefined) return;
  const { values, found } = code;
  const given = argumentsOf(call);
  const [first] = given;
  const { line } = call;
  for (const reference of values.references(callee)) {
    const { name } = reference;
    if (isLoader(name)) assessLoading(call, first, code);
    if (Object.hasOwn(CODE_CALLS, name)) {
      const text = CODE_CALLS[name] === "last" ? given.at(-1) : first;
      assessCode(call, text, code, findings);
    }
    if (TIMERS.has(name) && first !== undefined && values.text(first) !== undefined) {
      found({ pattern: "dynamic-code", level: "HIGH", reason: "gives a timer text to run" }, line);
    }
    if (name === "worker_threads:.Worker" && given.some((argument) => /\beval\s*:/.test(argument.text.slice(0, 256)))) {
      found({ pattern: "dynamic-code", level: "HIGH", reason: "runs text in a thread" }, line);
    }
    if (SHELL_CALLS.has(name)) assessShell(call, name, given, code, findings);
    if (/^(?:net|tls):\.(?:connect|createConnection)$/.test(name) && values.text(first ?? call)?.endsWith(".sock")) {
      found({ pattern: "secret-place", level: "HIGH", reason: "connects to a socket of the machine" }, line);
    }
    const path = Object.hasOwn(PATH_CALLS, name) ? PATH_CALLS[name] : undefined;
    const argument = path === undefined ? undefined : given[path.argument];
    if (path !== undefined && argument !== undefined) found(pathRule(values.text(argument) ?? "", path.use), line);
    if (
      /^(?:fs:|fs\/promises:|fs:\.promises|fs-extra:)\.(?:rm|rmSync|rmdir|rmdirSync|remove|removeSync|emptyDir)$/.test(
        name,
      )
    ) {
      const isRecursive =
        name.startsWith("fs-extra:") ||
        given.some((option) => /\brecursive\s*:\s*true/.test(option.text.slice(0, 256)));
      if (isRecursive) {
        found(
          { pattern: "recursive-deletion", level: "HIGH", reason: "deletes directories with everything in them" },
          line,
        );
      }
    }
  }
}

function assessLoading(call: SyntaxNode, specifier: SyntaxNode | undefined, code: Code): void {
  const text = specifier === undefined ? undefined : code.values.text(specifier);
  if (specifier === undefined || text === undefined || text.includes(UNKNOWN)) {
    code.found(
      { pattern: "dynamic-import", level: "HIGH", reason: "loads a module whose name is not known before" },
      call.line,
    );
    return;
  }
  loads(text, call.line, code);
}

/** eval, Function, vm. */
function assessCode(call: SyntaxNode, text: SyntaxNode | undefined, code: Code, findings: Findings): void {
  const { values, found } = code;
  const { line } = call;
  if (text === undefined) return;
  if (values.isDecoded(text)) {
    found({ pattern: "obfuscated-code", level: "CRITICAL", reason: "runs code that is hidden by an encoding" }, line);
  } else if (values.isRemote(text) || isInResponse(call, values)) {
    found({ pattern: "remote-code", level: "CRITICAL", reason: "runs code that comes over the network" }, line);
  }
  found({ pattern: "dynamic-code", level: "HIGH", reason: "runs code that is made while running" }, line);
  const plain = values.text(text);
  if (plain !== undefined) findings.nested.push({ code: plain, language: "javascript", line });
}

/** fetch(…).then((text) => eval(text)) */
function isInResponse(call: SyntaxNode, values: Values): boolean {
  let outer = call.around("call_expression");
  for (let depth = 0; outer !== undefined && depth < 8; depth++, outer = outer.around("call_expression")) {
    const callee = outer.part("function");
    if (callee !== undefined && values.isRemote(callee)) return true;
  }
  return false;
}

function assessShell(
  call: SyntaxNode,
  name: string,
  given: readonly SyntaxNode[],
  code: Code,
  findings: Findings,
): void {
  const [command, list] = given;
  if (command === undefined) return;
  if (code.values.isDecoded(command)) {
    code.found(
      { pattern: "obfuscated-code", level: "CRITICAL", reason: "runs a command that is hidden by an encoding" },
      call.line,
    );
  }
  const text = code.values.text(command);
  if (text === undefined) return;
  const isLine = /\.exec(?:Sync|aCommand)?$/.test(name);
  const line = isLine ? text : [text, ...code.values.words(list)].map(shellWord).join(" ");
  findings.nested.push({ code: line, language: "bash", line: call.line });
}

const LITERAL_TEXT = new Set(["string_fragment", "comment", "regex_pattern"]);

/** What the text shows that the tree does not. */
function assessText(root: SyntaxNode, found: Found): void {
  const text = root.text;
  if (text.includes("<!--") || /^\s*-->/m.test(text)) {
    const marks = /<!--|-->/g;
    let quoted = 0;
    for (const node of root.all()) if (LITERAL_TEXT.has(node.type)) quoted += node.text.match(marks)?.length ?? 0;
    if (quoted < (text.match(marks)?.length ?? 0)) {
      found(
        { pattern: "html-comment", level: "MEDIUM", reason: "has comments that some interpreters read as code" },
        root.line,
      );
    }
  }
}

/** Code can be written with six characters, ()[]!+, which build the names of everything. */
function assessSigns(statement: SyntaxNode, found: Found): void {
  const dense = statement.text.replace(/\s/g, "");
  const others = dense.replace(/[[\](){}!+]/g, "");
  if (dense.length >= 40 && others.length < dense.length / 20) {
    found(
      { pattern: "obfuscated-code", level: "HIGH", reason: "is written with brackets and signs only" },
      statement.line,
    );
  }
}

/** What is worse together than each by itself. */
function combinations(root: SyntaxNode, seen: ReadonlySet<string>, found: Found): void {
  if (seen.has("raw-connection") && seen.has("subprocess")) {
    found({ pattern: "reverse-shell", level: "CRITICAL", reason: "connects a program to another machine" }, root.line);
  }
  if (seen.has("whole-environment") && seen.has("network")) {
    found(
      { pattern: "exfiltration", level: "HIGH", reason: "reads the whole environment and uses the network" },
      root.line,
    );
  }
}
