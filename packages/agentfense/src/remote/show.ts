import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { print } from "../output.ts";
import { printable } from "../terminal.ts";

// Answers of a server as text for people and JSON for programs. Every name in them may come from an agent.

/** The JSON that REST would have answered with. */
export function jsonOf<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): JsonValue {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

export async function printJson(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** One object a line, for answers that have no end. */
export async function printJsonLine(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value)}\n`);
}

/** Columns under their headings; those in `right` are numbers. */
export async function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { readonly right?: readonly string[] } = {},
): Promise<void> {
  const cells = [headings, ...rows.map((row) => row.map(printable))];
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => widthOf(row[column] ?? ""))));
  for (const row of cells) {
    const line = row.map((cell, column) => {
      const padding = " ".repeat(widths[column]! - widthOf(cell));
      return right.includes(headings[column]!) ? padding + cell : cell + padding;
    });
    await print(`${line.join("  ").trimEnd()}\n`);
  }
}

/** One fact a line; empty ones are left out. */
export async function printRecord(facts: readonly (readonly [name: string, value: string])[]): Promise<void> {
  const told = facts.filter(([, value]) => value !== "");
  const width = Math.max(...told.map(([name]) => name.length));
  for (const [name, value] of told) await print(`${name.padEnd(width)}  ${printable(value)}\n`);
}

export function showTime(time: Timestamp | undefined): string {
  return time === undefined
    ? ""
    : timestampDate(time)
        .toISOString()
        .replace(/\.\d+Z$/, "Z");
}

const SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function showSize(bytes: bigint | number): string {
  let size = Number(bytes);
  let unit = 0;
  for (; size >= 1024 && unit < SIZE_UNITS.length - 1; unit += 1) size /= 1024;
  return `${unit === 0 ? size : size.toFixed(1)} ${SIZE_UNITS[unit]}`;
}

function widthOf(text: string): number {
  return [...text].length;
}
