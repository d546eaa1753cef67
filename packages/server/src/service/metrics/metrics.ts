import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** Where numbers come from that others keep; asked at each scrape. */
export interface MetricSources {
  /** By status: "running" → 3. */
  readonly sandboxCounts?: () => Readonly<Record<string, number>> | Promise<Readonly<Record<string, number>>>;
  readonly counters?: () => IsolationCounters | Promise<IsolationCounters>;
  /** In the changes of all sandboxes together. */
  readonly deltaBytes?: () => number | Promise<number>;
}

type Read = number | Readonly<Record<string, number>>;
type Numbers = () => Read | Promise<Read>;

/** Since the server started; they never decrease. */
export interface IsolationCounters {
  /** By kind: "lookup" → 1200. */
  readonly fuseOperations: Readonly<Record<string, number>>;
  readonly denials: number;
}

const EXEC_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600];
const RPC_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

/** What an operator sees of the server: numbers, and never an id, a path or a name of an owner. */
export class Metrics implements Disposable {
  readonly #registry = new Registry();
  readonly #loopDelay = monitorEventLoopDelay({ resolution: 20 });
  readonly #execSeconds = new Histogram({
    name: "agentfense_exec_duration_seconds",
    help: "Time from the start of a command to its end",
    buckets: EXEC_SECONDS,
    registers: [this.#registry],
  });
  readonly #execs = new Counter({
    name: "agentfense_execs_total",
    help: "Commands that ended, by how",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #starts = new Histogram({
    name: "agentfense_sandbox_start_seconds",
    help: "Time to start a sandbox",
    labelNames: ["result"],
    buckets: EXEC_SECONDS,
    registers: [this.#registry],
  });
  readonly #syncs = new Counter({
    name: "agentfense_sync_total",
    help: "Writings of a sandbox's changes into its codebase, by result",
    labelNames: ["result"],
    registers: [this.#registry],
  });
  readonly #syncConflicts = new Counter({
    name: "agentfense_sync_conflicts_total",
    help: "Paths whose newer content was replaced by a sync",
    registers: [this.#registry],
  });
  readonly #rpcSeconds = new Histogram({
    name: "agentfense_rpc_duration_seconds",
    help: "Time from a call to its answer, or to the end of its stream",
    labelNames: ["method", "code"],
    buckets: RPC_SECONDS,
    registers: [this.#registry],
  });

  constructor({ sandboxCounts, counters, deltaBytes }: MetricSources = {}) {
    this.#loopDelay.enable();
    if (sandboxCounts) this.#read(Gauge, "agentfense_sandboxes", "Sandboxes by state", sandboxCounts, "state");
    if (deltaBytes) {
      const help = "Bytes in the changes and the own homes of all sandboxes";
      this.#read(Gauge, "agentfense_delta_bytes", help, deltaBytes);
    }
    if (counters) this.#readCounters(counters);
    this.#readProcess();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    return await this.#registry.metrics();
  }

  exec(durationMs: number, outcome: string): void {
    this.#execSeconds.observe(durationMs / 1000);
    this.#execs.inc({ outcome });
  }

  start(durationMs: number, ok: boolean): void {
    this.#starts.observe({ result: ok ? "started" : "failed" }, durationMs / 1000);
  }

  sync(result: string, counts: { readonly conflicts: number } = { conflicts: 0 }): void {
    this.#syncs.inc({ result });
    this.#syncConflicts.inc(counts.conflicts);
  }

  /** `method` comes from a descriptor, never from a request: the number of series is bounded. */
  rpc(method: string, code: string, durationMs: number): void {
    this.#rpcSeconds.observe({ method, code }, durationMs / 1000);
  }

  [Symbol.dispose](): void {
    this.#loopDelay.disable();
    this.#registry.clear();
  }

  #readCounters(counters: NonNullable<MetricSources["counters"]>): void {
    const operations = async () => (await counters()).fuseOperations;
    const help = "Requests of the kernel to the sandboxes' file systems, by kind";
    this.#read(Counter, "agentfense_fuse_operations_total", help, operations, "operation");
    const denials = async () => (await counters()).denials;
    this.#read(Counter, "agentfense_denials_total", "File operations that the rules refused", denials);
  }

  #readProcess(): void {
    const delay = this.#loopDelay;
    const lags = () => {
      // The histogram's clock ticks every 20 ms; what is above that is lag. Without a sample it holds NaN.
      const lag = (nanoseconds: number): number => (delay.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - 0.02));
      const quantiles = { "0.5": lag(delay.percentile(50)), "0.99": lag(delay.percentile(99)), "1": lag(delay.max) };
      delay.reset();
      return quantiles;
    };
    const lagHelp = "How late the API thread's timers were since the last scrape";
    this.#read(Gauge, "agentfense_event_loop_lag_seconds", lagHelp, lags, "quantile");
    const memory = () => {
      const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
      return { rss, heap_total: heapTotal, heap_used: heapUsed, external };
    };
    this.#read(Gauge, "agentfense_process_memory_bytes", "Memory of the server process, by kind", memory, "kind");
    const uptimeHelp = "Time since the server process started";
    this.#read(Gauge, "agentfense_process_uptime_seconds", uptimeHelp, () => process.uptime());
  }

  /** A metric that others count: asked for at each scrape, with a label its numbers by the label's values. */
  #read(Kind: typeof Gauge | typeof Counter, name: string, help: string, numbers: Numbers, label?: string): void {
    const labelNames = label === undefined ? [] : [label];
    new Kind({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      async collect() {
        const read = await numbers();
        this.reset();
        if (typeof read === "number") this.inc(read);
        else for (const [value, count] of Object.entries(read)) this.inc({ [label!]: value }, count);
      },
    });
  }
}
