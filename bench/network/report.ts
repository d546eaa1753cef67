import type { Results } from "../results.ts";
import { factor, table, whole } from "../table.ts";
import type { NetworkRow } from "./networks.ts";

export function networks({ networks: costs }: Results): string[] {
  if (costs === undefined) return [];
  const { bytes, requests, connections, download, http, https, starts } = costs;
  const rows = (measured: readonly NetworkRow[]) =>
    measured.map(({ label, rate, cpuMs }) => [label, whole(rate), toPrivate(measured, rate), whole(cpuMs)]);
  return [
    `### One download over TLS of ${whole(bytes / 2 ** 20)} MiB, by the sandbox's network`,
    table(["", "MB/s", "private to it", "CPU ms outside"], rows(download)),
    `### ${whole(requests)} requests over ${connections} connections, each answered with four bytes`,
    table(["HTTP", "per second", "private to it", "CPU ms outside"], rows(http)),
    table(["HTTP over TLS", "per second", "private to it", "CPU ms outside"], rows(https)),
    "### Create, start, first `true`, by the sandbox's network",
    table(
      ["", "ms"],
      starts.map(({ label, ms }) => [label, ms.toFixed(1)]),
    ),
  ];
}

/** How many times as fast an unfiltered private network is. */
function toPrivate(rows: readonly NetworkRow[], rate: number): string {
  const unfiltered = rows.find(({ label }) => label === "private");
  return unfiltered === undefined ? "" : factor(unfiltered.rate / rate);
}
