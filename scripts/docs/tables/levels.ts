import { LEVELS, OPERATIONS } from "../truth-table.ts";
import { code, table } from "./table.ts";

const WORDS: Readonly<Record<string, string>> = { ok: "yes", absent: "no" };

/** Level × operation → what the kernel answers. */
export function levelTable(): string {
  const rows = Object.values(OPERATIONS).map(({ title, results }) => [
    title,
    ...LEVELS.map((level) => WORDS[results[level]] ?? code(results[level])),
  ]);
  return table(["operation", ...LEVELS.map(code)], rows);
}
