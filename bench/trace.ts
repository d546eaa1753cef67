import { mkdir, mkdtemp, readFile, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "./client.ts";
import { sample } from "./sample.ts";
import type { Target } from "./targets/target.ts";
import type { Workload } from "./workloads.ts";

/** How many requests of each kind the kernel sent, the commonest first. */
export interface RequestCount {
  readonly target: string;
  readonly total: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly error?: string;
}

/** A trace instance of our own, so that nobody else's tracing is disturbed. Needs root. */
export class Tracer implements AsyncDisposable {
  readonly #mountPoint: string;
  readonly #instance: string;

  private constructor(mountPoint: string) {
    this.#mountPoint = mountPoint;
    this.#instance = join(mountPoint, "instances", `agentfense-bench-${process.pid}`);
  }

  static async open(): Promise<Tracer> {
    const mountPoint = await mkdtemp(join(tmpdir(), "agentfense-bench-trace-"));
    const tracer = new Tracer(mountPoint);
    try {
      await run(["mount", "-t", "tracefs", "tracefs", mountPoint], { pinned: false });
      await mkdir(tracer.#instance);
      await tracer.#set("buffer_size_kb", "32768");
      return tracer;
    } catch (error) {
      await tracer[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Counts what is sent on one connection while the work runs. */
  async count<T>(connection: number, work: () => Promise<T>): Promise<{ result: T; byKind: Record<string, number> }> {
    await this.#set(`${EVENT}/filter`, `connection == ${connection}`);
    await this.#set("trace", "");
    await this.#set(`${EVENT}/enable`, "1");
    try {
      const result = await work();
      // RELEASE is sent after the client has gone on.
      await sleep(100);
      return { result, byKind: tally(await readFile(join(this.#instance, "trace"), "utf8")) };
    } finally {
      await this.#set(`${EVENT}/enable`, "0");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rmdir(this.#instance).catch(() => undefined);
    await run(["umount", this.#mountPoint], { pinned: false }).catch(() => undefined);
    await rmdir(this.#mountPoint);
  }

  async #set(file: string, value: string): Promise<void> {
    await writeFile(join(this.#instance, file), value);
  }
}

const EVENT = "events/fuse/fuse_request_send";

/** Counts one run of a workload on one target, after one that is not counted. */
export async function countRequests(
  tracer: Tracer,
  workload: Workload,
  target: Target,
  signal: AbortSignal,
): Promise<RequestCount> {
  try {
    let byKind: Record<string, number> = {};
    for (const index of [TRACE_SAMPLE, TRACE_SAMPLE + 1]) {
      await sample(workload, target, index, signal, async (work) => {
        const connection = target.connection();
        if (connection === undefined) throw new Error("not a FUSE mount");
        const counted = await tracer.count(connection, work);
        byKind = counted.byKind;
        return counted.result;
      });
    }
    const total = Object.values(byKind).reduce((sum, n) => sum + n, 0);
    return { target: target.name, total, byKind };
  } catch (error) {
    signal.throwIfAborted();
    return { target: target.name, total: 0, byKind: {}, error: error instanceof Error ? error.message : String(error) };
  }
}

// Far from the numbers of the timed samples, whose output is still there.
const TRACE_SAMPLE = 10_000;

/** From lines like `… fuse_request_send: connection 53 req 4 opcode 1 (FUSE_LOOKUP) len 47`. */
function tally(trace: string): Record<string, number> {
  const [, kept, written] = /entries-in-buffer\/entries-written: (\d+)\/(\d+)/.exec(trace) ?? [];
  if (kept !== written) throw new Error(`the trace buffer overflowed: ${kept} of ${written} requests left`);
  const counts = new Map<string, number>();
  for (const [, number, name = ""] of trace.matchAll(/ opcode (\d+) \((?:FUSE_)?(\w+)\)/g)) {
    // A kind the trace event has no name for is printed as a hexadecimal number.
    const kind = name.startsWith("0x") ? (NEWER_KINDS[Number(number)] ?? `opcode ${number}`) : name;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

const NEWER_KINDS: Readonly<Record<number, string>> = { 53: "COPY_FILE_RANGE_64" };
