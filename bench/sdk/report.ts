import type { Results } from "../results.ts";
import { factor, table, whole } from "../table.ts";

export function sdk({ sdk: costs, sdkUploads: uploads }: Results): string[] {
  const bare = costs?.rows[0]?.p50 ?? Number.NaN;
  return [
    ...(costs === undefined
      ? []
      : [
          `### The SDK, one call after the other, with pauses, ${whole(costs.samples)} of each in turns`,
          table(
            ["", "p50 ms", "p99 ms", "to bare bwrap"],
            costs.rows.map(({ label, p50, p99 }) => [label, p50.toFixed(2), p99.toFixed(2), factor(p50 / bare)]),
          ),
        ]),
    ...(uploads === undefined
      ? []
      : [
          `### The SDK, uploading ${whole(uploads.files)} files`,
          table(
            ["", "s", "to the copy"],
            uploads.rows.map(({ label, ms }) => [label, (ms / 1000).toFixed(2), factor(ms / uploads.copyMs)]),
          ),
        ]),
  ];
}
