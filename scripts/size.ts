// Counts what people have written, part by part, and compares it with scripts/size-budget.ts. Fails when a part is over its budget: the
// budget then grows by a line that says why, or the part gets smaller.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BUDGETS, type Size } from "./size-budget.ts";

const repository = join(import.meta.dirname, "..");
const SOURCE = "**/*.{ts,mts,mjs,py,pl,sh}";
/** Made from proto/ and from the other face of the Python SDK, or installed. */
const NOT_WRITTEN = ["**/node_modules/**", "**/generated/**", "**/_wire/**", "**/_sync/**", "**/sync_face/**"];

function sizeOf(part: string): Size {
  const files = globSync(SOURCE, { cwd: join(repository, part), exclude: NOT_WRITTEN });
  const lines = files.map((file) => readFileSync(join(repository, part, file), "latin1").split("\n").length - 1);
  return { files: files.length, lines: lines.reduce((sum, count) => sum + count, 0) };
}

function sumOf(sizes: readonly Size[]): Size {
  return sizes.reduce((sum, { files, lines }) => ({ files: sum.files + files, lines: sum.lines + lines }));
}

const parts = Object.entries(BUDGETS).map(([part, { base, growth = [] }]) => {
  return { part, size: sizeOf(part), budget: sumOf([base, ...growth]) };
});
const whole = {
  part: "all",
  size: sumOf(parts.map(({ size }) => size)),
  budget: sumOf(parts.map(({ budget }) => budget)),
};
for (const { part, size, budget } of [...parts, whole]) {
  const isOver = size.lines > budget.lines || size.files > budget.files;
  if (isOver) process.exitCode = 1;
  const counts = `${size.lines} of ${budget.lines} lines, ${size.files} of ${budget.files} files`;
  process.stdout.write(`${isOver ? "OVER  " : "      "}${part.padEnd(32)}${counts}\n`);
}
if (process.exitCode === 1) {
  process.stdout.write(
    "Make it smaller, or let the budget of the part grow in scripts/size-budget.ts, with the reason.\n",
  );
}
