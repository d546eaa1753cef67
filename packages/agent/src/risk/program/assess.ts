import { type Findings, type Rule, rule } from "../findings.ts";
import { pathRule, secretIn, UNKNOWN } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { shellWord } from "../text-codes.ts";
import type { Dialect, Expression, Reference } from "./expression.ts";
import { Values } from "./values.ts";

/** A program under assessment. */
export interface Program {
  readonly dialect: Dialect;
  readonly values: Values;
  readonly findings: Findings;
  /** The patterns that were found so far. */
  readonly seen: Set<string>;
  readonly found: (rule: Rule, line: number) => void;
}

/** What a language says of a node besides what all have in common. */
export type Look = (node: SyntaxNode, expression: Expression, program: Program) => void;

export const DECODED = rule("CRITICAL", "obfuscated-code", "runs code that is hidden by an encoding");
export const REMOTE = rule("CRITICAL", "remote-code", "runs code that comes over the network");
export const DYNAMIC = rule("HIGH", "dynamic-code", "runs code that is made while running");
const DYNAMIC_IMPORT = rule("HIGH", "dynamic-import", "loads a module whose name is not known before");

/** Looks at each node of a program once and tells what is to be worried about. */
export function assessProgram(root: SyntaxNode, findings: Findings, dialect: Dialect, look: Look): Program {
  const values = new Values(dialect, dialect.bindings(root));
  const seen = new Set<string>();
  const found = (found: Rule, line: number): void => {
    seen.add(found.pattern);
    findings.add(found, line);
  };
  const program: Program = { dialect, values, findings, seen, found };
  for (const node of root.all()) {
    if (!node.isNamed) continue;
    for (const name of dialect.imports(node)) mention({ name, isHidden: false }, node.line, program);
    const expression = dialect.read(node);
    if (/^(?:name|member|item|call|known)$/.test(expression.kind)) {
      for (const reference of values.references(node)) mention(reference, node.line, program);
    }
    if (expression.kind === "call") assessCall(node, expression, program);
    if (isWholeText(node, expression, dialect)) {
      const secret = secretIn(values.text(node) ?? "");
      if (secret !== undefined) found(secret, node.line);
    }
    look(node, expression, program);
  }
  return program;
}

/** A name that stands for something, used in any way. */
function mention({ name, isHidden }: Reference, line: number, { dialect, found }: Program): void {
  const known = dialect.lookUp(name);
  if (known === undefined) return;
  found(known, line);
  if (isHidden && known.level !== "LOW") {
    found(rule("CRITICAL", "hidden-access", `reaches ${name} in a way that hides the name`), line);
  }
}

function isWholeText(node: SyntaxNode, { kind }: Expression, dialect: Dialect): boolean {
  if (kind !== "text" && kind !== "sum") return false;
  const outer = node.parent === undefined ? undefined : dialect.read(node.parent).kind;
  return outer !== "text" && outer !== "sum";
}

function assessCall(node: SyntaxNode, call: Expression & { readonly kind: "call" }, program: Program): void {
  const { dialect, found, values } = program;
  const { callee, given } = call;
  const { line } = node;
  for (const { name } of values.references(callee)) {
    const code = Object.hasOwn(dialect.code, name) ? dialect.code[name] : undefined;
    if (code !== undefined) assessCode(node, code === "last" ? given.at(-1) : given[0], program);
    const shell = Object.hasOwn(dialect.shells, name) ? dialect.shells[name] : undefined;
    if (shell !== undefined) assessShell(node, shell, given, program);
    const uses = Object.hasOwn(dialect.paths, name) ? dialect.paths[name]! : [];
    for (const [index, use] of uses.entries()) {
      const path = given[index];
      if (use !== undefined && path !== undefined) found(pathRule(values.text(path) ?? "", use), line);
    }
    for (const [called, telling, rated] of dialect.telling) {
      if (called.test(name) && telling.test(node.part("arguments")?.text.slice(0, 512) ?? "")) found(rated, line);
    }
    if (dialect.isLoader(name)) {
      const module = values.text(given[0]);
      if (module === undefined || module.includes(UNKNOWN)) found(DYNAMIC_IMPORT, line);
    }
  }
}

/** eval, exec, Function and what else runs its argument. */
function assessCode(node: SyntaxNode, code: SyntaxNode | undefined, program: Program): void {
  const { dialect, findings, found, values } = program;
  if (code !== undefined && values.isDecoded(code)) found(DECODED, node.line);
  else if ((code !== undefined && values.isRemote(code)) || isInResponse(node, program)) found(REMOTE, node.line);
  found(DYNAMIC, node.line);
  const text = values.text(code);
  if (text !== undefined) findings.nested.push({ code: text, language: dialect.language, line: node.line });
}

/** fetch(…).then((text) => eval(text)) */
function isInResponse(node: SyntaxNode, { dialect, values }: Program): boolean {
  let outer = node.parent;
  for (let calls = 0; outer !== undefined && calls < 8; outer = outer.parent) {
    const expression = dialect.read(outer);
    if (expression.kind !== "call") continue;
    if (values.isRemote(expression.callee)) return true;
    calls += 1;
  }
  return false;
}

function assessShell(
  node: SyntaxNode,
  kind: "line" | "list" | "words",
  given: readonly SyntaxNode[],
  { findings, found, values }: Program,
): void {
  const [command, list] = given;
  if (command === undefined) return;
  if (values.isDecoded(command)) found(DECODED, node.line);
  const rest = kind === "words" ? given.slice(1).map((word) => values.text(word) ?? UNKNOWN) : values.list(list);
  const words = values.list(command) ?? [values.text(command) ?? UNKNOWN, ...(kind === "line" ? [] : (rest ?? []))];
  // One text alone is a line for the shell, or a program without arguments: the same.
  const line = words.length === 1 ? words[0]! : words.map(shellWord).join(" ");
  if (line !== UNKNOWN) findings.nested.push({ code: line, language: "bash", line: node.line });
}
