import type { Findings, Rule } from "../findings.ts";
import { pathRule, secretIn } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { assessWords } from "./command.ts";
import { checkPurity, checkText } from "./purity.ts";
import { collectVariables, lineBreaks, Words } from "./words.ts";

/** Looks at each node of a shell script once and tells what keeps it from being SAFE. */
export function assessBash(root: SyntaxNode, findings: Findings): void {
  const words = new Words(collectVariables(root));
  const functions = new Set<string>();
  const seen = new Set<string>();
  const found = (rule: Rule, line: number): void => {
    seen.add(rule.pattern);
    findings.add(rule, line);
  };
  for (const node of root.all()) {
    if (node.type === "function_definition") functions.add(node.part("name")?.text ?? "");
  }

  for (const node of root.all()) {
    checkPurity(node, words, found);
    switch (node.type) {
      case "command":
        for (const command of words.commandsOf(node)) assessWords(command, node, { words, functions, findings, found });
        checkLines(node, found);
        break;
      case "file_redirect":
        assessRedirect(node, words, found);
        checkLines(node, found);
        break;
      case "unset_command":
      case "variable_assignment":
        checkLines(node, found);
        break;
      case "command_name":
        if (/^[^{}\s]*,[^{}\s]*\}$|^\{.*,/.test(node.text.slice(0, 512))) bracedCommand(node, findings, found);
        break;
      case "declaration_command":
        checkLines(node, found);
        // "export" and "declare -p" by themselves print all variables.
        if (/^(?:export|declare|typeset)(?:\s+-p)?$/.test(node.text.trim())) {
          found({ pattern: "environment", level: "MEDIUM", reason: "shows the environment variables" }, node.line);
        }
        break;
      case "function_definition":
        assessFunction(node, found);
        break;
      case "word":
      case "string":
      case "raw_string":
      case "ansi_c_string":
      case "concatenation":
      case "heredoc_body":
        if (node.parent?.type !== "concatenation") assessText(words.text(node), node, found);
        break;
    }
  }
  checkText(root, found);
  combinations(root, seen, found);
}

type Found = (rule: Rule, line: number) => void;

const CONNECTION: Rule = {
  pattern: "reverse-shell",
  level: "CRITICAL",
  reason: "connects to another machine through the shell itself",
};

/** The grammar and the shell disagree about where this ends. */
function checkLines(node: SyntaxNode, found: Found): void {
  if (lineBreaks(node).length > 0)
    found({ pattern: "unparsable", level: "MEDIUM", reason: "cannot be parsed here" }, node.line);
}

/** Places that are named anywhere. */
function assessText(text: string, node: SyntaxNode, found: Found): void {
  const secret = secretIn(text);
  if (secret !== undefined) found(secret, node.line);
  if (/\/dev\/(?:tcp|udp)\//.test(text)) found(CONNECTION, node.line);
}

function assessRedirect(node: SyntaxNode, words: Words, found: Found): void {
  const destination = node.part("destination") ?? node.named.at(-1);
  const operator = node.children.find((child) => /^[&<>|]+$/.test(child.type))?.type ?? ">";
  if (destination === undefined) return;
  const text = words.text(destination);
  const isDescriptor = operator.endsWith("&") && /^\d+$|^-$/.test(text);
  if (isDescriptor || text === "/dev/null" || text === "/dev/stderr" || text === "/dev/stdout") return;
  found(pathRule(text, operator === "<" || operator === "<&" ? "read" : "write"), node.line);
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
  if (isMultiplied)
    found({ pattern: "fork-bomb", level: "CRITICAL", reason: "makes processes without end" }, node.line);
}

/** `{rm,-rf,/}` is a command with its arguments. */
function bracedCommand(node: SyntaxNode, findings: Findings, found: Found): void {
  const parts = node.text.replace(/^\{|\}$/g, "").split(",");
  found({ pattern: "hidden-command", level: "HIGH", reason: "writes a command as a list in braces" }, node.line);
  findings.nested.push({ code: parts.join(" "), language: "bash", line: node.line });
}

/** What is worse together than each by itself. */
function combinations(root: SyntaxNode, seen: ReadonlySet<string>, found: Found): void {
  if (seen.has("network") && seen.has("makes-executable")) {
    found({ pattern: "remote-code", level: "HIGH", reason: "fetches a file and makes it a program" }, root.line);
  }
}
