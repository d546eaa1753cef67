import type { NestedCode } from "../findings.ts";
import { UNKNOWN } from "../places.ts";
import { DECODED, DYNAMIC, REMOTE } from "../program/assess.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import type { Shell } from "./command.ts";
import type { Word } from "./words.ts";

/** How far a pipeline is followed back. */
const MAX_STAGES = 16;

/** What an interpreter is given to run: `-c code`, a file, a here-document, or what is piped into it. */
export function assessInput(
  { codeOption, language }: { readonly language: NestedCode["language"]; readonly codeOption: RegExp },
  given: readonly Word[],
  node: SyntaxNode,
  shell: Shell,
): void {
  const option = given.findIndex((word) => codeOption.test(word.text));
  const file = given.find((word) => !word.text.startsWith("-"));
  const isWritten = file?.node.type === "process_substitution";
  const code = option === -1 ? (isWritten ? file : undefined) : given[option + 1];
  const isRead = given.some(({ text }) => text === "-s" || text === "-");
  const isAsked = given.some(({ text }) => /^(?:-m|--version|-V|--help|--test|--check)$/.test(text));
  if (code === undefined && ((file !== undefined && !isRead) || isAsked)) return;
  const redirected = code ?? redirectedText(node, shell);
  if (redirected !== undefined) {
    assessCode([redirected.node], redirected.text, language, node, shell);
    return;
  }
  const sources = pipedFrom(node);
  if (sources.length > 0) assessCode(sources, printed(sources, shell), language, node, shell);
}

/** Text that is run as code. */
export function assessCode(
  sources: readonly SyntaxNode[],
  text: string,
  language: NestedCode["language"],
  { line }: SyntaxNode,
  { findings, found, words }: Shell,
): void {
  const isDecoded = sources.some((source) => words.isDecoded(source));
  const isRemote = sources.some((source) => words.isRemote(source));
  if (isDecoded) found(DECODED, line);
  if (isRemote) found(REMOTE, line);
  if (text.replaceAll(UNKNOWN, "").trim() !== "") findings.nested.push({ code: text, language, line });
  else if (!isDecoded && !isRemote) found(DYNAMIC, line);
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

const BOUNDARY = /^(?:program|subshell|compound_statement|do_group|\w+_substitution|if_statement)$/;

/** The commands that stand before this one in its pipeline, also when a here-document stands between. */
function pipedFrom(node: SyntaxNode): readonly SyntaxNode[] {
  const { parent } = node;
  if (parent === undefined || BOUNDARY.test(parent.type)) return [];
  const at = parent.type === "pipeline" ? parent.children.indexOf(node) : 0;
  const stages = parent.children.slice(Math.max(0, at - MAX_STAGES), at).filter((stage) => stage.isNamed);
  const isHeredoc = parent.type === "heredoc_redirect" && parent.parent?.part("body") !== undefined;
  return [...pipedFrom(parent), ...(isHeredoc ? [parent.parent!] : []), ...stages];
}

/** What the commands before print, if that is plain to see: one echo, printf, or cat of a here-document. */
function printed(sources: readonly SyntaxNode[], shell: Shell): string {
  const source = sources.length === 1 ? sources[0]! : undefined;
  const body = source?.part("body");
  if (body?.type === "command" && body.part("name")?.text === "cat")
    return redirectedText(body, shell)?.text ?? UNKNOWN;
  const words = source?.type === "command" ? shell.words.ofCommand(source).map((word) => word.text) : [];
  return /^(?:echo|printf)$/.test(words[0] ?? "")
    ? words
        .filter((word) => !/^-[neE]+$/.test(word))
        .slice(1)
        .join(" ")
    : UNKNOWN;
}
