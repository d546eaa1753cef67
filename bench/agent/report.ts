import type { Results } from "../results.ts";
import { factor, table, whole } from "../table.ts";

export function agent({ agent: costs }: Results): string[] {
  if (costs === undefined) return [];
  const python = costs.rows[0]?.p50 ?? Number.NaN;
  return [
    `### The agent layer, one call after the other, with pauses, ${whole(costs.samples)} of each in turns`,
    table(
      ["", "p50 ms", "p99 ms", "to Python alone"],
      costs.rows.map(({ label, p50, p99 }) => [label, p50.toFixed(2), p99.toFixed(2), factor(p50 / python)]),
    ),
  ];
}
