import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeCodebase } from "../../test/support/belongings.ts";
import { GrpcClient } from "../../test/support/grpc-client.ts";
import type { TestServer } from "../../test/support/server.ts";
import { run } from "../client.ts";
import { median, timed } from "../sample.ts";
import { randomNumbers } from "../seed.ts";
import { agentfense, eventLoopLag, startServer } from "./server.ts";

/** What it takes to bring a directory to the server, against a copy of it on the same disk. Milliseconds. */
export interface UploadCosts {
  readonly files: number;
  readonly bytes: number;
  readonly changed: number;
  readonly rows: readonly { readonly label: string; readonly ms: number }[];
  /** Until the copy was on the disk; an upload is, when it is acknowledged. */
  readonly copyMs: number;
  /** The API thread's during first uploads: the worst of them. */
  readonly lagMs: { readonly p99: number; readonly max: number };
  /** Over UploadFiles, one file a call, one call after the other. */
  readonly single: { readonly files: number; readonly msPerFile: number };
}

export interface UploadBenchmark {
  readonly directory: string;
  readonly files: number;
  readonly singles: number;
  readonly runs: number;
  readonly signal: AbortSignal;
}

const CHANGED = 10;
const FILE_BYTES = 1024;
const FILES_PER_DIRECTORY = 50;
const UNPINNED = { pinned: false } as const;

export async function measureUploads(benchmark: UploadBenchmark): Promise<UploadCosts> {
  const { directory, files, runs, signal } = benchmark;
  const tree = join(directory, "tree");
  const random = randomNumbers(11);
  await plantTree(tree, files, random);
  await using server = await startServer(join(directory, "server"));
  const measured: Record<"copy" | "durable" | "first" | "second" | "same", number[]> = {
    copy: [],
    durable: [],
    first: [],
    second: [],
    same: [],
  };
  const lag = { p99: 0, max: 0 };
  for (let i = -1; i < runs; i += 1) {
    const copy = join(directory, `copy-${i}`);
    await run(["sync"], UNPINNED, signal);
    const copied = await timed(() => run(["cp", "-r", tree, copy], UNPINNED, signal));
    const settled = await timed(() => run(["sync", "-f", copy], UNPINNED, signal));
    await eventLoopLag(server);
    let codebase = "";
    const first = await timed(async () => {
      codebase = String(
        (await agentfense(server, ["codebase", "upload", "--owner", "bench", tree], signal)).codebaseId,
      );
    });
    const own = await eventLoopLag(server);
    await changeSome(tree, files, random);
    const second = await timed(() => uploadAgain(server, codebase, tree, CHANGED, signal));
    const same = await timed(() => uploadAgain(server, codebase, tree, 0, signal));
    // The first round warms everything up.
    if (i < 0) continue;
    measured.copy.push(copied);
    measured.durable.push(copied + settled);
    measured.first.push(first);
    measured.second.push(second);
    measured.same.push(same);
    lag.p99 = Math.max(lag.p99, own.p99);
    lag.max = Math.max(lag.max, own.max);
  }
  return {
    files,
    bytes: files * FILE_BYTES,
    changed: CHANGED,
    rows: [
      { label: "`cp -r`", ms: median(measured.copy) },
      { label: "`cp -r`, until it is on the disk", ms: median(measured.durable) },
      { label: "`agentfense codebase upload`, the first", ms: median(measured.first) },
      { label: `again, ${CHANGED} files changed`, ms: median(measured.second) },
      { label: "again, nothing changed", ms: median(measured.same) },
    ],
    copyMs: median(measured.copy),
    lagMs: lag,
    single: await measureSingles(server, benchmark),
  };
}

async function uploadAgain(
  server: TestServer,
  codebase: string,
  tree: string,
  changed: number,
  signal: AbortSignal,
): Promise<void> {
  const { filesSent } = await agentfense(server, ["codebase", "upload", "--codebase", codebase, tree], signal);
  if (filesSent !== changed) throw new Error(`${filesSent} files were sent, ${changed} had changed`);
}

async function measureSingles(
  server: TestServer,
  { singles, signal }: UploadBenchmark,
): Promise<UploadCosts["single"]> {
  using client = new GrpcClient(server.grpc);
  const codebase = await makeCodebase(client, {}, "bench");
  const content = Buffer.alloc(FILE_BYTES, "x");
  const ms = await timed(async () => {
    for (let i = 0; i < singles; i += 1) {
      signal.throwIfAborted();
      content.writeUInt32LE(i);
      await client.upload(codebase, pathOf(i), content);
    }
  });
  return { files: singles, msPerFile: ms / singles };
}

async function plantTree(tree: string, files: number, random: () => number): Promise<void> {
  for (let i = 0; i < files; i += 1) {
    const path = join(tree, pathOf(i));
    if (i % FILES_PER_DIRECTORY === 0) await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, content(random));
  }
}

async function changeSome(tree: string, files: number, random: () => number): Promise<void> {
  for (let i = 0; i < CHANGED; i += 1) await writeFile(join(tree, pathOf((i * files) / CHANGED)), content(random));
}

function pathOf(index: number): string {
  const directory = Math.floor(index / FILES_PER_DIRECTORY);
  return `module-${Math.floor(directory / 10)}/part-${directory % 10}/file-${index % FILES_PER_DIRECTORY}.txt`;
}

/** No two alike: the server keeps content once that it has already. */
function content(random: () => number): string {
  const numbers = Uint32Array.from({ length: FILE_BYTES / 8 }, () => random() * 2 ** 32);
  return Buffer.from(numbers.buffer).toString("hex");
}
