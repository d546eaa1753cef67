// What reaches a terminal. File names, rule patterns and error messages can hold anything; here they become text that
// moves no cursor, hides nothing and can be read back.

/** Escape sequences, C0 and C1 controls, line separators, and the characters that reorder or hide text. */
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\\]|\p{Cs}/gu;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A name as printable text. Bytes that are not UTF-8 (lone surrogates U+DC80..U+DCFF) show as `\xNN`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => SHORT_ESCAPES[character] ?? escapeOf(character.codePointAt(0)!));
}

/** A sentence that has names in it: the same, but a backslash is a backslash, for it may already be an escape. */
export function printableSentence(text: string): string {
  return text.replace(UNPRINTABLE, (character) => (character === "\\" ? character : printable(character)));
}

function escapeOf(code: number): string {
  if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

/** Colours text, or leaves it alone when nobody would see the colour. */
export type Paint = (style: Style, text: string) => string;

export type Style = keyof typeof STYLES;

const STYLES = {
  // levels
  none: "9;31",
  view: "33",
  read: "36",
  write: "32",
  // what there is to say about something
  good: "32",
  doubtful: "33",
  bad: "31",
  notable: "36",
  heading: "1",
  faint: "2",
} as const;

/** NO_COLOR (any value but the empty one) wins over FORCE_COLOR, and both over whether the stream is a terminal. */
export function paintFor(stream: { isTTY?: boolean }, environment: NodeJS.ProcessEnv): Paint {
  const wanted = environment.NO_COLOR
    ? false
    : environment.FORCE_COLOR
      ? environment.FORCE_COLOR !== "0"
      : stream.isTTY === true;
  return wanted ? (style, text) => `\u001b[${STYLES[style]}m${text}\u001b[0m` : (_style, text) => text;
}
