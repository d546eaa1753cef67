import { existsSync, mkdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LimitGroup, LimitHost } from "../../../src/isolation/limits/limits.ts";
import { openLimitHost } from "../../../src/isolation/limits/open-limit-host.ts";
import { entered, eventually, freshInstance, groupsNamed, reasonAgainstControlGroups, runInside } from "./support.ts";

const MiB = 1024 * 1024;
const reason = reasonAgainstControlGroups();
if (reason !== undefined) console.warn(`limits on the real kernel are not tested: ${reason}`);

describe.skipIf(reason !== undefined)(`limits that the kernel enforces${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let instance: string;
  let host: LimitHost;

  beforeEach(async () => {
    instance = freshInstance();
    host = await openLimitHost({ instance });
  });

  afterEach(async () => {
    await host.close();
    expect(groupsNamed(`agentfense-${instance}`)).toEqual([]);
  });

  test("this machine enforces everything", () => {
    expect(host.kind).toMatch(/^cgroup-v[12]$/);
    expect(host.degradations).toEqual([]);
  });

  test("a memory hog is killed and counted, and the rest of the group lives", async () => {
    const group = await host.createGroup("box", { memoryBytes: 32 * MiB });
    const bystander = runInside(group, "sleep 60");
    await entered(group, 1);
    const hog = runInside(group, `exec python3 -c 'x = bytearray(200 << 20)'`);
    expect(await hog.end).toBe("SIGKILL");
    expect(await group.oomKills()).toBe(1);
    expect(bystander.process.exitCode).toBeNull();
    await group.remove();
    expect(await bystander.end).toBe("SIGKILL");
    expect(await group.oomKills()).toBe(1);
  });

  test("files in a tmpfs are charged to the group that wrote them, and bounded", async () => {
    const group = await host.createGroup("box", { memoryBytes: 32 * MiB });
    const file = `/dev/shm/${instance}`;
    try {
      const writer = runInside(group, `head -c ${8 * MiB} /dev/zero > ${file}`);
      expect(await writer.end).toBe(0);
      expect((await group.usage()).memoryBytes).toBeGreaterThanOrEqual(8 * MiB);
      const filler = runInside(group, `exec head -c ${64 * MiB} /dev/zero > ${file}`);
      expect(await filler.end).toBe("SIGKILL");
      expect(await group.oomKills()).toBeGreaterThanOrEqual(1);
    } finally {
      rmSync(file, { force: true });
    }
  });

  test("threads and processes stop at the limit, and the group recovers", async () => {
    const group = await host.createGroup("box", { pids: 8 });
    const threads = `import threading, time
started = 0
try:
    for _ in range(50):
        threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
print(started)`;
    expect((await runInside(group, `exec python3 -c '${threads}'`).output).trim()).toBe("7");
    expect(await runInside(group, "/bin/true; exit 3").end).toBe(3);
  });

  test("a fork bomb stays within its processes and dies at a kill", async () => {
    const group = await host.createGroup("box", { pids: 32 });
    const bomb = runInside(group, "exec 2>/dev/null; bomb() { bomb | bomb & }; bomb; sleep 60");
    await eventually("the bomb fills the group", async () => ((await group.usage()).pids ?? 0) >= 24);
    await group.kill();
    await bomb.end;
    // The dead count as processes until somebody has waited for them.
    await eventually("all are buried", async () => (await group.usage()).pids === 0);
    // The group is as good as new.
    expect(await runInside(group, "exit 5").end).toBe(5);
  });

  test("two busy loops share half a CPU", async () => {
    const group = await host.createGroup("box", { cpuQuota: 50_000, cpuShares: 512 });
    const loops = [runInside(group, "while :; do :; done"), runInside(group, "while :; do :; done")];
    await eventually("the loops run", async () => ((await group.usage()).cpuMicros ?? 0) > 20_000);
    const [beganMs, before] = [performance.now(), (await group.usage()).cpuMicros!];
    await eventually("they used a second", async () => (await group.usage()).cpuMicros! - before > 1_000_000);
    const used = (await group.usage()).cpuMicros! - before;
    const elapsedMs = performance.now() - beganMs;
    await group.kill();
    expect(await Promise.all(loops.map((loop) => loop.end))).toEqual(["SIGKILL", "SIGKILL"]);
    // A share of whatever time it took, and one period for each end.
    expect(used / 1000 / (elapsedMs + 200)).toBeLessThan(0.5 * 1.1);
  });

  test("a quota above that of a group around it is no error: the tighter one holds", async () => {
    const group = await host.createGroup("box", { cpuQuota: 1_000_000_000 });
    expect(await runInside(group, "exit 0").end).toBe(0);
  });

  test("usage tells memory, processes and CPU time", async () => {
    const group = await host.createGroup("box", {});
    const sleeper = runInside(group, "sleep 60 & sleep 60");
    await entered(group, 3);
    const usage = await group.usage();
    expect(usage.pids).toBe(3);
    expect(usage.memoryBytes).toBeGreaterThan(0);
    expect(usage.cpuMicros).toBeGreaterThan(0);
    await group.remove();
    await sleeper.end;
    expect(await group.usage()).toEqual({});
  });
});

describe.skipIf(reason !== undefined)(`groups that fail${reason ? ` (skipped: ${reason})` : ""}`, () => {
  test("a group whose making fails half-way leaves nothing", async () => {
    const instance = freshInstance();
    const host = await openLimitHost({ instance });
    const first: LimitGroup = await host.createGroup("box", {});
    await expect(host.createGroup("box", {})).rejects.toMatchObject({ code: "INTERNAL" });
    // The last directory is taken by something else: those made before it must go again.
    const directories = first.entrances.map((entrance) => join(dirname(entrance), "../half"));
    mkdirSync(directories.at(-1)!);
    await expect(host.createGroup("half", { pids: 5 })).rejects.toMatchObject({ code: "INTERNAL" });
    expect(directories.map((directory) => existsSync(directory))).toEqual(
      directories.map((_, index) => index === directories.length - 1),
    );
    rmdirSync(directories.at(-1)!);
    await host.close();
    expect(groupsNamed(`agentfense-${instance}`)).toEqual([]);
  });
});
