import type { Rule } from "../findings.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { GOVERNING_VARIABLES } from "./commands.ts";
import type { Words } from "./words.ts";

/**
 * What shell code may be made of and still be SAFE: allow lists. Whatever is not named here is at least LOW.
 * Programs that could read or write a file by an option are here only with the options that do not.
 */
const PURE_COMMANDS: Readonly<Record<string, RegExp>> = {
  echo: /^/,
  // Only the format matters: see below.
  printf: /^/,
  true: /^/,
  false: /^/,
  ":": /^/,
  pwd: /^-[LP]$/,
  exit: /^/,
  return: /^/,
  break: /^/,
  continue: /^/,
  shift: /^\d+$/,
  set: /^(?:[-+][euxo]+|pipefail|errexit|nounset)$/,
  seq: /^(?:-?[\d.]+|-w|-s.)$/,
  expr: /^(?:-?\d+|[-+*/%=<>])$/,
  sleep: /^[\d.]+$/,
  basename: /^/,
  dirname: /^/,
  date: /^(?:\+.*|-u)$/s,
  sort: /^-[bdfghinrsuVM]+$/,
  uniq: /^-[cdiu]+$/,
  wc: /^-[clmwL]+$/,
  head: /^(?:-[nc]?\d*|\d+)$/,
  tail: /^(?:-[nc]?\d*|\d+)$/,
  tr: /^/,
  rev: /^$/,
  cut: /^-[dfcb].*$/s,
};

const PURE_NODES: ReadonlySet<string> = new Set(
  `program command command_name word string string_content raw_string number concatenation simple_expansion expansion
   variable_name special_variable_name variable_assignment pipeline list if_statement elif_clause else_clause
   while_statement for_statement c_style_for_statement do_group case_statement case_item compound_statement
   function_definition test_command binary_expression unary_expression parenthesized_expression postfix_expression
   test_operator negated_command arithmetic_expansion brace_expression extglob_pattern file_redirect file_descriptor
   redirected_statement comment declaration_command subshell`.split(/\s+/),
);

type Found = (rule: Rule, line: number) => void;

/** Whether a command with these words is on the list. */
export function isPureCommand(name: string, given: readonly string[]): boolean {
  const allowed = Object.hasOwn(PURE_COMMANDS, name) ? PURE_COMMANDS[name] : undefined;
  // `printf -v` and `set` alone are something else; so may be a format that is not known.
  if (name === "printf" && !/^[^-\uFFFC]/.test(given[0] ?? "")) return false;
  if (name === "set" && given.length === 0) return false;
  return allowed !== undefined && given.every((word) => allowed.test(word));
}

/** Finds what is not on the allow lists of SAFE code; commands and redirections are looked at by others. */
export function checkPurity(node: SyntaxNode, words: Words, found: Found): void {
  if (!node.isNamed || node.isError) return;
  if (!PURE_NODES.has(node.type)) {
    found(unlisted(`uses ${node.type.replaceAll("_", " ")}, which is not known to be harmless`), node.line);
    return;
  }
  switch (node.type) {
    case "simple_expansion":
    case "expansion":
      checkExpansion(node, words, found);
      break;
    case "variable_assignment":
      checkAssignment(node, found);
      break;
    case "declaration_command":
      if (!/^(?:local|readonly|declare|typeset)\b/.test(node.text))
        found(unlisted("exports variables to other programs"), node.line);
      else if (node.named.some((child) => child.type !== "variable_assignment" && child.type !== "variable_name")) {
        found(unlisted("declares variables with options"), node.line);
      }
      break;
    case "word":
      if (/[*?[]/.test(node.text.replace(/\\./g, "")) && isArgument(node))
        found(unlisted("lists files by a pattern"), node.line);
      if (node.text.startsWith("~")) found(unlisted("names a home directory"), node.line);
      // In `for ((…))` the grammar calls variables words.
      if (/^[A-Za-z_]\w*$/.test(node.text) && /_expression$/.test(node.parent?.type ?? ""))
        checkArithmetic(node, words, found);
      break;
    case "variable_name":
      checkArithmetic(node, words, found);
      break;
    case "test_command":
      checkTest(node, words, found);
      break;
  }
}

/** What the text itself says against SAFE, whatever the tree says: the grammar is not the shell. */
export function checkText(root: SyntaxNode, found: Found): void {
  const text = root.text;
  if (/`|\$\((?!\()|[<>]\(|\$\{[^}]*[@!]|<<|\beval\b/.test(text))
    found(unlisted("may run a command inside of a word"), root.line);
}

function unlisted(reason: string): Rule {
  return { pattern: "unlisted", level: "LOW", reason };
}

function isArgument(node: SyntaxNode): boolean {
  return node.field === "argument" || node.parent?.type === "concatenation" || node.parent?.type === "for_statement";
}

function checkExpansion(node: SyntaxNode, words: Words, found: Found): void {
  const inner = node.named[0];
  const operators = node.parts("operator").map((operator) => operator.text);
  if (operators.includes("@") && operators.some((operator) => /^[PAa]$/.test(operator))) {
    found(
      { pattern: "dynamic-code", level: "HIGH", reason: "expands a value as a prompt, which runs what is in it" },
      node.line,
    );
    return;
  }
  if (!/^(?:\$[\w?#@*!$-]|\$\w+|\$\{#?\w+\})$/.test(node.text)) {
    found(unlisted("expands a variable in a way that is not known to be harmless"), node.line);
    return;
  }
  if (inner?.type !== "variable_name" || /^\d+$/.test(inner.text) || words.isOwn(inner.text)) return;
  const isSecret = /(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE|CREDENTIAL)/i.test(inner.text);
  found(
    isSecret
      ? { pattern: "environment", level: "MEDIUM", reason: `reads ${inner.text} of the environment` }
      : { pattern: "environment", level: "LOW", reason: `reads ${inner.text} of the environment` },
    node.line,
  );
}

/** Tests look variables up (-v), and some evaluate text as arithmetic: in both, an index can run a command. */
function checkTest(node: SyntaxNode, words: Words, found: Found): void {
  if (/\s-[vRaokNGOLSbcdefghprstuwx]\s/.test(node.text)) found(unlisted("asks for files or variables"), node.line);
  const isDouble = node.text.startsWith("[[");
  const isComparing = isDouble && /\s-(?:eq|ne|lt|le|gt|ge)\s/.test(node.text);
  const expressions = node.named;
  if (!isDouble && !(expressions.length === 1 && /^(?:binary|unary)_expression$/.test(expressions[0]!.type))) {
    found(unlisted("tests something that may be an operator"), node.line);
  }
  for (const inner of node.all()) {
    const isName = inner.type === "variable_name" || (inner.type === "word" && /^[A-Za-z_]\w*$/.test(inner.text));
    if (isName && isComparing && !words.isNumeric(inner.text))
      found(unlisted("compares what may not be a number"), node.line);
    // In [ … ] an expansion without quotes may become several words, and operators.
    const isSplit = !isDouble && /expansion$/.test(inner.type) && inner.parent?.type !== "string";
    const name = isSplit ? inner.named[0] : undefined;
    if (name?.type === "variable_name" && !words.isNumeric(name.text))
      found(unlisted("tests without quotes"), node.line);
  }
}

function checkAssignment(node: SyntaxNode, found: Found): void {
  const name = node.part("name");
  if (name === undefined) return;
  if (name.type !== "variable_name") {
    found(unlisted("sets an element of an array"), node.line);
    return;
  }
  const governing = Object.hasOwn(GOVERNING_VARIABLES, name.text) ? GOVERNING_VARIABLES[name.text] : undefined;
  if (governing !== undefined) found(governing, node.line);
  else if (/^(?:BASH|LD_|GIT_|PYTHON|NODE_|DYLD_)/.test(name.text)) found(unlisted(`sets ${name.text}`), node.line);
}

/** In arithmetic, the value of a variable is itself evaluated, with commands in it. */
function checkArithmetic(node: SyntaxNode, words: Words, found: Found): void {
  const place = node.around(
    "arithmetic_expansion",
    "c_style_for_statement",
    "compound_statement",
    "command",
    "do_group",
    "string",
    "test_command",
  );
  const isArithmetic =
    place?.type === "arithmetic_expansion" || place?.type === "c_style_for_statement" || isDoubleParenthesis(place);
  if (!isArithmetic || node.parent?.type === "variable_assignment") return;
  if (!words.isNumeric(node.text))
    found(unlisted(`calculates with ${node.text}, which may not be a number`), node.line);
}

function isDoubleParenthesis(node: SyntaxNode | undefined): boolean {
  return node?.type === "compound_statement" && node.text.startsWith("((");
}
