import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { TARGETS } from "./targets/table.ts";

export const USAGE = `usage: node bench/main.ts [options]

  --quick            two samples and small files: to see whether everything works
  --only REGEX       only the benchmarks whose name matches; --list shows the names
  --targets A,B      only these of: ${Object.keys(TARGETS).join(", ")}
                     (native is always measured; the default is all but ours-agent-safe)
  --runs N           samples per number (default 5; the median counts)
  --free             only with client and daemon wherever the scheduler puts them
  --pinned           only with client and daemon on CPU 0
  --trace            only count the FUSE requests (root)
  --no-trace         do not count the FUSE requests
  --fresh-process    a new process for each mount of ours; otherwise a warm engine mounts again, as in a server
  --max-tree N       largest tree for tree-size, in files (default 1,000,000)
  --dir DIR          work there, on a real disk (default: the directory for temporary files)
  --cache DIR        keep the large trees of tree-size there (default: in --dir)
  --json FILE        write the raw numbers to this file as well
  --markdown FILE    write the tables and a description of the machine
  --list             only list the benchmarks
`;

export interface Options {
  readonly only: RegExp;
  readonly targets: readonly string[];
  readonly runs: number;
  /** Which placements are measured: false is free, true is pinned. */
  readonly placements: readonly boolean[];
  readonly timing: boolean;
  readonly trace: boolean;
  readonly freshProcess: boolean;
  readonly directory: string;
  readonly cache: string;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  readonly list: boolean;
  readonly quick: boolean;
  readonly sizes: Sizes;
}

export interface Sizes {
  readonly bigMiB: number;
  readonly writeMiB: number;
  readonly maxRules: number;
  readonly maxTree: number;
  readonly idleMounts: number;
  /** Samples of one command in a sandbox. */
  readonly execs: number;
  /** Sandboxes alive at once. */
  readonly crowd: number;
  /** Files of a directory that is uploaded, and of those that are uploaded one by one. */
  readonly uploadFiles: number;
  readonly singleUploads: number;
  /** Samples of each call of the service. */
  readonly calls: number;
  /** Clients of the service at the same time, and the commands of each. */
  readonly loadClients: number;
  readonly loadCommands: number;
  /** What a program in a sandbox gets from the network at once, and the requests that it makes; sandboxes that are started. */
  readonly downloadMiB: number;
  readonly requests: number;
  readonly starts: number;
}

const FULL: Sizes = {
  bigMiB: 1024,
  writeMiB: 512,
  maxRules: 10_000,
  maxTree: 1_000_000,
  idleMounts: 100,
  execs: 100,
  crowd: 200,
  uploadFiles: 10_000,
  singleUploads: 500,
  calls: 200,
  loadClients: 50,
  loadCommands: 200,
  downloadMiB: 256,
  requests: 5_000,
  starts: 20,
};
const QUICK: Sizes = {
  bigMiB: 128,
  writeMiB: 64,
  maxRules: 1_000,
  maxTree: 10_000,
  idleMounts: 20,
  execs: 20,
  crowd: 20,
  uploadFiles: 1_000,
  singleUploads: 50,
  calls: 20,
  loadClients: 10,
  loadCommands: 5,
  downloadMiB: 32,
  requests: 500,
  starts: 3,
};

/** Throws with a message for the user when the command line makes no sense. */
export function parseOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      targets: { type: "string" },
      runs: { type: "string" },
      free: { type: "boolean", default: false },
      pinned: { type: "boolean", default: false },
      trace: { type: "boolean", default: false },
      "no-trace": { type: "boolean", default: false },
      "fresh-process": { type: "boolean", default: false },
      "max-tree": { type: "string" },
      dir: { type: "string", default: tmpdir() },
      cache: { type: "string" },
      json: { type: "string" },
      markdown: { type: "string" },
      list: { type: "boolean", default: false },
    },
  });
  const sizes = values.quick ? QUICK : FULL;
  const both = values.free === values.pinned;
  return {
    only: new RegExp(values.only),
    targets: chosenTargets(values.targets),
    runs: positive("--runs", values.runs, values.quick ? 2 : 5),
    // With one CPU there is nothing to choose between.
    placements: both && availableParallelism() > 1 ? [false, true] : [values.pinned],
    timing: !values.trace,
    trace: !values["no-trace"],
    freshProcess: values["fresh-process"],
    directory: values.dir,
    cache: values.cache ?? join(values.dir, "agentfense-bench-cache"),
    json: values.json,
    markdown: values.markdown,
    list: values.list,
    quick: values.quick,
    sizes: { ...sizes, maxTree: positive("--max-tree", values["max-tree"], sizes.maxTree) },
  };
}

function chosenTargets(text: string | undefined): string[] {
  const known = Object.entries(TARGETS);
  if (text === undefined) return known.filter(([, kind]) => kind.onRequest === undefined).map(([name]) => name);
  const wanted = text.split(",");
  const unknown = wanted.filter((name) => !Object.hasOwn(TARGETS, name));
  if (unknown.length > 0) throw new Error(`no such target: ${unknown.join(", ")}`);
  return known.map(([name]) => name).filter((name) => name === "native" || wanted.includes(name));
}

function positive(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name} takes a positive whole number`);
  return value;
}
