import { Origins } from "../declarations.ts";
import { UNKNOWN } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { unescapeText } from "../text-codes.ts";
import { DECODERS } from "./commands.ts";

/** A word of a command, after what the shell does to it. */
export interface Word {
  /** With UNKNOWN for what is not known before. */
  readonly text: string;
  readonly node: SyntaxNode;
  /** Written so that the text is not what one reads: quotes or backslashes inside, codes, substitutions. */
  readonly isHidden: boolean;
}

const MAX_DEPTH = 30;
const MAX_TEXT = 8192;

/** Who sets which variable, anywhere in the text; undefined stands for a value that is not known: read, for, local. */
export type Variables = ReadonlyMap<string, readonly (SyntaxNode | undefined)[]>;

export function collectVariables(root: SyntaxNode): Variables {
  const values = new Map<string, (SyntaxNode | undefined)[]>();
  const set = (name: string, value: SyntaxNode | undefined): void => {
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else if (known.length < 64) known.push(value);
  };
  for (const node of root.all()) {
    if (node.type === "variable_assignment") {
      const name = node.part("name");
      const isAdded = node.children.some((child) => child.type === "+=");
      if (name?.type === "variable_name") set(name.text, isAdded ? undefined : (node.part("value") ?? node));
      if (name?.type === "subscript") set(name.part("name")?.text ?? "", undefined);
    }
    const isReading = node.type === "command" && READING.test(node.part("name")?.text ?? "");
    const named = [
      ...(node.type === "for_statement" ? node.parts("variable") : []),
      ...(node.type === "declaration_command" ? node.children.filter((child) => child.type === "variable_name") : []),
      ...(isReading ? node.parts("argument").filter((child) => /^[A-Za-z_]\w*$/.test(child.text)) : []),
    ];
    for (const { text } of named) set(text, undefined);
  }
  return values;
}

const READING = /^(?:read|mapfile|readarray|printf|getopts|let)$/;

/** What words come to. */
export class Words {
  readonly #variables: Variables;
  readonly #texts = new Map<string, string>();
  readonly #origins: Origins;

  constructor(variables: Variables) {
    this.#variables = variables;
    this.#origins = new Origins(
      (node) => (node.type === "variable_name" ? node.text : undefined),
      (name) => (variables.get(name) ?? []).filter((value) => value !== undefined),
    );
  }

  /** The name and arguments of a command; one node may be several words. */
  ofCommand(command: SyntaxNode): readonly Word[] {
    const words: Word[] = [];
    for (const node of command.children) {
      if (node.type === "variable_assignment" || node.type.endsWith("_redirect")) continue;
      words.push(...this.#split(node.type === "command_name" ? (node.children[0] ?? node) : node));
    }
    return words;
  }

  #split(node: SyntaxNode): readonly Word[] {
    const text = this.text(node);
    const isHidden = isHiding(node);
    // Unquoted expansions fall apart at spaces.
    const isUnquoted = /^(?:simple_expansion|expansion|concatenation|command_substitution)$/.test(node.type);
    const isExpanded = isUnquoted && node.text.includes("$");
    if (!isExpanded || !/\s/.test(text)) return [{ text, node, isHidden }];
    return text
      .split(/\s+/)
      .filter((part) => part !== "")
      .map((part) => ({ text: part, node, isHidden: isHidden || /IFS/.test(node.text) }));
  }

  text(node: SyntaxNode, depth = 0): string {
    const text = depth > MAX_DEPTH ? UNKNOWN : this.#text(node, depth);
    return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) + UNKNOWN : text;
  }

  #text(node: SyntaxNode, depth: number): string {
    switch (node.type) {
      case "word":
      case "number":
      case "extglob_pattern":
        return node.text.replace(/\\(\n|.)/g, (_whole, escaped) => (escaped === "\n" ? "" : escaped));
      case "raw_string":
        return node.text.slice(1, -1);
      case "ansi_c_string":
        return unescapeText(node.text.slice(2, -1));
      case "string":
      case "translated_string":
        return this.#quoted(node, depth);
      case "concatenation":
        return node.children.map((child) => this.text(child, depth + 1)).join("");
      case "simple_expansion":
        return this.#variable(node.named[0]?.text ?? "", depth);
      case "expansion":
        return node.named.length === 1 && node.named[0]!.type === "variable_name" && /^\$\{\w+\}$/.test(node.text)
          ? this.#variable(node.named[0]!.text, depth)
          : UNKNOWN;
      case "command_substitution":
        return this.#output(node, depth);
      case "process_substitution":
      case "arithmetic_expansion":
      case "brace_expression":
      case "array":
        return UNKNOWN;
      default:
        return node.children.length === 0 ? node.text : UNKNOWN;
    }
  }

  /** The text between double quotes, or of a here-document: text with expansions in it. */
  #quoted(node: SyntaxNode, depth: number): string {
    const isString = node.type !== "heredoc_body";
    let at = isString ? node.start + 1 : node.start;
    const end = isString ? node.end - 1 : node.end;
    let text = "";
    const source = node.text;
    const literal = (from: number, to: number): string =>
      source.slice(from - node.start, to - node.start).replace(/\\([$`"\\\n])/g, (_whole, c) => (c === "\n" ? "" : c));
    for (const child of node.children) {
      if (!EXPANSIONS.test(child.type)) continue;
      text += literal(at, child.start) + this.text(child, depth + 1);
      at = child.end;
    }
    return text + literal(at, end);
  }

  heredoc(body: SyntaxNode, isRaw: boolean): string {
    return isRaw ? body.text : this.#quoted(body, 0);
  }

  #variable(name: string, depth: number): string {
    if (name === "IFS") return " ";
    if (name === "HOME") return "~";
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const values = this.#variables.get(name);
    const value = values?.length === 1 ? values[0] : undefined;
    if (value === undefined) return UNKNOWN;
    this.#texts.set(name, UNKNOWN);
    const text = value.type === "variable_assignment" ? "" : this.text(value, depth + 1);
    this.#texts.set(name, text);
    return text;
  }

  /** What `$(echo …)` and `$(printf …)` print, if that is plain to see. */
  #output(node: SyntaxNode, depth: number): string {
    const commands = node.named;
    const command = commands.length === 1 ? commands[0] : undefined;
    if (command?.type !== "command" || depth > MAX_DEPTH) return UNKNOWN;
    const [name, ...given] = this.ofCommand(command).map((word) => word.text);
    if (name === "printf" && given.length === 1) return unescapeText(given[0]!);
    if (name === "echo") return given.filter((word) => !/^-[neE]+$/.test(word)).join(" ");
    return name === "pwd" ? "." : UNKNOWN;
  }

  /** Whether something in it undoes an encoding. */
  isDecoded(node: SyntaxNode): boolean {
    return this.#origins.has(node, "decoded", (inner) => {
      if (inner.type === "ansi_c_string") return inner.text.includes("\\x");
      if (inner.type !== "command") return false;
      const [name = "", ...given] = this.ofCommand(inner).map((word) => word.text);
      const base = name.slice(name.lastIndexOf("/") + 1);
      const sign = Object.hasOwn(DECODERS, base) ? DECODERS[base] : undefined;
      return sign !== undefined && ["", ...given].some((word) => sign.test(word));
    });
  }

  /** Whether something in it comes over the network. */
  isRemote(node: SyntaxNode): boolean {
    return this.#origins.has(node, "remote", (inner) => {
      return inner.type === "command" && this.ofCommand(inner).some((word) => FETCHES.test(word.text));
    });
  }
}

const FETCHES = /^(?:.*\/)?(?:curl|wget|nc|ncat|netcat|fetch|aria2c|lynx|ssh|scp)$/;

/** The parts of a command that begin a line, which only a backslash before it allows. */
export function lineBreaks(command: SyntaxNode): readonly SyntaxNode[] {
  return command.children.filter((child, index) => {
    const previous = command.children[index - 1] ?? child;
    const gap = command.text.slice(previous.end - command.start, child.start - command.start);
    return gap.replaceAll("\\\n", "").includes("\n");
  });
}

const EXPANSIONS = /^(?:(?:simple_|arithmetic_)?expansion|(?:command|process)_substitution)$/;

/** Whether a name of a command is written to be overlooked. A variable alone is not. */
function isHiding(node: SyntaxNode): boolean {
  switch (node.type) {
    case "word":
      return /[\\?*[\]]/.test(node.text);
    case "concatenation":
      return (
        /IFS/.test(node.text) || node.children.some(({ type }) => !/^(?:simple_expansion|expansion|word)$/.test(type))
      );
    default:
      if (/^(?:raw_string|string|number|simple_expansion|expansion)$/.test(node.type)) return false;
      return node.children.length > 0 || node.type === "ansi_c_string";
  }
}
