import type { CommandShape } from "./shape.ts";

/** The commands of two words, by their first. */
export function familiesOf(shapes: readonly CommandShape[]): ReadonlyMap<string, readonly CommandShape[]> {
  return Map.groupBy(
    shapes.filter(({ name }) => name.includes(" ")),
    ({ name }) => name.split(" ")[0]!,
  );
}

export function firstWordsOf(shapes: readonly CommandShape[]): string[] {
  return [...new Set(shapes.map(({ name }) => name.split(" ")[0]!))];
}
