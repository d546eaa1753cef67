import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { BareBwrap } from "../bare-bwrap.ts";
import { quantile, timed } from "../sample.ts";
import type { CallRow } from "../service/calls.ts";
import { startServer } from "../service/server.ts";

/** What the SDK adds to a call, and what a whole life of a sandbox costs in the process. Milliseconds. */
export interface SdkCosts {
  readonly samples: number;
  readonly rows: readonly CallRow[];
}

export interface SdkBenchmark {
  readonly directory: string;
  readonly samples: number;
  readonly signal: AbortSignal;
}

const WARM_UP = 5;
/** The box that is made in place of a used one is not to be paid for by the row that follows. */
const PAUSE_MS = 30;
/** Each is a process of its own. */
const FIRST_LIVES = 10;
const FIRST_LIFE = fileURLToPath(new URL("first-life.ts", import.meta.url));

export async function measureSdk({ directory, samples, signal }: SdkBenchmark): Promise<SdkCosts> {
  const project = join(directory, "project");
  await mkdir(join(project, "src"), { recursive: true });
  await writeFile(join(project, "src/main.txt"), "content\n");
  await using bare = new BareBwrap();
  await using server = await startServer(join(directory, "server"));
  const raw = createClient(SandboxService, createGrpcTransport({ baseUrl: `http://${server.grpc}` }));
  await using engine = await EmbeddedEngine.open();
  const options = { preset: "full-access" } as const;
  await using rawTarget = await Sandbox.fromLocal(project, { ...options, endpoint: server.grpc });
  await using remote = await Sandbox.fromLocal(project, { ...options, endpoint: server.grpc });
  await using embedded = await Sandbox.fromLocal(project, { ...options, engine });
  await using session = await embedded.session();

  const rows: Record<string, () => Promise<unknown>> = {
    "the RPC alone, Exec of `true`": () => raw.exec({ sandboxId: rawTarget.id, command: "true" }),
    'SDK, remote, `run("true")`': () => remote.run("true", { check: true }),
    'SDK, embedded, `run("true")`': () => embedded.run("true", { check: true }),
    'SDK, embedded, `session.exec("true")`': () => session.exec("true", { check: true }),
    'SDK, embedded, `fromLocal` + `run("true")` + dispose': () => life(project, { ...options, engine }),
    'SDK, remote, `fromLocal` + `run("true")` + dispose': () => life(project, { ...options, endpoint: server.grpc }),
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
  const first: number[] = [];
  for (let i = 0; i < FIRST_LIVES; i += 1) first.push(await firstLife(project, signal));
  measured.set("the same, embedded, the first of a process (its engine starts; its modules are loaded)", first);
  return {
    samples,
    rows: [...measured].map(([label, all]) => ({ label, p50: quantile(all, 0.5), p99: quantile(all, 0.99) })),
  };
}

async function life(project: string, options: Parameters<typeof Sandbox.fromLocal>[1]): Promise<void> {
  await using sandbox = await Sandbox.fromLocal(project, options);
  await sandbox.run("true", { check: true });
}

async function firstLife(project: string, signal: AbortSignal): Promise<number> {
  const child = spawn(process.execPath, [FIRST_LIFE, project], { stdio: ["ignore", "pipe", "inherit"], signal });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (code !== 0) throw new Error(`the first life of a process ended with ${code}`);
  return Number(printed);
}

/** What it takes the SDK to bring a directory to the server, the first and the second time, against a copy. */
export interface SdkUploadCosts {
  readonly files: number;
  readonly rows: readonly { readonly label: string; readonly ms: number }[];
  readonly copyMs: number;
}

const CHANGED = 10;

export async function measureSdkUploads(benchmark: {
  readonly directory: string;
  readonly files: number;
  readonly signal: AbortSignal;
}): Promise<SdkUploadCosts> {
  const { directory, files, signal } = benchmark;
  const tree = join(directory, "tree");
  for (let i = 0; i < files; i += 1) {
    if (i % 100 === 0) await mkdir(join(tree, `part-${i / 100}`), { recursive: true });
    await writeFile(join(tree, `part-${Math.floor(i / 100)}`, `file-${i}.txt`), `${i}\n`.repeat(100));
  }
  await using server = await startServer(join(directory, "server"));
  const copyMs = await timed(() => cp(tree, join(directory, "copy"), { recursive: true }));
  await using sandbox = await Sandbox.create({ endpoint: server.grpc });
  const { client, codebaseId } = sandbox;
  const upload = () => client.uploadDirectory(codebaseId, tree, { signal });
  const first = await timed(upload);
  for (let i = 0; i < CHANGED; i += 1) await writeFile(join(tree, "part-0", `file-${i}.txt`), "changed\n");
  let sent = -1;
  const second = await timed(async () => {
    sent = (await upload()).filesSent;
  });
  if (sent > CHANGED) throw new Error(`${sent} files were sent, ${CHANGED} had changed`);
  return {
    files,
    copyMs,
    rows: [
      { label: "a copy by `fs.cp`", ms: copyMs },
      { label: "`uploadDirectory`, the first", ms: first },
      { label: `again, ${CHANGED} files changed`, ms: second },
    ],
  };
}
