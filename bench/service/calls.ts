import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type BoxedWorkspace, openIsolation } from "@agentfense/server/isolation";
import { exec, makeCodebase, makeSandbox, makeSession, sessionExec } from "../../test/support/belongings.ts";
import { GrpcClient } from "../../test/support/grpc-client.ts";
import { RestClient } from "../../test/support/rest-client.ts";
import { BareBwrap } from "../bare-bwrap.ts";
import { quantile, timed } from "../sample.ts";
import { startServer } from "./server.ts";

/** What a call costs a client that makes one after the other, samples of all rows taken in turns. Milliseconds. */
export interface CallCosts {
  readonly samples: number;
  readonly rows: readonly CallRow[];
}

export interface CallRow {
  readonly label: string;
  readonly p50: number;
  readonly p99: number;
}

export interface CallBenchmark {
  readonly directory: string;
  readonly samples: number;
  readonly signal: AbortSignal;
}

const FILES = { "README.md": "# A project\n", "src/main.txt": "content\n" } as const;
const WARM_UP = 5;
/** The box that is made in place of a used one is not to be paid for by the row that follows. */
const PAUSE_MS = 30;
/** Calls that take less than a millisecond need more samples. */
const HOT_FACTOR = 10;

export async function measureCalls(benchmark: CallBenchmark): Promise<CallCosts> {
  const { directory, samples, signal } = benchmark;
  await using bare = new BareBwrap();
  await using isolation = await openIsolation({ runtimes: ["bwrap"] });
  await using sandbox = await isolation.create(await specification(directory));
  await sandbox.start();
  await using server = await startServer(join(directory, "server"));
  using grpc = new GrpcClient(server.grpc);
  const rest = new RestClient(server.http);

  const codebase = await makeCodebase(grpc, FILES, "bench");
  // A sandbox for each row.
  const syncing = async () => await makeSandbox(grpc, codebase);
  const manual = async () => await makeSandbox(grpc, codebase, { sync: "SYNC_MODE_MANUAL" });
  const [first, second, third, fourth, fifth] = [
    await syncing(),
    await manual(),
    await syncing(),
    await manual(),
    await syncing(),
  ];
  const session = await makeSession(grpc, second);
  let written = 0;
  const write = () => `echo ${written++} > src/main.txt`;

  const rows: Record<string, () => Promise<unknown>> = {
    "isolation, exec of `true`": () => succeed(sandbox, "true"),
    "gRPC, Exec of `true`, sync on-exec": () => ended(exec(grpc, first, "true")),
    "gRPC, Exec of `true`, sync manual": () => ended(exec(grpc, second, "true")),
    "REST, Exec of `true`, sync on-exec": () => answered(rest.post(`/v1/sandboxes/${third}/exec`, { command: "true" })),
    "gRPC, SessionExec of `true`": () => ended(sessionExec(grpc, session, "true")),
    "isolation, exec that writes a file": () => succeed(sandbox, write()),
    "gRPC, Exec that writes a file, sync manual": () => ended(exec(grpc, fourth, write())),
    "gRPC, Exec that writes a file, sync on-exec": () => ended(exec(grpc, fifth, write())),
    "gRPC, GetSandbox": () => grpc.call("SandboxService", "GetSandbox", { sandbox_id: first }),
    "REST, GetSandbox": () => answered(rest.get(`/v1/sandboxes/${first}`)),
  };
  const bareRow = "bare bwrap, `true`";
  const measured = new Map<string, number[]>([bareRow, ...Object.keys(rows)].map((label) => [label, []]));
  for (let i = -WARM_UP; i < samples; i += 1) {
    const keep = (label: string, ms: number): void => {
      if (i >= 0) measured.get(label)!.push(ms);
    };
    await setTimeout(PAUSE_MS, undefined, { signal });
    keep(bareRow, await bare.milliseconds());
    for (const [label, sample] of Object.entries(rows)) {
      await setTimeout(PAUSE_MS, undefined, { signal });
      keep(label, await timed(sample));
    }
  }
  for (const label of ["gRPC, GetSandbox", "REST, GetSandbox"]) {
    const hot: number[] = [];
    for (let i = 0; i < samples * HOT_FACTOR; i += 1) hot.push(await timed(rows[label]!));
    measured.set(`${label}, without pauses`, hot);
  }
  return {
    samples,
    rows: [...measured].map(([label, all]) => ({ label, p50: quantile(all, 0.5), p99: quantile(all, 0.99) })),
  };
}

/** The same tree as the codebase's. */
async function specification(directory: string) {
  const [codebase, delta] = [join(directory, "codebase"), join(directory, "delta")];
  await mkdir(join(codebase, "src"), { recursive: true });
  await mkdir(delta);
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(codebase, path), content);
  const rules = [{ pattern: "/**", permission: "write" }] as const;
  return { runtime: "bwrap", workspaces: [{ lowers: [codebase], delta, rules }] } as const;
}

async function succeed(sandbox: BoxedWorkspace, command: string): Promise<void> {
  const { exitCode, stderr } = await sandbox.exec({ command });
  if (exitCode !== 0) throw new Error(`${command} ended with ${exitCode}: ${stderr.toString()}`);
}

async function ended(result: ReturnType<typeof exec>): Promise<void> {
  const { exit_code, stderr, sync_problems } = await result;
  if (exit_code !== 0) throw new Error(`a command ended with ${exit_code}: ${stderr}`);
  if (sync_problems.length > 0) throw new Error(sync_problems.join("; "));
}

async function answered(answer: ReturnType<RestClient["get"]>): Promise<void> {
  const { status, text } = await answer;
  if (status !== 200) throw new Error(`${status}: ${text}`);
}
