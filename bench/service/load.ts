import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { openIsolation } from "@agentfense/server/isolation";
import { exec, makeCodebase, makeSandbox } from "../../test/support/belongings.ts";
import { GrpcClient } from "../../test/support/grpc-client.ts";
import { quantile, timed } from "../sample.ts";
import { eventLoopLag, startServer } from "./server.ts";

/** Many clients at once, each with a sandbox of its own, one command after the other. */
export interface LoadCosts {
  readonly clients: number;
  readonly rows: readonly LoadRow[];
  readonly lagMs: { readonly p99: number; readonly max: number };
}

export interface LoadRow {
  readonly label: string;
  readonly commands: number;
  readonly failed: number;
  readonly perSecond: number;
  /** Milliseconds from the call to its answer. */
  readonly p50: number;
  readonly p99: number;
}

export interface LoadBenchmark {
  readonly directory: string;
  readonly clients: number;
  /** Of each client. */
  readonly commands: number;
  readonly signal: AbortSignal;
}

/** A tenth is enough to compare with. */
const PART_WITHOUT_SERVICE = 10;
const WARM_UP = 2;

export async function measureLoad(benchmark: LoadBenchmark): Promise<LoadCosts> {
  const { clients } = benchmark;
  const without = await withoutService(benchmark);
  const { row, lagMs } = await withService(benchmark);
  return { clients, rows: [row, without], lagMs };
}

async function withService(benchmark: LoadBenchmark): Promise<{ row: LoadRow; lagMs: LoadCosts["lagMs"] }> {
  const { directory, clients, commands, signal } = benchmark;
  await using server = await startServer(join(directory, "server"));
  using resources = new DisposableStack();
  const connect = () => resources.use(new GrpcClient(server.grpc, { ownConnections: true }));
  const codebase = await makeCodebase(connect(), { "README.md": "# A project\n" }, "bench");
  const parties = await Promise.all(
    Array.from({ length: clients }, async () => {
      const client = connect();
      return { client, sandbox: await makeSandbox(client, codebase) };
    }),
  );
  const run = async (client: number, number: string): Promise<boolean> => {
    const party = parties[client]!;
    return (await exec(party.client, party.sandbox, `echo ${number}`)).stdout === `${number}\n`;
  };
  await crowd(clients, WARM_UP, run, signal);
  await eventLoopLag(server);
  const row = { label: "over gRPC", ...(await crowd(clients, commands, run, signal)) };
  return { row, lagMs: await eventLoopLag(server) };
}

async function withoutService({ directory, clients, commands, signal }: LoadBenchmark): Promise<LoadRow> {
  await using isolation = await openIsolation({ runtimes: ["bwrap"] });
  const codebase = join(directory, "codebase");
  await mkdir(codebase, { recursive: true });
  const sandboxes = await Promise.all(
    Array.from({ length: clients }, async (_, index) => {
      const delta = join(directory, `delta-${index}`);
      await mkdir(delta);
      const rules = [{ pattern: "/**", permission: "write" }] as const;
      const sandbox = await isolation.create({ runtime: "bwrap", workspaces: [{ lowers: [codebase], delta, rules }] });
      await sandbox.start();
      return sandbox;
    }),
  );
  const run = async (client: number, number: string): Promise<boolean> =>
    (await sandboxes[client]!.exec({ command: `echo ${number}` })).stdout.toString() === `${number}\n`;
  await crowd(clients, WARM_UP, run, signal);
  const each = Math.max(1, Math.ceil(commands / PART_WITHOUT_SERVICE));
  return { label: "isolation alone", ...(await crowd(clients, each, run, signal)) };
}

/** Each command prints a number of its own; `run` tells whether that came back. */
async function crowd(
  clients: number,
  commands: number,
  run: (client: number, number: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<Omit<LoadRow, "label">> {
  const durations: number[] = [];
  let failed = 0;
  const one = async (client: number): Promise<void> => {
    for (let i = 0; i < commands; i += 1) {
      signal.throwIfAborted();
      const ms = await timed(async () => {
        if (!(await run(client, `${client}-${i}`).catch(() => false))) failed += 1;
      });
      durations.push(ms);
    }
  };
  const totalMs = await timed(() => Promise.all(Array.from({ length: clients }, (_, client) => one(client))));
  return {
    commands: durations.length,
    failed,
    perSecond: durations.length / (totalMs / 1000),
    p50: quantile(durations, 0.5),
    p99: quantile(durations, 0.99),
  };
}
