import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { AgentWorkspace, FenseExecutor, fensePool, SandboxManager, UnifiedRiskPolicy } from "agentfense/agent";
import { quantile, timed } from "../sample.ts";
import type { CallRow } from "../service/calls.ts";

/** What the agent layer adds to an interpreter. Milliseconds. */
export interface AgentCosts {
  readonly samples: number;
  readonly rows: readonly CallRow[];
}

const WARM_UP = 3;
/** What is made in place of something used is not to be paid for by the row that follows. */
const PAUSE_MS = 50;
const HELLO = "print('hello')";
/** Not SAFE: it reads a file. */
const READER = "print(open('hello.txt').read())";
const LONG = Array.from(
  { length: 200 },
  (_, i) => `def f${i}(xs):\n    return sum(x * ${i} for x in xs if x % 2)`,
).join("\n");

export async function measureAgent(benchmark: {
  readonly directory: string;
  readonly samples: number;
  readonly signal: AbortSignal;
}): Promise<AgentCosts> {
  const { directory, samples, signal } = benchmark;
  await mkdir(directory, { recursive: true });
  const workspace = new AgentWorkspace("bench", { directory: join(directory, "work") });
  await workspace.writeFile("hello.txt", "hello");
  await using executor = new FenseExecutor({ workspace });
  await using manager = new SandboxManager({ sessionId: "bench", workspace });
  await using pool = fensePool({ min: 2, max: 4 });
  await pool.start();
  await using pooled = new SandboxManager({ sessionId: "pooled", pool });
  await pooled.workspace.writeFile("hello.txt", "hello");
  const task = { language: "python", risk: { level: "LOW", detected: [] }, securityMode: "STRICT" } as const;
  let sessions = 0;

  const rows: Record<string, () => Promise<unknown>> = {
    "`python3 -` alone": () => plainPython(HELLO),
    "`assess` of one line": () => UnifiedRiskPolicy.assess(READER, "python"),
    "`assess` of 400 lines": () => UnifiedRiskPolicy.assess(LONG, "python"),
    "manager, SAFE, in a subprocess": () => succeed(manager.execute({ code: HELLO, language: "python" })),
    "executor alone, in a sandbox on the workspace": () => executor.execute({ ...task, code: READER }),
    "manager, LOW, in a sandbox on the workspace": () => succeed(manager.execute({ code: READER, language: "python" })),
    "manager, LOW, in its sandbox of a pool": () => succeed(pooled.execute({ code: READER, language: "python" })),
  };
  const acquire = "`acquire` from a warm pool";
  const measured = new Map<string, number[]>([...Object.keys(rows), acquire].map((label) => [label, []]));
  for (let i = -WARM_UP; i < samples; i += 1) {
    const keep = (label: string, ms: number): void => {
      if (i >= 0) measured.get(label)!.push(ms);
    };
    for (const [label, sample] of Object.entries(rows)) {
      await setTimeout(PAUSE_MS, undefined, { signal });
      keep(label, await timed(sample));
    }
    await pool.warm({ signal });
    const sessionId = `s${++sessions}`;
    keep(acquire, await timed(() => pool.acquire(sessionId)));
    await pool.release(sessionId);
  }
  return {
    samples,
    rows: [...measured].map(([label, all]) => ({ label, p50: quantile(all, 0.5), p99: quantile(all, 0.99) })),
  };
}

async function plainPython(code: string): Promise<void> {
  // The one that sandboxes have, whatever stands before it here.
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  const child = spawn("python3", ["-"], { stdio: ["pipe", "ignore", "inherit"], env });
  child.stdin.end(code);
  await once(child, "exit");
}

async function succeed(running: ReturnType<SandboxManager["execute"]>): Promise<void> {
  const { success, error } = await running;
  if (!success) throw new Error(error);
}
