import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatDuration, formatSize, parseDuration, parseSize } from "../../../src/service/configuration/values.ts";

describe("durations", () => {
  test.each([
    ["30s", 30_000],
    ["10m", 600_000],
    ["24h", 86_400_000],
    ["1h30m", 5_400_000],
    ["500ms", 500],
    ["1.5h", 5_400_000],
    ["90d", 7_776_000_000],
    ["0", 0],
    [0, 0],
  ])("%j is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([[30], ["30"], [""], ["s"], ["30 s"], ["-1s"], ["1h 30m"], ["1y"], [Number.NaN], [`${"9".repeat(30)}d`]])(
    "%j is refused: a number needs a unit",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  test("what is written is read back as the same time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 12 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});

describe("sizes", () => {
  test.each([
    ["512MiB", 512 * 2 ** 20],
    ["10GB", 10 * 2 ** 30],
    ["64k", 65_536],
    ["1.5g", 1.5 * 2 ** 30],
    ["100", 100],
    [4096, 4096],
    [0, 0],
  ])("%j is %i bytes", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  test.each([["-1"], [-1], ["1 XB"], [""], ["MiB"], ["1e9"], [1e30]])("%j is refused", (text) => {
    expect(parseSize(text)).toBeUndefined();
  });

  test("what is written is read back as the same size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (bytes) => {
        expect(parseSize(formatSize(bytes))).toBe(bytes);
      }),
    );
  });
});
