import { type Rule, rule } from "./findings.ts";

/** Text as the interpreters read it: without a byte order mark; for python and javascript with "\n" as line end. */
export function asRead(code: string, language: string): string {
  const text = code.startsWith("\uFEFF") ? code.slice(1) : code;
  // A lone carriage return ends a line, and with it a comment, in python and javascript; in bash it is a character.
  return language === "bash" ? text : text.replace(/\r\n?/g, "\n");
}

const CONTROL = rule("MEDIUM", "control-character", "contains control characters, which parsers take differently");
const INVISIBLE = rule("MEDIUM", "invisible-text", "contains invisible characters, or such that turn its direction");
const ENCODING = /^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)/;

/** What is strange about a text before it is parsed: things that a reader and an interpreter see differently. */
export function* strangeText(
  text: string,
  language: string,
): Generator<{ readonly rule: Rule; readonly line: number }> {
  if (!text.isWellFormed()) yield { rule: rule("MEDIUM", "control-character", "is not well-formed Unicode"), line: 1 };
  for (const [index, content] of text.split("\n").entries()) {
    const line = index + 1;
    if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f\r]/.test(content)) yield { rule: CONTROL, line };
    if (/[\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]/.test(content))
      yield { rule: INVISIBLE, line };
    const encoding = language === "python" && index < 2 ? ENCODING.exec(content)?.[1] : undefined;
    if (encoding !== undefined && !/^(?:utf-?8|us-ascii|ascii)$/i.test(encoding.replaceAll("_", "-")))
      yield {
        rule: rule("HIGH", "encoding", `is to be read as ${encoding}, so that it is not what it looks like`),
        line,
      };
  }
}
