import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BoxedWorkspace, type BoxSession, IsolationError, openIsolation } from "@agentfense/server/isolation";
import { expect, onTestFinished, test } from "vitest";
import { collectGarbage } from "../../support/garbage.ts";
import { boxInits, instancesIn, leftovers, openDescriptors } from "../../support/leftovers.ts";
import { rounds } from "../../support/rounds.ts";

async function place(): Promise<{ stateDirectory: string; project: string; delta: () => Promise<string> }> {
  const home = await mkdtemp(join(tmpdir(), "agentfense-leaks-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  await chmod(home, 0o711);
  const [stateDirectory, project] = [join(home, "state"), join(home, "project")];
  await mkdir(stateDirectory, { mode: 0o711 });
  await mkdir(project);
  await writeFile(join(project, "file"), "content\n");
  return { stateDirectory, project, delta: () => mkdtemp(join(home, "delta-")) };
}

const RULES = [{ pattern: "**/*", permission: "write" }] as const;

test("nothing grows over many sandboxes that come and go", async () => {
  const { stateDirectory, project, delta } = await place();
  const cycles = rounds(10);
  await using isolation = await openIsolation({ stateDirectory });
  const cycle = async (): Promise<void> => {
    const workspaces = [{ lowers: [project], delta: await delta(), rules: RULES }];
    const sandbox = await isolation.create({ runtime: "bwrap", workspaces, limits: { pids: 50 } });
    await sandbox.start();
    expect((await sandbox.exec({ command: "cat file > made" })).exitCode).toBe(0);
    const session = await sandbox.session();
    await session.exec({ command: "sleep 100 &" });
    await sandbox.exec({ command: "sleep 100", timeoutMs: 5 });
    await sandbox.destroy();
  };
  for (let i = 0; i < 5; i += 1) await cycle(); // what is made once and kept
  const census = () => ({ ...leftovers(stateDirectory, instancesIn(stateDirectory)), descriptors: openDescriptors() });
  const before = census();
  expect(before).toMatchObject({ mounts: [], controlGroups: [], processes: [], stateEntries: [] });
  const memoryBefore = resident();
  for (let i = 0; i < cycles; i += 1) await cycle();
  expect(census()).toEqual(before);
  expect((resident() - memoryBefore) / cycles).toBeLessThan(Math.max(200_000, 20_000_000 / cycles));
});

test("a thousand sessions are opened or refused, the server answers, and all of them go", async () => {
  const { stateDirectory, project, delta } = await place();
  const wanted = Math.min(1000, rounds(40));
  await using isolation = await openIsolation({ stateDirectory });
  const make = async (): Promise<BoxedWorkspace> => {
    const workspaces = [{ lowers: [project], delta: await delta(), rules: RULES }];
    const sandbox = await isolation.create({ runtime: "bwrap", workspaces, limits: { pids: 30 } });
    await sandbox.start();
    return sandbox;
  };
  const [attacker, neighbour] = [await make(), await make()];
  const sessions: BoxSession[] = [];
  const refusals: unknown[] = [];
  for (let opened = 0; opened < wanted; opened += 20) {
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => attacker.session()));
    for (const result of results) {
      if (result.status === "fulfilled") sessions.push(result.value);
      else refusals.push(result.reason);
    }
    expect((await neighbour.exec({ command: "cat file" })).stdout.toString()).toBe("content\n");
  }
  expect(sessions.length).toBeGreaterThan(5);
  expect(sessions.length + refusals.length).toBe(wanted);
  expect(refusals.length, "the limit on processes refuses most").toBeGreaterThan(0);
  expect(refusals.every((reason) => reason instanceof IsolationError)).toBe(true);
  await attacker.destroy();
  expect(sessions.every(({ closed }) => closed !== undefined)).toBe(true);
  await neighbour.destroy();
  const left = leftovers(stateDirectory, instancesIn(stateDirectory));
  expect(left).toEqual({ mounts: [], controlGroups: [], processes: [], stateEntries: [] });
});

/** Not when it ended by itself just now. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

test("a box whose first process is killed at any moment is made anew or ends, and nothing is left", async () => {
  const { stateDirectory, project, delta } = await place();
  await using isolation = await openIsolation({ stateDirectory });
  const [instance] = instancesIn(stateDirectory);
  for (let cycle = 0; cycle < rounds(20); cycle += 1) {
    const workspaces = [{ lowers: [project], delta: await delta(), rules: RULES }];
    await using sandbox = await isolation.create({ runtime: "bwrap", workspaces, limits: { pids: 50 } });
    const starting = sandbox.start();
    const isEarly = cycle % 2 === 0;
    if (!isEarly) await starting;
    const abort = new AbortController();
    const execute = () => sandbox.exec({ command: "setsid sleep 300 & sleep 300" }, { signal: abort.signal });
    const running = isEarly ? starting.then(execute) : execute();
    running.catch(() => {}); // looked at below
    for (let turns = Math.floor(Math.random() * 30); turns > 0; turns -= 1) await new Promise(setImmediate);
    for (let isKilled = false; !isKilled; await new Promise(setImmediate)) {
      for (const pid of boxInits(instance!)) {
        isKilled = killed(pid) || isKilled;
      }
    }
    abort.abort(); // a command that had not begun runs in the new box
    const [end] = await Promise.allSettled([running]);
    const hasStarted = await starting.then(
      () => true,
      () => false,
    );
    if (end.status === "rejected") expect(end.reason).toBeInstanceOf(IsolationError);
    if (hasStarted) {
      expect((await sandbox.exec({ command: "cat file" })).stdout.toString()).toBe("content\n");
    }
  }
  const left = leftovers(stateDirectory, instancesIn(stateDirectory));
  expect(left).toEqual({ mounts: [], controlGroups: [], processes: [], stateEntries: [] });
});

/** Memory of this process, also what JavaScript knows nothing of. */
function resident(): number {
  collectGarbage();
  return process.memoryUsage.rss();
}
