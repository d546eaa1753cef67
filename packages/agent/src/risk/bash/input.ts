import type { NestedCode } from "../findings.ts";
import { UNKNOWN } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import type { Shell } from "./command.ts";
import type { Word } from "./words.ts";

/** How far a pipeline is followed back. */
const MAX_STAGES = 16;

/** What an interpreter is given to run: `-c code`, a file, a here-document, or what is piped into it. */
export function assessInput(
  language: NestedCode["language"],
  codeOption: RegExp,
  given: readonly Word[],
  node: SyntaxNode,
  shell: Shell,
): void {
  const option = given.findIndex((word) => codeOption.test(word.text));
  const code = option === -1 ? undefined : given[option + 1];
  if (code !== undefined) {
    assessCode([code.node], code.text, language, node, shell);
    return;
  }
  const [file] = given.filter((word) => !word.text.startsWith("-"));
  if (file !== undefined && file.node.type === "process_substitution") {
    assessCode([file.node], UNKNOWN, language, node, shell);
    return;
  }
  const hasFile = file !== undefined && !given.some((word) => word.text === "-s" || word.text === "-");
  if (hasFile || given.some((word) => /^(?:-m|--version|-V|--help|--test|--check)$/.test(word.text))) return;
  const redirected = redirectedText(node, shell);
  if (redirected !== undefined) {
    assessCode([redirected.node], redirected.text, language, node, shell);
    return;
  }
  const sources = pipedFrom(node);
  if (sources.length > 0) assessCode(sources, printed(sources, shell), language, node, shell);
}

function assessCode(
  sources: readonly SyntaxNode[],
  text: string,
  language: NestedCode["language"],
  node: SyntaxNode,
  shell: Shell,
): void {
  const { line } = node;
  const isDecoded = sources.some((source) => shell.words.isDecoded(source));
  const isRemote = sources.some((source) => shell.words.isRemote(source));
  if (isDecoded) {
    shell.found(
      { pattern: "obfuscated-code", level: "CRITICAL", reason: "runs code that is hidden by an encoding" },
      line,
    );
  }
  if (isRemote) {
    shell.found({ pattern: "remote-code", level: "CRITICAL", reason: "runs code that comes over the network" }, line);
  }
  const known = text.replaceAll(UNKNOWN, "").trim();
  if (known !== "") shell.findings.nested.push({ code: text, language, line });
  if (known === "" && !isDecoded && !isRemote) {
    shell.found({ pattern: "dynamic-code", level: "HIGH", reason: "runs code that is made while running" }, line);
  }
}

/** The text of a here-document or here-string of this command. */
function redirectedText(
  node: SyntaxNode,
  shell: Shell,
): { readonly node: SyntaxNode; readonly text: string } | undefined {
  const statement = node.around("redirected_statement", "do_group", "compound_statement", "function_definition");
  const candidates = [...node.children, ...(statement?.type === "redirected_statement" ? statement.children : [])];
  for (const redirect of candidates) {
    if (redirect.type === "herestring_redirect") {
      const text = redirect.named[0];
      if (text !== undefined) return { node: text, text: shell.words.text(text) };
    }
    if (redirect.type !== "heredoc_redirect") continue;
    const start = redirect.children.find((child) => child.type === "heredoc_start")?.text ?? "";
    const body = redirect.children.find((child) => child.type === "heredoc_body");
    if (body !== undefined) return { node: body, text: shell.words.heredoc(body, /['"\\]/.test(start)) };
  }
  return undefined;
}

/** The commands that stand before this one in its pipeline, also when a here-document stands between. */
function pipedFrom(node: SyntaxNode): readonly SyntaxNode[] {
  const sources: SyntaxNode[] = [];
  let inner = node;
  for (let outer = node.parent; outer !== undefined; inner = outer, outer = outer.parent) {
    if (
      /^(?:program|subshell|compound_statement|do_group|command_substitution|process_substitution|if_statement)$/.test(
        outer.type,
      )
    )
      break;
    if (outer.type === "pipeline") {
      const at = outer.children.indexOf(inner);
      sources.unshift(...outer.children.slice(Math.max(0, at - MAX_STAGES), at).filter((stage) => stage.isNamed));
    }
    if (outer.type === "heredoc_redirect") {
      const statement = outer.parent;
      const body = statement?.part("body");
      if (body !== undefined) sources.unshift(statement!);
    }
  }
  return sources;
}

/** What the commands before print, if that is plain to see: one echo, printf, or cat of a here-document. */
function printed(sources: readonly SyntaxNode[], shell: Shell): string {
  const [source] = sources;
  if (sources.length !== 1 || source === undefined) return UNKNOWN;
  if (source.type === "command") {
    const [name, ...given] = shell.words.ofCommand(source).map((word) => word.text);
    if (name === "echo" || name === "printf") return given.filter((word) => !/^-[neE]+$/.test(word)).join(" ");
    return UNKNOWN;
  }
  const body = source.part("body");
  if (body?.type === "command" && body.part("name")?.text === "cat")
    return redirectedText(body, shell)?.text ?? UNKNOWN;
  return UNKNOWN;
}
