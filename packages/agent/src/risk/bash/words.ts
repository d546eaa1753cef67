import { DepthMemo } from "../depth-memo.ts";
import { UNKNOWN } from "../places.ts";
import type { SyntaxNode } from "../syntax/node.ts";
import { DECODERS, PLAIN_DECODERS } from "./commands.ts";

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
/** How many nodes are looked at when it is asked what a value is made of; one of more is taken for the worst. */
const MAX_INGREDIENTS = 4000;

/** Who sets which variable, anywhere in the text. */
export interface Variables {
  /** Undefined stands for a value that is not known: read, for, local. */
  readonly values: ReadonlyMap<string, readonly (SyntaxNode | undefined)[]>;
}

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
    } else if (node.type === "for_statement") {
      const variable = node.part("variable");
      if (variable !== undefined) set(variable.text, undefined);
    } else if (node.type === "declaration_command") {
      for (const child of node.children) if (child.type === "variable_name") set(child.text, undefined);
    } else if (
      node.type === "command" &&
      /^(?:read|mapfile|readarray|printf|getopts|let)$/.test(node.part("name")?.text ?? "")
    ) {
      for (const child of node.parts("argument")) if (/^[A-Za-z_]\w*$/.test(child.text)) set(child.text, undefined);
    }
  }
  return { values };
}

/** What words come to. */
export class Words {
  readonly #variables: Variables;
  readonly #texts = new DepthMemo<string>();
  readonly #working = new Set<string>();
  readonly #made = new Map<string, boolean>();

  constructor(variables: Variables) {
    this.#variables = variables;
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

  /**
   * The commands of one node of the grammar. It is one, but the grammar sometimes reads on after the end of a line
   * where the shell does not: then each line is a command.
   */
  commandsOf(command: SyntaxNode): readonly (readonly Word[])[] {
    const breaks = lineBreaks(command);
    if (breaks.length === 0) return [this.ofCommand(command)];
    const words = this.ofCommand(command);
    return [0, ...breaks].map((from, index) => {
      const to = breaks[index] ?? Number.POSITIVE_INFINITY;
      return words.filter(({ node }) => node.start >= from && node.start < to);
    });
  }

  #split(node: SyntaxNode): readonly Word[] {
    const text = this.text(node);
    const isHidden = isHiding(node);
    // Unquoted expansions fall apart at spaces.
    const isUnquoted =
      node.type === "simple_expansion" ||
      node.type === "expansion" ||
      node.type === "concatenation" ||
      node.type === "command_substitution";
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
        return ansi(node.text.slice(2, -1));
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
      if (!EXPANSIONS.has(child.type)) continue;
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
    const values = this.#variables.values.get(name);
    const value = values?.length === 1 ? values[0] : undefined;
    if (value === undefined || this.#working.has(name)) return UNKNOWN;
    if (value.type === "variable_assignment") return "";
    const known = this.#texts.find(name, depth);
    if (known !== undefined) return known.value;
    this.#working.add(name);
    const text = this.text(value, depth + 1);
    this.#working.delete(name);
    return this.#texts.keep(name, depth, text);
  }

  /** What `$(echo …)` and `$(printf …)` print, if that is plain to see. */
  #output(node: SyntaxNode, depth: number): string {
    const commands = node.named;
    const command = commands.length === 1 ? commands[0] : undefined;
    if (command?.type !== "command" || depth > MAX_DEPTH) return UNKNOWN;
    const [name, ...given] = this.ofCommand(command).map((word) => word.text);
    if (name === "printf" && given.length === 1) return ansi(given[0]!);
    if (name === "echo") return given.filter((word) => !/^-[neE]+$/.test(word)).join(" ");
    return name === "pwd" ? "." : UNKNOWN;
  }

  /** Whether something in it undoes an encoding. */
  isDecoded(node: SyntaxNode): boolean {
    return this.#isMadeBy(node, "decoded", (command) => {
      const [name, ...given] = this.ofCommand(command).map((word) => word.text);
      const base = name?.slice(name.lastIndexOf("/") + 1) ?? "";
      const sign = Object.hasOwn(DECODERS, base) ? DECODERS[base] : undefined;
      return sign !== undefined && (PLAIN_DECODERS.has(base) || given.some((word) => sign.test(word)));
    });
  }

  /** Whether something in it comes over the network. */
  isRemote(node: SyntaxNode): boolean {
    return this.#isMadeBy(node, "remote", (command) =>
      this.ofCommand(command).some((word) =>
        /^(?:.*\/)?(?:curl|wget|nc|ncat|netcat|fetch|aria2c|lynx|ssh|scp)$/.test(word.text),
      ),
    );
  }

  #isMadeBy(node: SyntaxNode, what: string, test: (command: SyntaxNode) => boolean): boolean {
    let ingredients = 0;
    for (const inner of node.all()) {
      if (++ingredients > MAX_INGREDIENTS) return true;
      if (inner.type === "command" && test(inner)) return true;
      if (inner.type === "ansi_c_string" && what === "decoded" && inner.text.includes("\\x")) return true;
      if (inner.type !== "variable_name") continue;
      const key = `${what} ${inner.text}`;
      const known = this.#made.get(key);
      if (known === true) return true;
      if (known !== undefined || this.#working.size > MAX_DEPTH) continue;
      this.#made.set(key, false);
      this.#working.add(key);
      const values = this.#variables.values.get(inner.text) ?? [];
      const isMade = values.some((value) => value !== undefined && value !== node && this.#isMadeBy(value, what, test));
      this.#working.delete(key);
      this.#made.set(key, isMade);
      if (isMade) return true;
    }
    return false;
  }

  /** Whether a variable can only hold a whole number: then arithmetic with it runs nothing. */
  isNumeric(name: string): boolean {
    const values = this.#variables.values.get(name);
    if (values === undefined) return false;
    return values.every((value) => {
      if (value === undefined) return false;
      if (/^-?\d+$/.test(value.text)) return true;
      return value.type === "arithmetic_expansion" || (value.type === "string" && /^"-?\d+"$/.test(value.text));
    });
  }

  isOwn(name: string): boolean {
    return this.#variables.values.has(name);
  }
}

/** Where lines end between the parts of a command, which only a backslash allows. */
export function lineBreaks(command: SyntaxNode): readonly number[] {
  const text = command.text;
  const breaks: number[] = [];
  for (const [index, child] of command.children.entries()) {
    const previous = command.children[index - 1];
    if (previous === undefined) continue;
    const gap = text.slice(previous.end - command.start, child.start - command.start);
    if (gap.replaceAll("\\\n", "").includes("\n")) breaks.push(child.start);
  }
  return breaks;
}

const EXPANSIONS = new Set([
  "simple_expansion",
  "expansion",
  "command_substitution",
  "arithmetic_expansion",
  "process_substitution",
]);

/** Whether a name of a command is written to be overlooked. A variable alone is not. */
function isHiding(node: SyntaxNode): boolean {
  switch (node.type) {
    case "word":
      return /[\\?*[\]]/.test(node.text);
    case "raw_string":
    case "string":
    case "number":
    case "simple_expansion":
    case "expansion":
      return false;
    case "concatenation":
      return (
        node.children.some(
          (child) => child.type !== "simple_expansion" && child.type !== "expansion" && child.type !== "word",
        ) || /IFS/.test(node.text)
      );
    default:
      return node.children.length > 0 || node.type === "ansi_c_string";
  }
}

/** The escapes of $'…' and printf. */
function ansi(text: string): string {
  return text.replace(
    /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|(.))/gs,
    (_whole, hex, short, long, octal, other) => {
      const code = hex ?? short ?? long;
      if (code !== undefined) return character(Number.parseInt(code, 16));
      if (octal !== undefined) return character(Number.parseInt(octal, 8));
      return other === "n" ? "\n" : other === "t" ? "\t" : other === "r" ? "\r" : other;
    },
  );
}

function character(code: number): string {
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : UNKNOWN;
}
