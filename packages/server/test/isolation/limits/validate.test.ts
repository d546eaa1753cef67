import { expect, test } from "vitest";
import { validateLimits, validateName } from "../../../src/isolation/limits/limits.ts";

test("limits that are absent or reasonable are taken", () => {
  validateLimits({});
  validateLimits({ memoryBytes: 4 * 1024 * 1024, cpuQuota: 1000, cpuShares: 2, pids: 1 });
  validateLimits({ memoryBytes: 2 ** 40, cpuQuota: 6_400_000, cpuShares: 262_144, pids: 100_000 });
});

test.each([
  { memoryBytes: -1 },
  { memoryBytes: 0 },
  { memoryBytes: 4 * 1024 * 1024 - 1 },
  { memoryBytes: Number.NaN },
  { memoryBytes: Number.POSITIVE_INFINITY },
  { memoryBytes: 2 ** 60 },
  { cpuQuota: 999 },
  { cpuQuota: 50_000.5 },
  { cpuShares: 1 },
  { cpuShares: 262_145 },
  { pids: 0 },
  { pids: -5 },
  { pids: 1.5 },
])("nonsense is refused with the name of the limit: %o", (limits) => {
  const [name] = Object.keys(limits);
  expect(() => validateLimits(limits)).toThrow(
    expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(name!) }),
  );
});

test.each(["", ".", "..", "a/b", "a.b", "-a", "a b", "a\n", "memory.max", "x".repeat(129)])(
  "a name that could be another path or a kernel's file is refused: %o",
  (name) => {
    expect(() => validateName("group", name)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  },
);
