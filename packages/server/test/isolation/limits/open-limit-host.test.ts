import { expect, test } from "vitest";
import { scopeRequest } from "../../../src/isolation/limits/delegation.ts";
import { openLimitHost } from "../../../src/isolation/limits/open-limit-host.ts";
import { freshInstance } from "./support.ts";

const NOWHERE = "/nowhere";

test("without control groups limits become rlimits, and what they cannot do is said", async () => {
  const host = await openLimitHost({ instance: freshInstance(), root: NOWHERE });
  expect(host.kind).toBe("rlimits");
  expect(host.degradations).toEqual([
    expect.stringContaining("Memory is limited for each process"),
    expect.stringContaining("RLIMIT_NPROC"),
    expect.stringContaining("CPU quota and CPU shares are not enforced"),
    expect.stringContaining("SIGSTOP"),
    expect.stringContaining("mount cgroup2"),
  ]);
  const group = await host.createGroup("box", { memoryBytes: 64 * 1024 * 1024, pids: 20, cpuQuota: 50_000 });
  expect(group.entrances).toEqual([]);
  expect(group.rlimits).toEqual([
    { resource: "data", value: 48 * 1024 * 1024 }, // the rest is for files
    { resource: "nproc", value: 20 },
  ]);
  expect([await group.oomKills(), await group.usage()]).toEqual([0, {}]);
  await group.kill();
  await group.remove();
  await group.remove();
  await host.removeOrphans(["somebody"]);
  await host.close();
});

test("limits and names are checked before anything is made", async () => {
  const host = await openLimitHost({ instance: freshInstance(), root: NOWHERE });
  await expect(host.createGroup("../up", {})).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  await expect(host.createGroup("box", { pids: 0 })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  await expect(host.removeOrphans(["../.."])).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  await expect(openLimitHost({ instance: "a/b" })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
});

test("a given parent that cannot be used is an error, not a quiet degradation", async () => {
  const options = { instance: freshInstance(), root: NOWHERE, cgroupParent: "/agents" };
  await expect(openLimitHost(options)).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
});

test("the user's systemd is asked for a delegated scope that takes this process in", () => {
  expect(scopeRequest("agentfense-x.scope", 42).slice(5).join(" ")).toBe(
    "StartTransientUnit ssa(sv)a(sa(sv)) agentfense-x.scope fail 4 PIDs au 1 42 Delegate b true " +
      "Description s AgentFense and its sandboxes CollectMode s inactive-or-failed 0",
  );
});
