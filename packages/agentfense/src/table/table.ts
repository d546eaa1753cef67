import { print } from "../output.ts";
import { type Paint, paintFor, printable, type Style } from "../terminal.ts";
import { columnsOf } from "./width.ts";

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
export async function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { readonly right?: readonly string[] } = {},
): Promise<void> {
  const lines = tableLines({ headings, rows, right }, paintFor(process.stdout, process.env));
  for (const line of lines) await print(`${line}\n`);
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
export async function printRecord(facts: readonly (readonly [name: string, value: string])[]): Promise<void> {
  const paint = paintFor(process.stdout, process.env);
  const told = facts.filter(([, value]) => value !== "");
  const width = told.reduce((widest, [name]) => Math.max(widest, name.length), 0);
  for (const [name, value] of told) {
    const style = CELL_STYLES[name.toUpperCase()]?.[value];
    const shown = printable(value);
    await print(`${name.padEnd(width)}  ${style === undefined ? shown : paint(style, shown)}\n`);
  }
}
