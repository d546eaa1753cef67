import { agent } from "./agent/report.ts";
import { REQUEST_BUDGET } from "./budget.ts";
import { networks } from "./network/report.ts";
import type { Results } from "./results.ts";
import { type Cell, median } from "./sample.ts";
import { sdk } from "./sdk/report.ts";
import { calls, load, ports, uploads } from "./service/report.ts";
import { factor, table, whole } from "./table.ts";
import { TARGETS } from "./targets/table.ts";

/** The whole report, as Markdown whose tables are legible on a terminal too. */
export function report(results: Results): string {
  return [
    ...machine(results),
    ...[false, true].flatMap((pinned) => ratios(results, pinned)),
    ...requests(results),
    ...rules(results),
    ...trees(results),
    ...idleMemory(results),
    ...runtimes(results),
    ...uploads(results),
    ...calls(results),
    ...load(results),
    ...ports(results),
    ...sdk(results),
    ...agent(results),
    ...networks(results),
    ...troubles(results),
  ].join("\n\n");
}

/** One line while the run goes on: milliseconds by target. */
export function progress(id: string, cells: readonly Cell[]): string {
  const parts = cells.map((cell) => {
    const name = cell.pinned ? `${cell.target}*` : cell.target;
    return `${name} ${valid(cell) ? (median(cell.seconds) * 1000).toFixed(1) : "error"}`;
  });
  return `${id}, ms (* pinned): ${parts.join("  ")}`;
}

function machine({ machine: m, runs, freshProcess, quick }: Results): string[] {
  const versions = Object.entries(m.versions).map(([name, version]) => `${name} ${version}`);
  const cold = freshProcess
    ? "each mount of ours is a new process"
    : "ours is mounted again by a process that stays, as in a server";
  const warning = quick ? " **A quick run: few samples and small files; do not quote it.**" : "";
  return [
    `Linux ${m.kernel}, ${m.cpu}, ${m.cores} cores, ${m.memoryGiB} GiB, ${m.fileSystem}; ${versions.join(", ")}. ` +
      `Median of ${runs}, samples of all targets interleaved; load before the run ${m.load.toFixed(1)}.${warning}`,
    `Cold: just mounted, with the store beneath in memory (${cold}). Warm: the same work again right after itself.`,
  ];
}

function ratios(results: Results, pinned: boolean): string[] {
  const present = new Set(results.timings.flatMap(({ cells }) => cells.map(({ target }) => target)));
  const targets = results.targets.filter((name) => present.has(name));
  const rows = results.timings
    .map(({ label, cells }) => {
      const own = cells.filter((cell) => cell.pinned === pinned);
      return ratioRow(label, own, targets);
    })
    .filter((row) => row !== undefined);
  if (rows.length === 0) return [];
  const heading = pinned ? "client and daemon on CPU 0" : "client and daemon placed by the scheduler";
  const head = [
    "workload",
    "native ms",
    ...targets.slice(1).map((name) => TARGETS[name]!.label),
    "ours / best FUSE peer",
  ];
  return [`### Time as a ratio to native, ${heading}`, table(head, rows)];
}

function ratioRow(label: string, cells: readonly Cell[], targets: readonly string[]): string[] | undefined {
  const seconds = new Map(cells.filter(valid).map((cell) => [cell.target, median(cell.seconds)]));
  const base = seconds.get("native");
  if (base === undefined) return undefined;
  const ratio = (name: string) => {
    if (cells.some((cell) => cell.target === name && cell.error !== undefined)) return "error";
    const own = seconds.get(name);
    return own === undefined ? "" : factor(own / base);
  };
  const fastest = (family: string) =>
    Math.min(
      ...targets.filter((name) => TARGETS[name]?.family === family).map((name) => seconds.get(name) ?? Infinity),
    );
  const ours = seconds.get("ours") ?? fastest("ours");
  const lead = ours / fastest("peer");
  return [
    label,
    (base * 1000).toFixed(base < 0.01 ? 1 : 0),
    ...targets.slice(1).map(ratio),
    Number.isFinite(lead) && lead > 0 ? factor(lead) : "",
  ];
}

function requests({ requests: counted, targets }: Results): string[] {
  if (counted.length === 0) return [];
  const names = targets.filter((name) => counted.some(({ counts }) => counts.some(({ target }) => target === name)));
  const totals = counted.map(({ id, label, counts }) => [
    label,
    ...names.map((name) => {
      const count = counts.find(({ target }) => target === name);
      return count === undefined ? "" : count.error === undefined ? whole(count.total) : "error";
    }),
    REQUEST_BUDGET[id] === undefined ? "" : whole(REQUEST_BUDGET[id].requests),
    REQUEST_BUDGET[id]?.why ?? "",
  ]);
  const kinds = counted.flatMap(({ label, counts }) =>
    counts
      .filter(({ error }) => error === undefined)
      .map(({ target, byKind }) => [
        label,
        TARGETS[target]!.label,
        Object.entries(byKind)
          .map(([kind, n]) => `${kind} ${whole(n)}`)
          .join(", ") || "none",
      ]),
  );
  return [
    "### FUSE requests per workload",
    table(["workload", ...names.map((name) => TARGETS[name]!.label), "budget", "the budget"], totals),
    "### FUSE requests by kind",
    table(["workload", "target", "requests"], kinds),
  ];
}

function rules({ rules: costs }: Results): string[] {
  if (costs === undefined) return [];
  const rows = costs.map((cost) => [
    whole(cost.rules),
    cost.compileMs.toFixed(2),
    whole(cost.firstNs),
    whole(cost.againNs),
  ]);
  const head = ["rules", "compile ms", "first decision ns", "again ns"];
  return ["### Deciding one path of five segments against the number of rules", table(head, rows)];
}

function trees({ trees: costs, targets }: Results): string[] {
  if (costs === undefined) return [];
  const names = targets.filter((name) => costs.some((cost) => cost.microseconds[name] !== undefined));
  const rows = costs.map(({ files, microseconds }) => [
    whole(files),
    ...names.map((name) => microseconds[name]?.toFixed(1) ?? ""),
  ]);
  const head = ["files in the tree", ...names.map((name) => `${TARGETS[name]!.label} µs`)];
  return ["### One stat on a new mount against the size of the tree", table(head, rows)];
}

function idleMemory({ idleMemory: memory }: Results): string[] {
  if (memory === undefined) return [];
  const kib = (bytes: number) => `${whole(bytes / 1024)} KiB`;
  return [
    "### Memory per mount",
    table(
      ["mounts in one process", "process before", "per idle mount", "per mount after a find over 500 files", "target"],
      [[whole(memory.mounts), kib(memory.processBytes), kib(memory.idleBytes), kib(memory.usedBytes), "1,024 KiB"]],
    ),
  ];
}

function runtimes({ runtimes: costs }: Results): string[] {
  if (costs === undefined) return [];
  const { rows, crowd } = costs;
  return [
    "### Commands in a sandbox",
    table(
      ["", "ms", "without us, ms", "ratio", "target", "without us"],
      rows.map(({ label, ms, baseMs, base, target }) => [
        label,
        ms.toFixed(2),
        baseMs.toFixed(2),
        factor(ms / baseMs),
        target,
        base,
      ]),
    ),
    `### ${whole(crowd.sandboxes)} sandboxes on one codebase`,
    table(
      [
        ...[
          "alive at once",
          "commands that succeeded",
          "start s",
          "`true` in each s",
          "reading the top of the codebase in each s",
        ],
        ...["destroy s", "memory per sandbox"],
      ],
      [
        [
          whole(crowd.sandboxes),
          whole(crowd.succeeded),
          crowd.startSeconds.toFixed(1),
          crowd.execSeconds.toFixed(1),
          crowd.readSeconds.toFixed(1),
          crowd.destroySeconds.toFixed(1),
          `${whole(crowd.bytesPerSandbox / 1024)} KiB`,
        ],
      ],
    ),
  ];
}

function troubles({ leftOut, timings, requests: counted, trees: costs = [], failures }: Results): string[] {
  const lines = [
    ...leftOut.map(({ target, reason }) => `${target} was left out: ${reason}`),
    ...timings.flatMap(({ id, cells }) =>
      cells
        .filter(({ error }) => error !== undefined)
        .map(({ target, pinned, error }) => `${id}, ${target}, ${pinned ? "pinned" : "free"}: ${error}`),
    ),
    ...counted.flatMap(({ id, counts }) =>
      counts
        .filter(({ error }) => error !== undefined)
        .map(({ target, error }) => `requests of ${id}, ${target}: ${error}`),
    ),
    ...costs.flatMap(({ files, errors }) =>
      Object.entries(errors).map(([target, error]) => `tree-size ${files}, ${target}: ${error}`),
    ),
    ...failures.map(({ benchmark, reason }) => `${benchmark}: ${reason}`),
  ];
  // The report is for publication: an error message may name places on this machine.
  const published = lines.map((line) => `- ${line.replaceAll(/(?<![\w.])\/(?:[\w.@-]+\/)+/g, "…/")}`);
  return published.length === 0 ? [] : ["### Not measured", published.join("\n")];
}

function valid(cell: Cell): boolean {
  return cell.error === undefined && cell.seconds.length > 0;
}
