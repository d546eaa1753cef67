import { CONTENT_TYPE, Counter, exposition, Histogram, type Metric, type Numbers, readMetric } from "./exposition.ts";
import { LoopLag } from "./loop-lag.ts";

/** Where numbers come from that others keep; asked at each scrape. */
export interface MetricSources {
  /** Sandboxes by status: "running" → 3. */
  readonly sandboxCounts?: () => Readonly<Record<string, number>> | Promise<Readonly<Record<string, number>>>;
  readonly counters?: () => IsolationCounters | Promise<IsolationCounters>;
  /** In the changes of all sandboxes together. */
  readonly deltaBytes?: () => number | Promise<number>;
}

/** Since the server started; they never decrease. */
export interface IsolationCounters {
  /** Operations by kind: "lookup" → 1200. */
  readonly fuseOperations: Readonly<Record<string, number>>;
  readonly denials: number;
}

const EXEC_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600];
const RPC_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** What an operator sees of the server: numbers, and never an id, a path or a name of an owner. */
export class Metrics implements Disposable {
  readonly loopLag = new LoopLag();
  readonly #execSeconds = new Histogram(
    "agentfense_exec_duration_seconds",
    "Time from the start of a command to its end",
    { bounds: EXEC_SECONDS, labelled: false },
  );
  readonly #execs = new Counter("agentfense_execs_total", "Commands that ended, by how", { labelled: true });
  readonly #starts = new Histogram("agentfense_sandbox_start_seconds", "Time to start a sandbox", {
    bounds: EXEC_SECONDS,
    labelled: true,
  });
  readonly #syncs = new Counter(
    "agentfense_sync_total",
    "Writings of a sandbox's changes into its codebase, by result",
    { labelled: true },
  );
  readonly #syncConflicts = new Counter(
    "agentfense_sync_conflicts_total",
    "Paths whose newer content was replaced by a sync",
    { labelled: false },
  );
  readonly #rpcSeconds = new Histogram(
    "agentfense_rpc_duration_seconds",
    "Time from a call to its answer, or to the end of its stream",
    { bounds: RPC_SECONDS, labelled: true },
  );
  readonly #metrics: readonly Metric[];

  constructor(sources: MetricSources = {}) {
    this.#metrics = [
      this.#execSeconds,
      this.#execs,
      this.#starts,
      this.#syncs,
      this.#syncConflicts,
      this.#rpcSeconds,
      ...sourceMetrics(sources),
      ...processMetrics(this.loopLag),
    ];
  }

  get contentType(): string {
    return CONTENT_TYPE;
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    return await exposition(this.#metrics);
  }

  exec(durationMs: number, outcome: string): void {
    this.#execSeconds.observe(durationMs / 1000);
    this.#execs.add({ outcome });
  }

  start(durationMs: number, ok: boolean): void {
    this.#starts.observe(durationMs / 1000, { result: ok ? "started" : "failed" });
  }

  sync(result: string, counts: { readonly conflicts: number } = { conflicts: 0 }): void {
    this.#syncs.add({ result });
    this.#syncConflicts.add({}, counts.conflicts);
  }

  /** `method` comes from a descriptor, never from a request: the number of series is bounded. */
  rpc(method: string, code: string, durationMs: number): void {
    this.#rpcSeconds.observe(durationMs / 1000, { method, code });
  }

  [Symbol.dispose](): void {
    this.loopLag[Symbol.dispose]();
  }
}

function sourceMetrics({ sandboxCounts, counters, deltaBytes }: MetricSources): Metric[] {
  return [
    ...(sandboxCounts ? [gauge("agentfense_sandboxes", "Sandboxes by state", sandboxCounts, "state")] : []),
    ...(deltaBytes
      ? [gauge("agentfense_delta_bytes", "Bytes in the changes and the own homes of all sandboxes", deltaBytes)]
      : []),
    ...(counters ? isolationMetrics(counters) : []),
  ];
}

function isolationMetrics(counters: NonNullable<MetricSources["counters"]>): Metric[] {
  return [
    readMetric("counter", {
      name: "agentfense_fuse_operations_total",
      help: "Requests of the kernel to the sandboxes' file systems, by kind",
      numbers: async () => (await counters()).fuseOperations,
      label: "operation",
    }),
    readMetric("counter", {
      name: "agentfense_denials_total",
      help: "File operations that the rules refused",
      numbers: async () => (await counters()).denials,
    }),
  ];
}

function processMetrics(loopLag: LoopLag): Metric[] {
  const memory = () => {
    const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
    return { rss, heap_total: heapTotal, heap_used: heapUsed, external };
  };
  const lagHelp = "How late the API thread's timers were since the last scrape, while calls ran";
  return [
    gauge("agentfense_event_loop_lag_seconds", lagHelp, () => loopLag.take(), "quantile"),
    gauge("agentfense_process_memory_bytes", "Memory of the server process, by kind", memory, "kind"),
    gauge("agentfense_process_uptime_seconds", "Time since the server process started", () => process.uptime()),
  ];
}

function gauge(name: string, help: string, numbers: Numbers, label?: string): Metric {
  return readMetric("gauge", { name, help, numbers, label });
}
