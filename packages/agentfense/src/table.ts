import { type Paint, paintFor, printable, type Style } from "./terminal.ts";

/** The colours of the words in columns that have such words; everything else has none. */
const CELL_STYLES: Readonly<Record<string, Readonly<Record<string, Style>>>> = {
  LEVEL: { none: "none", view: "view", read: "read", write: "write" },
  STATUS: {
    running: "good",
    active: "good",
    pending: "doubtful",
    stopped: "faint",
    closed: "faint",
    error: "bad",
  },
};

/** Columns under their headings; those in `right` are numbers. */
export function tableText(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { readonly right?: readonly string[] } = {},
): string {
  const lines = tableLines({ headings, rows, right }, paintFor(process.stdout, process.env));
  return lines.map((line) => `${line}\n`).join("");
}

interface Table {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly right: readonly string[];
}

export function tableLines({ headings, rows, right }: Table, paint: Paint): string[] {
  const cells = rows.map((row) => row.map(printable));
  const widths = headings.map((_, column) =>
    [headings, ...cells].reduce((widest, row) => Math.max(widest, columnsOf(row[column] ?? "")), 0),
  );
  const line = (row: readonly string[], styleOf: (column: number, cell: string) => Style | undefined): string => {
    // Nothing is padded behind the last word: a line that is wider than the terminal for its blanks alone wraps.
    const last = row.findLastIndex((cell) => cell !== "");
    const shown = row.slice(0, last + 1).map((cell, column) => {
      const style = styleOf(column, cell);
      const painted = style === undefined || cell === "" ? cell : paint(style, cell);
      const padding = " ".repeat(widths[column]! - columnsOf(cell));
      if (right.includes(headings[column]!)) return padding + painted;
      return column === last ? painted : painted + padding;
    });
    return shown.join("  ");
  };
  return [
    line(headings, () => "heading"),
    ...cells.map((row) => line(row, (column, cell) => CELL_STYLES[headings[column]!]?.[cell])),
  ];
}

/** One fact a line; empty ones are left out. */
export function recordText(facts: readonly (readonly [name: string, value: string])[]): string {
  const paint = paintFor(process.stdout, process.env);
  const told = facts.filter(([, value]) => value !== "");
  const width = told.reduce((widest, [name]) => Math.max(widest, name.length), 0);
  const lines = told.map(([name, value]) => {
    const style = CELL_STYLES[name.toUpperCase()]?.[value];
    const shown = printable(value);
    return `${name.padEnd(width)}  ${style === undefined ? shown : paint(style, shown)}\n`;
  });
  return lines.join("");
}

/** Code points that terminals give two columns: East Asian wide and full-width forms, by first and last. */
const WIDE: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18d08],
  [0x1aff0, 0x1b2fb],
  [0x20000, 0x3fffd],
];

/** Made for the first text that needs it: that takes ten milliseconds, which few commands have a use for. */
let characters: Intl.Segmenter | undefined;

/** How many columns of a terminal a printable text takes. */
export function columnsOf(text: string): number {
  if (/^[\u0020-\u007e]*$/.test(text)) return text.length;
  characters ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  let columns = 0;
  for (const { segment } of characters.segment(text)) columns += columnsOfCharacter(segment);
  return columns;
}

function columnsOfCharacter(character: string): number {
  if (/^\p{Mark}+$/u.test(character)) return 0;
  // U+FE0F asks for the picture of what is otherwise a sign, such as ✔️.
  if (/\p{Emoji_Presentation}|\ufe0f/u.test(character)) return 2;
  const code = character.codePointAt(0)!;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}
