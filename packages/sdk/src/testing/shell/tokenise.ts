/** A piece of a word: text as it stands, or a variable to be put in. */
export type WordPart =
  | { readonly text: string; readonly quoted: boolean }
  | { readonly variable: string; readonly quoted: boolean };

export type Word = readonly WordPart[];

export type Token = { readonly line: number } & (
  | { readonly kind: "word"; readonly word: Word }
  | { readonly kind: "operator"; readonly operator: ";" | "&&" | "||" | "|" }
  | { readonly kind: "redirection"; readonly fd: number; readonly operator: "<" | ">" | ">>" | ">&" }
);

/** What the little shell does not understand. */
export class ShellSyntaxError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.name = "ShellSyntaxError";
    this.line = line;
  }
}

const OPERATORS = ["&&", "||", "|", ";", "\n"] as const;
const REDIRECTION = /^(\d?)(>>|>&|>|<)/;
const VARIABLE = /^\$(?:\{([A-Za-z_][A-Za-z0-9_]*|\?)\}|([A-Za-z_][A-Za-z0-9_]*|\?))/;
const BLANK = /^[ \t]+|^\\\n/;
/** Syntax of shells that has no meaning here; guessing one would be worse. */
const UNKNOWN = /^(\$\(|\$\{|`|<<|<\(|>\(|[()&])/;

/** The tokens of a line or of several. */
export function tokenise(source: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  for (let at = 0; at < source.length; ) {
    const rest = source.slice(at);
    const blank = BLANK.exec(rest)?.[0] ?? (rest.startsWith("#") ? /^#[^\n]*/.exec(rest)?.[0] : undefined);
    if (blank !== undefined) {
      at += blank.length;
      continue;
    }
    const operator = OPERATORS.find((each) => rest.startsWith(each));
    if (operator !== undefined) {
      tokens.push({ kind: "operator", operator: operator === "\n" ? ";" : operator, line });
      if (operator === "\n") line += 1;
      at += operator.length;
      continue;
    }
    refuseUnknown(rest, line);
    const redirection = REDIRECTION.exec(rest);
    if (redirection !== null) {
      const [all, fd, sign] = redirection as unknown as [string, string, "<" | ">" | ">>" | ">&"];
      tokens.push({ kind: "redirection", fd: fd === "" ? Number(sign !== "<") : Number(fd), operator: sign, line });
      at += all.length;
      continue;
    }
    const { word, length } = readWord(rest, line);
    tokens.push({ kind: "word", word, line });
    at += length;
  }
  return tokens;
}

/** A word ends where something unquoted begins that is none. */
function readWord(source: string, line: number): { readonly word: Word; readonly length: number } {
  const parts: WordPart[] = [];
  let at = 0;
  while (at < source.length && !/[ \t\n;|<>]/.test(source[at]!)) {
    const rest = source.slice(at);
    if (rest.startsWith("&&")) break;
    refuseUnknown(rest, line);
    const quoted = rest[0] === "'" ? singleQuoted(rest, line) : rest[0] === '"' ? doubleQuoted(rest, line) : undefined;
    const piece = quoted ?? plain(rest);
    parts.push(...piece.parts);
    at += piece.length;
  }
  return { word: parts, length: at };
}

interface Piece {
  readonly parts: readonly WordPart[];
  readonly length: number;
}

function plain(source: string): Piece {
  const variable = variableAt(source, false);
  if (variable !== undefined) return variable;
  if (source[0] === "\\" && source.length > 1) {
    return { parts: source[1] === "\n" ? [] : [{ text: source[1]!, quoted: true }], length: 2 };
  }
  const text = /^[^\s;|<>&()`'"\\$]+/.exec(source)?.[0] ?? source[0]!;
  return { parts: [{ text, quoted: false }], length: text.length };
}

function singleQuoted(source: string, line: number): Piece {
  const end = source.indexOf("'", 1);
  if (end < 0) throw new ShellSyntaxError(line, "unexpected EOF while looking for matching `''");
  return { parts: [{ text: source.slice(1, end), quoted: true }], length: end + 1 };
}

function doubleQuoted(source: string, line: number): Piece {
  const parts: WordPart[] = [{ text: "", quoted: true }];
  for (let at = 1; at < source.length; ) {
    const rest = source.slice(at);
    if (rest[0] === '"') return { parts, length: at + 1 };
    if (/^(\$\(|`)/.test(rest)) refuseUnknown(rest, line);
    const variable = variableAt(rest, true);
    const escaped = variable === undefined ? /^\\[$`"\\\n]/.exec(rest)?.[0] : undefined;
    if (variable !== undefined) parts.push(...variable.parts);
    else if (escaped === undefined) parts.push({ text: rest[0]!, quoted: true });
    else if (escaped[1] !== "\n") parts.push({ text: escaped[1]!, quoted: true });
    at += variable?.length ?? escaped?.length ?? 1;
  }
  throw new ShellSyntaxError(line, "unexpected EOF while looking for matching `\"'");
}

function variableAt(source: string, quoted: boolean): Piece | undefined {
  const match = VARIABLE.exec(source);
  if (match === null) return undefined;
  return { parts: [{ variable: match[1] ?? match[2] ?? "", quoted }], length: match[0].length };
}

function refuseUnknown(source: string, line: number): void {
  const sign = UNKNOWN.exec(source)?.[0];
  if (sign === undefined || source.startsWith("&&") || VARIABLE.test(source)) return;
  throw new ShellSyntaxError(
    line,
    `the mock engine's shell does not know \`${sign}'; answer the command with onCommand`,
  );
}
