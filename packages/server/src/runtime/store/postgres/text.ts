// PostgreSQL keeps no U+0000 in a text, and SQLite does; names, messages and reasons come from callers. So texts are written
//
//   U+0000 as U+0001 U+0001, U+0001 as U+0001 U+0002
//
// and all else as it is. Two texts keep their order, and the beginning of a text stays its beginning, so that lists, ranges and
// keys mean the same. Hardly any text has either.

const SPECIAL = /[\u0000\u0001]/;

export function writeText(text: string): string {
  if (!SPECIAL.test(text)) return text;
  return text.replace(/[\u0000\u0001]/g, (character) => (character === "\u0000" ? "\u0001\u0001" : "\u0001\u0002"));
}

export function readText(text: string): string {
  if (!text.includes("\u0001")) return text;
  return text.replace(/\u0001([\u0001\u0002])/g, (_, second) => (second === "\u0001" ? "\u0000" : "\u0001"));
}
