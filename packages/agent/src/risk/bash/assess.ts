import { type Findings, type Rule, rule } from "../findings.ts";
import { pathRule, secretIn } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { assessWords } from "./command.ts";
import { ENVIRONMENT, GOVERNING_VARIABLES } from "./commands.ts";
import { collectVariables, lineBreaks, type Variables, Words } from "./words.ts";

/** Looks at each node of a shell script once and tells what is to be worried about. */
export function assessBash(root: SyntaxNode, findings: Findings): void {
  const all = [...root.all()];
  const variables = collectVariables(root);
  const words = new Words(variables);
  const definitions = all.filter((node) => node.type === "function_definition");
  const functions = new Set(definitions.map((node) => node.part("name")?.text ?? ""));
  const seen = new Set<string>();
  const found = (rule: Rule, line: number): void => {
    seen.add(rule.pattern);
    findings.add(rule, line);
  };
  for (const node of definitions) assessFunction(node, found);
  for (const node of all) {
    const { line, text, type } = node;
    // Where the grammar reads on after the end of a line, the shell does not: each line is a command.
    const breaks = STATEMENT.test(type) ? lineBreaks(node) : [];
    if (breaks.length > 0) found(rule("MEDIUM", "unparsable", "cannot be parsed here"), line);
    for (const [index, from] of type === "command" ? [node, ...breaks].entries() : []) {
      const end = breaks[index]?.start ?? Number.POSITIVE_INFINITY;
      const own = words.ofCommand(node).filter((word) => word.node.start >= from.start && word.node.start < end);
      assessWords(own, node, { words, functions, findings, found });
    }
    if (type === "file_redirect") assessRedirect(node, words, found);
    if (/expansion$/.test(type)) assessExpansion(node, variables, found);
    const variable = type === "variable_assignment" ? (node.part("name")?.text ?? "") : "";
    if (Object.hasOwn(GOVERNING_VARIABLES, variable)) found(GOVERNING_VARIABLES[variable]!, line);
    // "export" and "declare -p" by themselves print all variables.
    if (type === "declaration_command" && /^(?:export|declare|typeset)(?:\s+-p)?\s*$/.test(text))
      found(ENVIRONMENT, line);
    if (type === "command_name" && /^[^{}\s]*,[^{}\s]*\}$|^\{.*,/.test(text.slice(0, 512))) {
      // `{rm,-rf,/}` is a command with its arguments.
      found(rule("HIGH", "hidden-command", "writes a command as a list in braces"), line);
      findings.nested.push({ code: text.replace(/[{},]/g, " "), language: "bash", line });
    }
    const isText = /^(?:word|(?:raw_|ansi_c_)?string|concatenation|heredoc_body)$/.test(type);
    const named = isText && node.parent?.type !== "concatenation" ? words.text(node) : "";
    const secret = secretIn(named);
    if (secret !== undefined) found(secret, line);
    if (/\/dev\/(?:tcp|udp)\//.test(named)) found(CONNECTION, line);
  }
  if (seen.has("network") && seen.has("makes-executable"))
    found(rule("HIGH", "remote-code", "fetches a file and makes it a program"), root.line);
}

const STATEMENT = /^(?:command|file_redirect|unset_command|variable_assignment|declaration_command)$/;
const CONNECTION = rule("CRITICAL", "reverse-shell", "connects to another machine through the shell itself");

type Found = (rule: Rule, line: number) => void;

function assessRedirect(node: SyntaxNode, words: Words, found: Found): void {
  const destination = node.part("destination") ?? node.named.at(-1);
  const operator = node.children.find((child) => /^[&<>|]+$/.test(child.type))?.type ?? ">";
  if (destination === undefined) return;
  const text = words.text(destination);
  const isDescriptor = operator.endsWith("&") && /^\d+$|^-$/.test(text);
  if (isDescriptor || text === "/dev/null" || text === "/dev/stderr" || text === "/dev/stdout") return;
  found(pathRule(text, operator === "<" || operator === "<&" ? "read" : "write"), node.line);
}

const SECRET_NAME = /(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE|CREDENTIAL)/i;

function assessExpansion(node: SyntaxNode, own: Variables, found: Found): void {
  const operators = node.parts("operator").map((operator) => operator.text);
  if (operators.includes("@") && operators.some((operator) => /^[PAa]$/.test(operator)))
    found(rule("HIGH", "dynamic-code", "expands a value as a prompt, which runs what is in it"), node.line);
  const name = node.named[0]?.type === "variable_name" ? node.named[0].text : "1";
  if (/^\d+$/.test(name) || own.has(name)) return;
  found(rule(SECRET_NAME.test(name) ? "MEDIUM" : "LOW", "environment", `reads ${name} of the environment`), node.line);
}

/** A function that calls itself twice, or in the background, fills the machine with processes. */
function assessFunction(node: SyntaxNode, found: Found): void {
  const name = node.part("name")?.text;
  const body = node.part("body");
  if (name === undefined || body === undefined) return;
  const calls = [...body.all()].filter((inner) => inner.type === "command_name" && inner.text === name).slice(0, 100);
  const isMultiplied = calls.some((call) => {
    const command = call.parent;
    const siblings = command?.parent?.children ?? [];
    const following = siblings[siblings.indexOf(command!) + 1];
    return command?.parent?.type === "pipeline" || following?.type === "&";
  });
  if (isMultiplied) found(rule("CRITICAL", "fork-bomb", "makes processes without end"), node.line);
}
