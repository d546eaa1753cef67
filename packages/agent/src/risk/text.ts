import type { Finding, Rule } from "./findings.ts";

/** Text as the interpreters read it: without a byte order mark; for python and javascript with "\n" as line end. */
export function asRead(code: string, language: "python" | "javascript" | "typescript" | "bash"): string {
  const text = code.startsWith("\uFEFF") ? code.slice(1) : code;
  // A lone carriage return ends a line, and with it a comment, in python and javascript; in bash it is a character.
  return language === "bash" ? text : text.replace(/\r\n?/g, "\n");
}

/** What is strange about a text before it is parsed: things that a reader and an interpreter see differently. */
export function* strangeText(
  text: string,
  language: "python" | "javascript" | "typescript" | "bash",
): Generator<Omit<Finding, "pattern"> & Rule> {
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    const line1 = index + 1;
    if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f\r]/.test(line)) {
      yield {
        pattern: "control-character",
        level: "MEDIUM",
        reason: "contains control characters, which parsers take differently",
        line: line1,
      };
    }
    if (/[\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]/.test(line)) {
      yield {
        pattern: "invisible-text",
        level: "MEDIUM",
        reason: "contains invisible characters, or such that turn the direction of text",
        line: line1,
      };
    }
    if (language === "python" && index < 2) {
      const encoding = /^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)/.exec(line)?.[1];
      if (encoding !== undefined && !/^(?:utf-?8|us-ascii|ascii)$/i.test(encoding.replaceAll("_", "-"))) {
        yield {
          pattern: "encoding",
          level: "HIGH",
          reason: `is to be read as ${encoding}, so that it is not what it looks like`,
          line: line1,
        };
      }
    }
  }
  if (!text.isWellFormed()) {
    yield { pattern: "control-character", level: "MEDIUM", reason: "is not well-formed Unicode", line: 1 };
  }
}
