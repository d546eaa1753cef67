// Pools of real sandboxes.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { TestServer } from "../../../../test/support/server.ts";
import { AgentError } from "../../src/errors.ts";
import type { Executor } from "../../src/executors/executor.ts";
import type { SandboxSource } from "../../src/executors/sandboxed/sandbox-source.ts";
import { executorPool } from "../../src/pool/executor-pool.ts";
import { fensePool, sandboxPool } from "../../src/pool/sandboxes.ts";
import { Random } from "./random.ts";

let base: string;
let engine: EmbeddedEngine;
beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), "agentfense-pools-"));
  engine = await EmbeddedEngine.open();
});
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  rmSync(base, { recursive: true, force: true });
});

function template(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(base, "template-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  return directory;
}

/** Everything a session could leave for the next: files, also hidden ones and those for everybody, and processes. */
const LOOK = 'ls -A . "$HOME" /tmp /dev/shm /run; ps -e -o args= 2>/dev/null | grep [s]leep';

test("twelve sessions on three sandboxes never see what another one left", async () => {
  const seed = 20_261;
  const random = new Random(seed);
  const sessions = Array.from({ length: 12 }, (_, number) => `session-${number}`);
  await using pool = sandboxPool({ sandboxes: Sandbox, open: { engine }, min: 1, max: 3, acquireTimeoutMs: 110_000 });
  await pool.start();
  const owners = new Map<string, string>();

  const use = async (session: string, kind: number): Promise<void> => {
    const sandbox = await pool.acquire(session);
    const owner = owners.get(sandbox.id) ?? session;
    owners.set(sandbox.id, session);
    expect(owner, `sandbox ${sandbox.id} with seed ${seed}`).toBe(session);
    const marker = `marker-${session}`;
    const leave = `touch ${marker} .${marker} /tmp/${marker} "$HOME/${marker}"; sleep 300 & disown`;
    const { stdout } = await sandbox.run(["bash", "-c", `${LOOK}; ${leave} >/dev/null 2>&1`]);
    const seen = stdout.match(/marker-session-\d+/g) ?? [];
    expect(seen.filter((name) => name !== marker)).toEqual([]);
    await pool.release(session, { broken: kind < 0.2 });
  };

  // Each session does one thing at a time, all of them side by side.
  const turns = new Map<string, Promise<void>>(sessions.map((session) => [session, Promise.resolve()]));
  for (let operation = 0; operation < 40; operation += 1) {
    const session = random.pick(sessions);
    const kind = random.next();
    turns.set(
      session,
      (turns.get(session) as Promise<void>).then(() => use(session, kind)),
    );
    expect(pool.metrics().alive).toBeLessThanOrEqual(3);
  }
  await Promise.all(turns.values());
  expect(pool.metrics()).toMatchObject({ acquired: 40, released: 40, busy: 0, waiting: 0, timeouts: 0 });
  expect(owners.size).toBe(40);
});

test("a sandbox of a warm pool is the one that was ready, and runs", async () => {
  await using pool = sandboxPool({ sandboxes: Sandbox, open: { engine }, min: 4, max: 4 });
  await pool.start();
  await pool.warm();
  const ready = (await Sandbox.list({ engine }).toArray()).map(({ id }) => id);
  const given: string[] = [];
  for (const session of ["a", "b", "c", "d"]) given.push((await pool.acquire(session)).id);
  expect(given.toSorted()).toEqual(ready.toSorted());
  expect(await (await pool.acquire("a")).run("echo ready")).toMatchObject({ stdout: "ready\n" });
});

test("every session begins with the same files, and none can change them for the next", async () => {
  const directory = template({ "readme.txt": "hello\n" });
  const open = { engine, permissions: [{ pattern: "/**", permission: "write" }] } as const;
  await using pool = sandboxPool({ sandboxes: Sandbox, directory, open, max: 1 });
  await pool.start();
  const first = await pool.acquire("a");
  await first.run("echo changed > readme.txt; touch more");
  await expect(first.apply()).rejects.toThrow("its changes cannot be applied");
  await pool.release("a");
  const second = await pool.acquire("b");
  expect(await second.run("cat readme.txt; ls -A")).toMatchObject({ stdout: "hello\nreadme.txt\n" });
  expect([readdirSync(directory), readFileSync(join(directory, "readme.txt"), "utf8")]).toEqual([
    ["readme.txt"],
    "hello\n",
  ]);
});

test("on a directory, the usual rules hold unless others are given", async () => {
  const directory = template({ ".env": "KEY=secret\n" });
  await using pool = sandboxPool({ sandboxes: Sandbox, directory, open: { engine }, max: 1 });
  await pool.start();
  const { exitCode, stdout } = await (await pool.acquire("a")).run("cat .env");
  expect([exitCode, stdout]).toEqual([1, ""]);
});

test("a sandbox that somebody else ended is found by the check, and replaced", async () => {
  await using pool = sandboxPool({ sandboxes: Sandbox, open: { engine }, min: 1, max: 1, checkIntervalMs: 20 });
  await pool.start();
  const first = await pool.acquire("a");
  await pool.release("a");
  await pool.warm();
  const [idle] = await Sandbox.list({ engine }).toArray();
  expect(idle?.id).not.toBe(first.id);
  await using other = await Sandbox.connect(idle?.id ?? "", { engine });
  await other.stop();
  await eventually(() => pool.metrics().failures.check > 0);
  const next = await pool.acquire("b");
  expect(next.id).not.toBe(idle?.id);
  expect(await next.run("echo fine")).toMatchObject({ stdout: "fine\n" });
});

test("stopping a pool leaves no sandbox and no directory", async () => {
  const directories: string[] = [];
  const sandboxes: SandboxSource = {
    fromLocal: (directory, options) => {
      directories.push(directory);
      return Sandbox.fromLocal(directory, options);
    },
  };
  const pool = sandboxPool({ sandboxes, open: { engine }, min: 2, max: 2 });
  await pool.start();
  await pool.acquire("a");
  await pool.acquire("b");
  expect(directories.map((directory) => existsSync(directory))).toEqual([true, true]);
  await pool.stop();
  expect(directories.map((directory) => existsSync(directory))).toEqual([false, false]);
  expect(await Sandbox.list({ engine }).toArray()).toEqual([]);
});

test("a pool of executors runs code in the session's own sandbox, whose files can be read", async () => {
  const task = { risk: { level: "LOW", detected: [] }, securityMode: "STRICT", language: "bash" } as const;
  await using pool = fensePool({ sandboxes: Sandbox, open: { engine }, max: 1 });
  await pool.start();
  const executor = await pool.acquire("a");
  expect(await executor.execute({ ...task, code: "echo mine > note.txt; cat note.txt" })).toMatchObject({
    stdout: "mine\n",
    exitCode: 0,
  });
  expect(await executor.workspace.readFile("note.txt")).toBe("mine\n");
  await pool.release("a");
  const next = await pool.acquire("b");
  expect(await next.workspace.list()).toEqual([]);
  await expect(executor.execute({ ...task, code: "true" })).rejects.toMatchObject({ code: "UNAVAILABLE" });
});

test("a pool of sandboxes on a server", async () => {
  await using server = await TestServer.start();
  const directory = template({ "readme.txt": "hello\n" });
  await using pool = sandboxPool({ directory, open: { endpoint: server.grpc }, min: 1, max: 1 });
  await pool.start();
  const first = await pool.acquire("a");
  expect(await first.run("cat readme.txt")).toMatchObject({ stdout: "hello\n" });
  await pool.release("a");
  expect((await pool.acquire("b")).id).not.toBe(first.id);
  await pool.stop();
  expect(await Sandbox.list({ endpoint: server.grpc }).toArray()).toEqual([]);
});

test("a pool of other executors checks and disposes of them by what all executors have", async () => {
  const seen: string[] = [];
  const executor = (): Executor => ({
    type: "aio",
    languages: new Set(["bash"]),
    execute: async () => Promise.reject(new AgentError("not this time")),
    check: async () => void seen.push("checked"),
    [Symbol.asyncDispose]: async () => void seen.push("disposed of"),
  });
  await using pool = executorPool({ create: async () => executor(), min: 1, max: 1, checkIntervalMs: 5 });
  await pool.start();
  await pool.warm();
  await eventually(() => seen.includes("checked"));
  await pool.stop();
  expect(seen.at(-1)).toBe("disposed of");
});
