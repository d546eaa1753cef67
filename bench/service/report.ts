import type { Results } from "../results.ts";
import { factor, table, whole } from "../table.ts";

export function uploads({ uploads: costs }: Results): string[] {
  if (costs === undefined) return [];
  const { files, bytes, rows, copyMs, lagMs, single } = costs;
  const shown = rows.map(({ label, ms }) => [label, (ms / 1000).toFixed(2), factor(ms / copyMs)]);
  return [
    `### Uploading ${whole(files)} files, ${whole(bytes / 2 ** 20)} MiB`,
    table(["", "s", "to `cp -r`"], shown),
    `One by one over UploadFiles: ${single.msPerFile.toFixed(1)} ms a file (${whole(single.files)} files, one call after ` +
      `the other). Event-loop lag of the API thread during the first upload: p99 ${lagMs.p99.toFixed(0)} ms, ` +
      `at most ${lagMs.max.toFixed(0)} ms.`,
  ];
}

export function calls({ calls: costs }: Results): string[] {
  if (costs === undefined) return [];
  const rows = costs.rows.map(({ label, p50, p99 }) => [label, p50.toFixed(2), p99.toFixed(2)]);
  return [
    `### One call after the other, with pauses, ${whole(costs.samples)} of each in turns`,
    table(["", "p50 ms", "p99 ms"], rows),
  ];
}

export function load({ load: costs }: Results): string[] {
  if (costs === undefined) return [];
  const rows = costs.rows.map(({ label, commands, failed, perSecond, p50, p99 }) => [
    label,
    whole(commands),
    whole(failed),
    factor(perSecond),
    whole(p50),
    whole(p99),
  ]);
  return [
    `### ${whole(costs.clients)} clients at once, a sandbox and connections for each`,
    table(["`echo NUMBER`", "commands", "failed", "per second", "p50 ms", "p99 ms"], rows),
    `Event-loop lag of the API thread meanwhile: p99 ${costs.lagMs.p99.toFixed(0)} ms, at most ${costs.lagMs.max.toFixed(0)} ms.`,
  ];
}

export function ports({ ports: costs }: Results): string[] {
  if (costs === undefined) return [];
  return [
    `### Ports of a sandbox, one connection after the other, ${whole(costs.samples)} of each in turns`,
    table(
      ["", "p50 ms", "p99 ms"],
      costs.rows.map(({ label, p50, p99 }) => [label, p50.toFixed(2), p99.toFixed(2)]),
    ),
    table(
      ["256 MiB", "MB/s"],
      costs.bulk.map(({ label, mbPerSecond }) => [label, whole(mbPerSecond)]),
    ),
  ];
}
