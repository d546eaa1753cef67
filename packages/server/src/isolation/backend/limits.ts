/** What a sandbox may use. Absent means: not limited by us. */
export interface ResourceLimits {
  readonly memoryBytes?: number;
  /** Microseconds of CPU time in each 100 ms: 50,000 is half a CPU, 200,000 are two. */
  readonly cpuQuota?: number;
  /** Weight against other sandboxes when the CPUs are busy; 1024 is the usual one (range 2 … 262,144). */
  readonly cpuShares?: number;
  /** Processes and threads together. */
  readonly pids?: number;
}

/** What a sandbox uses now, as far as the host can tell. */
export interface ResourceUsage {
  readonly memoryBytes?: number | undefined;
  readonly pids?: number | undefined;
  readonly cpuMicros?: number | undefined;
}
