import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type BoxedWorkspace, type Isolation, openIsolation, type SandboxSpec } from "@agentfense/server/isolation";
import { reasonAgainstDocker, startDockerEngine } from "../test/support/docker-engine.ts";
import { BareBwrap } from "./bare-bwrap.ts";
import { median, timed } from "./sample.ts";

/** What a command costs in a sandbox, against the same without us, samples taken in turns. Milliseconds. */
export interface RuntimeCosts {
  readonly rows: readonly RuntimeRow[];
  readonly crowd: Crowd;
}

export interface RuntimeRow {
  readonly label: string;
  readonly ms: number;
  /** The same without us, and what it is. */
  readonly baseMs: number;
  readonly base: string;
  readonly target: string;
}

/** Many sandboxes of one codebase, alive at once, one command in each. */
export interface Crowd {
  readonly sandboxes: number;
  readonly succeeded: number;
  readonly startSeconds: number;
  readonly execSeconds: number;
  /** The same with a command that reads all files at the top of the codebase. */
  readonly readSeconds: number;
  readonly destroySeconds: number;
  readonly bytesPerSandbox: number;
}

export interface RuntimeBenchmark {
  /** The codebase. */
  readonly codebase: string;
  /** A place for deltas. */
  readonly directory: string;
  readonly samples: number;
  readonly crowd: number;
  readonly signal: AbortSignal;
}

const RULES = [{ pattern: "**/*", permission: "write" }] as const;

export async function measureRuntimes(benchmark: RuntimeBenchmark): Promise<RuntimeCosts> {
  await using isolation = await openIsolation({ runtimes: ["bwrap"] });
  const rows = await measureRows(isolation, benchmark);
  const crowd = await measureCrowd(isolation, benchmark);
  return { rows: [...rows, ...(await measureDocker(benchmark))], crowd };
}

/** Against the engine's own command line, in a container of the same image without our box around it. */
async function measureDocker(benchmark: RuntimeBenchmark): Promise<RuntimeRow[]> {
  if (reasonAgainstDocker() !== undefined) return [];
  await using engine = await startDockerEngine();
  const { socketPath, image } = engine;
  const plain = (await engine.docker("run", "-d", "--network=none", image, "sleep", "1000000")).trim();
  await using isolation = await openIsolation({ runtimes: ["docker"], docker: { socketPath, image } });
  const specified = { ...(await specification(benchmark, "docker")), runtime: "docker" } as const;
  await using sandbox = await isolation.create(specified);
  await sandbox.start();
  const measured = { base: [] as number[], ours: [] as number[] };
  for (let i = -2; i < benchmark.samples / 4; i += 1) {
    benchmark.signal.throwIfAborted();
    const base = await timed(() => engine.docker("exec", plain, "bash", "-c", "true"));
    const ours = await timed(() => succeed(sandbox));
    if (i < 0) continue;
    measured.base.push(base);
    measured.ours.push(ours);
  }
  await engine.docker("rm", "-f", plain);
  const base = { baseMs: median(measured.base), base: "docker exec … bash -c true" };
  return [{ label: "docker: exec of `true`", ms: median(measured.ours), ...base, target: "" }];
}

async function measureRows(isolation: Isolation, benchmark: RuntimeBenchmark): Promise<RuntimeRow[]> {
  await using bare = new BareBwrap();
  await using sandbox = await isolation.create(await specification(benchmark, "rows"));
  await sandbox.start();
  await using session = await sandbox.session();
  const measured = { bare: [] as number[], exec: [] as number[], first: [] as number[], session: [] as number[] };
  for (let i = -3; i < benchmark.samples; i += 1) {
    benchmark.signal.throwIfAborted();
    const sample = {
      bare: await bare.milliseconds(),
      exec: await timed(() => succeed(sandbox)),
      first: await timed(() => fromNothing(isolation, benchmark, i)),
      session: await timed(async () => {
        const { exitCode } = await session.exec({ command: "true" });
        if (exitCode !== 0) throw new Error(`true ended with ${exitCode} in a session`);
      }),
    };
    // The first rounds warm everything up.
    if (i >= 0) for (const key of ["bare", "exec", "first", "session"] as const) measured[key].push(sample[key]);
  }
  const base = { baseMs: median(measured.bare), base: "bwrap … true" };
  return [
    { label: "exec of `true` (through bash)", ms: median(measured.exec), ...base, target: "2" },
    { label: "create, start, first exec", ms: median(measured.first), ...base, target: "3" },
    { label: "`true` in a session", ms: median(measured.session), ...base, target: "1" },
  ];
}

async function measureCrowd(isolation: Isolation, benchmark: RuntimeBenchmark): Promise<Crowd> {
  const before = residentBytes();
  const sandboxes: BoxedWorkspace[] = [];
  const startMs = await timed(async () => {
    for (let i = 0; i < benchmark.crowd; i += 1) {
      benchmark.signal.throwIfAborted();
      const sandbox = await isolation.create(await specification(benchmark, `crowd-${i}`));
      await sandbox.start();
      sandboxes.push(sandbox);
    }
  });
  let succeeded = 0;
  const inEach = (command: string): Promise<number> =>
    timed(async () => {
      const running = sandboxes.map((sandbox) => sandbox.exec({ command, timeoutMs: 120_000 }));
      succeeded += (await Promise.all(running)).filter(({ exitCode }) => exitCode === 0).length;
    });
  const execMs = await inEach("true");
  const readMs = await inEach("cat /workspace/* > /dev/null 2>&1; true");
  const bytesPerSandbox = (residentBytes() - before) / benchmark.crowd;
  const destroyMs = await timed(() => Promise.all(sandboxes.map((sandbox) => sandbox.destroy())));
  return {
    sandboxes: benchmark.crowd,
    succeeded,
    startSeconds: startMs / 1000,
    execSeconds: execMs / 1000,
    readSeconds: readMs / 1000,
    destroySeconds: destroyMs / 1000,
    bytesPerSandbox,
  };
}

async function fromNothing(isolation: Isolation, benchmark: RuntimeBenchmark, round: number): Promise<void> {
  const sandbox = await isolation.create(await specification(benchmark, `first-${round}`));
  await sandbox.start();
  await succeed(sandbox);
  // Taking it away again is not part of the time; the next round must not wait for it either.
  void sandbox.destroy();
}

async function succeed(sandbox: BoxedWorkspace): Promise<void> {
  const { exitCode, stderr } = await sandbox.exec({ command: "true" });
  if (exitCode !== 0) throw new Error(`true ended with ${exitCode}: ${stderr.toString()}`);
}

async function specification({ codebase, directory }: RuntimeBenchmark, name: string): Promise<SandboxSpec> {
  const delta = join(directory, name);
  await mkdir(delta, { recursive: true });
  return { runtime: "bwrap", workspaces: [{ lowers: [codebase], delta, rules: RULES }] };
}

function residentBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
