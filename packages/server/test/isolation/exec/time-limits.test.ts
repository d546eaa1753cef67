import { expect, test } from "vitest";
import { effectiveTimeout } from "../../../src/isolation/exec/request.ts";

const LIMITS = { defaultTimeoutMs: 30_000, maxTimeoutMs: 600_000, maxTimeoutSetting: "runtime.max_timeout" };

test.each([
  [undefined, LIMITS, 30_000],
  [600_000, LIMITS, 600_000],
  [undefined, {}, undefined],
  [3 * 3_600_000, {}, 3 * 3_600_000],
  // No timer runs that long.
  [1e12, {}, undefined],
])("a command that asks for %j under %j has %j ms", (asked, limits, given) => {
  expect(effectiveTimeout(asked, limits)).toBe(given);
});

test.each([600_001, 1e12, Number.POSITIVE_INFINITY])("%d ms are refused with the maximum, not cut to it", (asked) => {
  expect(() => effectiveTimeout(asked, LIMITS)).toThrow(
    expect.objectContaining({
      code: "INVALID_ARGUMENT",
      message: "timeout is at most 600 s",
      hint: "runtime.max_timeout raises that",
    }),
  );
});

test.each([0, -1, Number.NaN])("%d is no time", (asked) => {
  expect(() => effectiveTimeout(asked, {})).toThrow("a timeout is a positive number of milliseconds");
});
