import { UNKNOWN } from "./places.ts";

/** The encodings that are used to hide text, undone. Undefined when the text is not known, or not of that encoding. */

export function decodeBase64(text = UNKNOWN): string | undefined {
  const plain = text.replace(/[\s=]/g, "").replaceAll("-", "+").replaceAll("_", "/");
  return /^[A-Za-z0-9+/]+$/.test(plain) ? Buffer.from(plain, "base64").toString("utf8") : undefined;
}

export function decodeHex(text = UNKNOWN): string | undefined {
  const plain = text.replace(/\s/g, "");
  return /^(?:[0-9a-fA-F]{2})+$/.test(plain) ? Buffer.from(plain, "hex").toString("utf8") : undefined;
}

export function rot13(text = UNKNOWN): string | undefined {
  if (text.includes(UNKNOWN)) return undefined;
  return text.replace(/[A-Za-z]/g, (letter) => {
    const base = letter <= "Z" ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });
}

export function reverse(text = UNKNOWN): string | undefined {
  return text.includes(UNKNOWN) ? undefined : [...text].reverse().join("");
}

/** The character of a code that is written as a number. */
export function character(code: string | number = UNKNOWN): string {
  const number = Number(code);
  return Number.isInteger(number) && number > 0 && number <= 0x10ffff ? String.fromCodePoint(number) : UNKNOWN;
}

/** Parts of a path; an absolute one begins anew. */
export function joinPath(parts: readonly string[]): string {
  return parts.reduce(
    (path, part) => (part.startsWith("/") || path === "" ? part : `${path.replace(/\/$/, "")}/${part}`),
    "",
  );
}

/** One argument, written so that a shell reads it as one word. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./~\uFFFC-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

const LETTERS: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };

/** The escapes of strings, as Python, JavaScript and shells have them in common. */
export function unescapeText(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(
    /\\(?:x([0-9a-fA-F]{1,2})|u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(\n)|(.))/gs,
    (_whole, hex, braced, short, long, octal, newline, other) => {
      const code = hex ?? braced ?? short ?? long;
      if (code !== undefined) return character(Number.parseInt(code, 16));
      if (octal !== undefined) return character(Number.parseInt(octal, 8));
      return newline === undefined ? (LETTERS[other] ?? other) : "";
    },
  );
}
