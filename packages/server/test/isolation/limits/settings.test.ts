import { expect, test } from "vitest";
import { readings, settings, weightOfShares } from "../../../src/isolation/limits/settings.ts";

const limits = { memoryBytes: 67_108_864, cpuQuota: 50_000, cpuShares: 512, pids: 100 };

test("a v2 group gets memory without swap, processes, a quota per 100 ms and a weight", () => {
  expect(settings(2, ["memory", "pids", "cpu"], limits)).toEqual([
    { file: "memory.max", value: "67108864" },
    { file: "memory.swap.max", value: "0", ifPresent: true },
    { file: "memory.oom.group", value: "0", ifPresent: true },
    { file: "pids.max", value: "100" },
    { file: "cpu.max", value: "50000 100000" },
    { file: "cpu.weight", value: "50" },
  ]);
});

test("a v1 group gets the memory limit before the one with swap, the period before the quota", () => {
  expect(settings(1, ["memory", "pids", "cpu", "cpuacct", "freezer"], limits)).toEqual([
    { file: "memory.swappiness", value: "0", ifPresent: true },
    { file: "memory.limit_in_bytes", value: "67108864" },
    { file: "memory.memsw.limit_in_bytes", value: "67108864", ifPresent: true },
    { file: "pids.max", value: "100" },
    { file: "cpu.cfs_period_us", value: "100000" },
    { file: "cpu.cfs_quota_us", value: "50000", unlessTighterAbove: true },
    { file: "cpu.shares", value: "512" },
  ]);
});

test("what is not limited, or not lent, is not written", () => {
  expect(settings(2, ["memory", "pids", "cpu"], {})).toEqual([]);
  expect(settings(1, ["memory", "pids", "cpu"], {})).toEqual([]);
  expect(settings(2, ["pids"], limits)).toEqual([{ file: "pids.max", value: "100" }]);
});

test.each([
  [2, 1],
  [512, 50],
  [1024, 100],
  [2048, 200],
  [102_400, 10_000],
  [262_144, 10_000],
])("%i shares are a weight of %i", (shares, weight) => {
  expect(weightOfShares(shares)).toBe(weight);
});

test("a v2 group counts CPU time also without a controller, a v1 group only with cpuacct", () => {
  expect(readings(2, [])).toEqual({ cpuMicros: { file: "cpu.stat", key: "usage_usec" } });
  expect(readings(1, ["pids"])).toEqual({ pids: { file: "pids.current" } });
  expect(readings(1, ["cpu", "cpuacct"])).toEqual({ cpuMicros: { file: "cpuacct.usage", divisor: 1000 } });
});
