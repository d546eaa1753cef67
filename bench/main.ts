/** `npm run bench`: how our file system compares with others, and how its cost grows. See --help. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isRoot, ordinaryUser } from "./account.ts";
import { measureAgent } from "./agent/calls.ts";
import type { Identity } from "./client.ts";
import { measureIdleMemory } from "./idle-memory.ts";
import { available, lineUp } from "./line-up.ts";
import { describeMachine } from "./machine.ts";
import { measureNetworks } from "./network/networks.ts";
import { type Options, parseOptions, USAGE } from "./options.ts";
import { progress, report } from "./report.ts";
import type { Results } from "./results.ts";
import { measureRules } from "./rules.ts";
import { measureRuntimes } from "./runtimes.ts";
import { measure } from "./sample.ts";
import { measureSdk, measureSdkUploads } from "./sdk/calls.ts";
import { plantSeed, type Seed } from "./seed.ts";
import { measureCalls } from "./service/calls.ts";
import { measureLoad } from "./service/load.ts";
import { measurePorts } from "./service/ports.ts";
import { measureUploads } from "./service/uploads.ts";
import { TARGETS } from "./targets/table.ts";
import type { Target } from "./targets/target.ts";
import { countRequests, type RequestCount, Tracer } from "./trace.ts";
import { measureTrees } from "./tree-size.ts";
import { isMemory, makeWorkDirectory, type WorkDirectory } from "./work-directory.ts";
import { type Workload, workloadNames, workloads } from "./workloads.ts";

const RESULTS = fileURLToPath(new URL("results", import.meta.url));
const SCALING = ["rules", "tree-size", "idle-memory", "runtimes"] as const;
const SERVICE = [
  "service-uploads",
  "service-calls",
  "service-load",
  "service-ports",
  "sdk-calls",
  "sdk-uploads",
  "agent-calls",
  "network",
] as const;

/** What the parts of a run have in common. */
interface Session {
  readonly options: Options;
  /** Filled in as the run goes on: what is there when it is broken off is right, only not everything. */
  readonly results: Results;
  /** Everything the run writes is in here. */
  readonly work: WorkDirectory;
  readonly user: Identity | undefined;
  readonly signal: AbortSignal;
}

async function main(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help")) {
    process.stdout.write(USAGE);
    return 0;
  }
  const options = parseOptions(argv);
  if (options.list) {
    process.stdout.write(`${[...workloadNames(), ...SCALING, ...SERVICE].join("\n")}\n`);
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  }
  const results = await emptyResults(options);
  try {
    await benchmark(options, results, stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    results.failures.push({ benchmark: "the rest", reason: stop.signal.reason.message });
  }
  const text = report(results);
  process.stdout.write(`\n${text}\n`);
  if (options.markdown !== undefined) await writeFile(options.markdown, `${text}\n`);
  return stop.signal.aborted ? 1 : 0;
}

async function benchmark(options: Options, results: Results, signal: AbortSignal): Promise<void> {
  if (wanted("rules", options)) {
    await part("rules", { options, results, signal }, async () => {
      results.rules = measureRules(options.sizes.maxRules, options.runs);
    });
  }
  const onTheTree = [...workloadNames(), "tree-size", "idle-memory", "runtimes"].some((name) =>
    options.only.test(name),
  );
  const onTheService = SERVICE.some((name) => wanted(name, options));
  if (!onTheTree && !onTheService) return;

  // Everything made on the way is undone in the opposite order, whether the run ends, fails or is stopped.
  await using cleanup = new AsyncDisposableStack();
  const work = cleanup.use(await makeWorkDirectory(options.directory, say));
  if (await isMemory(work.path)) say("warning: this is memory (tmpfs), not a disk; choose another place with --dir");
  if (onTheService) await service({ options, results, work, signal });
  if (!onTheTree) return;
  const wantsUser = options.targets.some((name) => TARGETS[name]!.needs.includes("user"));
  const user = wantsUser && isRoot() ? cleanup.use(await ordinaryUser(say)).identity : undefined;
  const { able, leftOut } = await available(options.targets, user);
  results.targets.push(...able);
  results.leftOut.push(...leftOut);

  const session = { options, results, work, user, signal };
  say("planting the tree");
  const seed = await plantSeed(work.at("seed"), options.sizes.bigMiB, user);
  await compare(seed, session);
  if (wanted("tree-size", options)) await part("tree-size", session, () => treeSize(session));
  if (wanted("idle-memory", options)) await part("idle-memory", session, () => idleMemory(seed, session));
  if (wanted("runtimes", options)) await part("runtimes", session, () => runtimes(seed, session));
}

/** What the server adds to what it is made of, and the SDK to the server; what a network costs. */
async function service(session: Omit<Session, "user">): Promise<void> {
  const { options, results, work, signal } = session;
  const { sizes, runs } = options;
  const parts: Record<(typeof SERVICE)[number], () => Promise<void>> = {
    "service-uploads": async () => {
      const { uploadFiles: files, singleUploads: singles } = sizes;
      results.uploads = await measureUploads({ directory: work.at("uploads"), files, singles, runs, signal });
    },
    "service-calls": async () => {
      results.calls = await measureCalls({ directory: work.at("calls"), samples: sizes.calls, signal });
    },
    "service-load": async () => {
      const { loadClients: clients, loadCommands: commands } = sizes;
      results.load = await measureLoad({ directory: work.at("load"), clients, commands, signal });
    },
    "service-ports": async () => {
      results.ports = await measurePorts({ directory: work.at("ports"), samples: sizes.calls, signal });
    },
    "sdk-calls": async () => {
      results.sdk = await measureSdk({ directory: work.at("sdk-calls"), samples: sizes.calls, signal });
    },
    "sdk-uploads": async () => {
      const directory = work.at("sdk-uploads");
      results.sdkUploads = await measureSdkUploads({ directory, files: sizes.uploadFiles, signal });
    },
    "agent-calls": async () => {
      results.agent = await measureAgent({ directory: work.at("agent-calls"), samples: sizes.calls, signal });
    },
    network: async () => {
      const { downloadMiB, requests, starts } = sizes;
      results.networks = await measureNetworks({
        ...{ directory: work.at("network"), bytes: downloadMiB * 2 ** 20, requests, starts, runs, signal },
      });
    },
  };
  for (const name of SERVICE) if (wanted(name, options)) await part(name, session, parts[name]);
}

/** The workloads on all targets: their time, then their requests. */
async function compare(seed: Seed, session: Session): Promise<void> {
  const { options, results, signal } = session;
  const chosen = workloads(seed, options.sizes.writeMiB).filter(({ id }) => options.only.test(id));
  if (chosen.length === 0) return;
  await using line = await lineUp(results.targets, seed, session.work, session.user, options);
  results.leftOut.push(...line.leftOut);
  for (const workload of options.timing ? chosen : []) {
    const cells = await measure(workload, suited(line.targets, workload), options.runs, signal);
    results.timings.push({ id: workload.id, label: workload.label, cells });
    say(progress(workload.id, cells));
    await saveResults(results, options.json);
  }
  if (options.trace) await part("requests", session, () => countAll(chosen, line.targets, session));
}

/** Counts on one placement only: where a process runs changes no request. */
async function countAll(
  chosen: readonly Workload[],
  targets: readonly Target[],
  { results, signal }: Session,
): Promise<void> {
  if (!isRoot()) throw new Error("counting requests needs root");
  await using tracer = await Tracer.open();
  const placement = targets.some(({ client }) => client.pinned);
  const traced = targets.filter(({ client, connection }) => client.pinned === placement && connection() !== undefined);
  for (const workload of chosen) {
    say(`requests: ${workload.id}`);
    const counts: RequestCount[] = [];
    for (const target of suited(traced, workload)) counts.push(await countRequests(tracer, workload, target, signal));
    results.requests.push({ id: workload.id, label: workload.label, counts });
  }
}

async function treeSize({ options, results, work, signal }: Session): Promise<void> {
  // One configuration of ours is enough: the others look names up in the same way.
  const alike = isRoot() ? ["ours-plain", "ours-user"] : ["ours-plain"];
  results.trees = await measureTrees({
    cache: options.cache,
    directory: work.at("tree-size"),
    maxFiles: options.sizes.maxTree,
    runs: options.runs,
    pinned: options.placements.includes(true),
    kinds: results.targets.filter((name) => !alike.includes(name)).map((name) => TARGETS[name]!),
    say,
    signal,
  });
}

async function idleMemory(seed: Seed, { options, results, work, signal }: Session): Promise<void> {
  if (!results.targets.some((name) => TARGETS[name]!.family === "ours")) return;
  const place = work.at("idle-memory");
  results.idleMemory = await measureIdleMemory(seed, place, options.sizes.idleMounts, signal);
}

async function runtimes(seed: Seed, { options, results, work, signal }: Session): Promise<void> {
  results.runtimes = await measureRuntimes({
    codebase: seed.directory,
    directory: work.at("runtimes"),
    samples: options.sizes.execs,
    crowd: options.sizes.crowd,
    signal,
  });
}

/** One part of the run that fails must not take the others with it. */
async function part(
  name: string,
  { options, results, signal }: Pick<Session, "options" | "results" | "signal">,
  work: () => Promise<void>,
): Promise<void> {
  say(name);
  try {
    await work();
  } catch (error) {
    signal.throwIfAborted();
    results.failures.push({ benchmark: name, reason: error instanceof Error ? error.message : String(error) });
  } finally {
    await saveResults(results, options.json);
  }
}

function suited(targets: readonly Target[], workload: Workload): Target[] {
  return targets.filter(({ writable }) => writable || !workload.writes);
}

function wanted(benchmark: (typeof SCALING)[number] | (typeof SERVICE)[number], { only, timing }: Options): boolean {
  return timing && only.test(benchmark);
}

async function emptyResults({ directory, runs, quick, freshProcess }: Options): Promise<Results> {
  return {
    startedAt: new Date().toISOString(),
    machine: await describeMachine(directory),
    runs,
    quick,
    freshProcess,
    targets: [],
    leftOut: [],
    timings: [],
    requests: [],
    failures: [],
  };
}

/** After every step, so that a run that is broken off is not lost. */
async function saveResults(results: Results, copy: string | undefined): Promise<void> {
  const text = `${JSON.stringify(results, undefined, 1)}\n`;
  await mkdir(RESULTS, { recursive: true });
  await writeFile(join(RESULTS, `${results.startedAt.replaceAll(":", "-")}.json`), text);
  if (copy !== undefined) await writeFile(copy, text);
}

/** To the terminal while the run goes on, with the seconds since its start. */
function say(line: string): void {
  process.stderr.write(`# ${process.uptime().toFixed(0).padStart(4)} ${line}\n`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
