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
  readonly #loopDelay: ReturnType<typeof monitorEventLoopDelay>;
  readonly #execSeconds: Histogram;
  readonly #execs: Counter<"outcome">;
  readonly #starts: Histogram<"result">;
  readonly #syncs: Counter<"result">;
  readonly #syncConflicts: Counter;
  readonly #rpcSeconds: Histogram<"method" | "code">;

  constructor(sources: MetricSources = {}) {
    const registers = [this.#registry];
    this.#loopDelay = monitorEventLoopDelay({ resolution: 20 });
    this.#loopDelay.enable();
    this.#execSeconds = new Histogram({
      name: "agentfense_exec_duration_seconds",
      help: "Time from the start of a command to its end",
      buckets: EXEC_SECONDS,
      registers,
    });
    this.#execs = new Counter({
      name: "agentfense_execs_total",
      help: "Commands that ended, by how",
      labelNames: ["outcome"],
      registers,
    });
    this.#starts = new Histogram({
      name: "agentfense_sandbox_start_seconds",
      help: "Time to start a sandbox",
      labelNames: ["result"],
      buckets: EXEC_SECONDS,
      registers,
    });
    this.#syncs = new Counter({
      name: "agentfense_sync_total",
      help: "Writings of a sandbox's changes into its codebase, by result",
      labelNames: ["result"],
      registers,
    });
    this.#syncConflicts = new Counter({
      name: "agentfense_sync_conflicts_total",
      help: "Paths whose newer content was replaced by a sync",
      registers,
    });
    this.#rpcSeconds = new Histogram({
      name: "agentfense_rpc_duration_seconds",
      help: "Time from a call to its answer, or to the end of its stream",
      labelNames: ["method", "code"],
      buckets: RPC_SECONDS,
      registers,
    });
    this.#collectSandboxes(sources);
    this.#collectFileSystem(sources);
    this.#collectProcess();
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

  #collectSandboxes({ sandboxCounts, deltaBytes }: MetricSources): void {
    const registers = [this.#registry];
    if (sandboxCounts !== undefined) {
      new Gauge({
        name: "agentfense_sandboxes",
        help: "Sandboxes by state",
        labelNames: ["state"],
        registers,
        async collect() {
          const counts = await sandboxCounts();
          this.reset();
          for (const [state, count] of Object.entries(counts)) this.set({ state }, count);
        },
      });
    }
    if (deltaBytes !== undefined) {
      new Gauge({
        name: "agentfense_delta_bytes",
        help: "Bytes in the changes and the own homes of all sandboxes",
        registers,
        async collect() {
          this.set(await deltaBytes());
        },
      });
    }
  }

  #collectFileSystem({ counters }: MetricSources): void {
    if (counters === undefined) return;
    const registers = [this.#registry];
    new Counter({
      name: "agentfense_fuse_operations_total",
      help: "Requests of the kernel to the sandboxes' file systems, by kind",
      labelNames: ["operation"],
      registers,
      async collect() {
        const { fuseOperations } = await counters();
        this.reset();
        for (const [operation, count] of Object.entries(fuseOperations)) this.inc({ operation }, count);
      },
    });
    new Counter({
      name: "agentfense_denials_total",
      help: "File operations that the rules refused",
      registers,
      async collect() {
        const { denials } = await counters();
        this.reset();
        this.inc(denials);
      },
    });
  }

  #collectProcess(): void {
    const registers = [this.#registry];
    const delay = this.#loopDelay;
    new Gauge({
      name: "agentfense_event_loop_lag_seconds",
      help: "How late the API thread's timers were since the last scrape",
      labelNames: ["quantile"],
      registers,
      collect() {
        // The histogram's clock ticks every 20 ms; what is above that is lag. Without a sample it holds NaN.
        const lag = (nanoseconds: number): number => (delay.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - 0.02));
        this.set({ quantile: "0.5" }, lag(delay.percentile(50)));
        this.set({ quantile: "0.99" }, lag(delay.percentile(99)));
        this.set({ quantile: "1" }, lag(delay.max));
        delay.reset();
      },
    });
    new Gauge({
      name: "agentfense_process_memory_bytes",
      help: "Memory of the server process, by kind",
      labelNames: ["kind"],
      registers,
      collect() {
        const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
        for (const [kind, bytes] of Object.entries({ rss, heap_total: heapTotal, heap_used: heapUsed, external })) {
          this.set({ kind }, bytes);
        }
      },
    });
    new Gauge({
      name: "agentfense_process_uptime_seconds",
      help: "Time since the server process started",
      registers,
      collect() {
        this.set(process.uptime());
      },
    });
  }
}
