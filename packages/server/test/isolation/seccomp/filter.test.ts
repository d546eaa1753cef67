import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Verdict } from "../../../src/isolation/seccomp/decision.ts";
import { Action, seccompFilter } from "../../../src/isolation/seccomp/filter.ts";
import { type Architecture, AUDIT_ARCH } from "../../../src/isolation/seccomp/numbers.ts";
import { anyCall, verdictOf } from "./calls.ts";
import { run, runNative } from "./interpreter.ts";

const ARCHITECTURES: readonly Architecture[] = ["x64", "arm64"];
const NOTHING = [0n, 0n, 0n, 0n, 0n, 0n];
const ENOSYS = 38;

function returned(verdict: Verdict): number {
  return verdict === "allow" ? Action.allow : Action.errno | verdict;
}

describe.each(ARCHITECTURES)("the filter for %s", (architecture) => {
  const program = seccompFilter(architecture);

  test("answers every number as the policy does", () => {
    for (let number = 0; number <= 600; number += 1) {
      const call = { number, args: NOTHING };
      const expected = returned(verdictOf(call, architecture));
      expect([number, runNative(program, call, architecture).value]).toEqual([number, expected]);
    }
  });

  test("answers every combination of arguments as the policy does", () => {
    fc.assert(
      fc.property(anyCall(architecture), (call) => {
        expect(runNative(program, call, architecture).value).toBe(returned(verdictOf(call, architecture)));
      }),
      { numRuns: 5000 },
    );
  });

  test("knows no x32 call, and lets a tracer skip a call by the number -1", () => {
    for (let number = 0; number <= 600; number += 1) {
      const value = runNative(program, { number: number | 0x4000_0000, args: NOTHING }, architecture).value;
      expect([number, value]).toEqual([number, Action.errno | ENOSYS]);
    }
    expect(runNative(program, { number: -1, args: NOTHING }, architecture).value).toBe(Action.errno | ENOSYS);
  });

  test("kills what calls by the numbers of another architecture", () => {
    const others = [0x4000_0003, 0x4000_0028, ...ARCHITECTURES.map((name) => AUDIT_ARCH[name])];
    for (const audit of others.filter((other) => other !== AUDIT_ARCH[architecture])) {
      for (let number = 0; number <= 600; number += 1) {
        expect(run(program, { number, args: NOTHING }, audit).value).toBe(Action.killProcess);
      }
    }
  });

  test("is short on every path", () => {
    const steps = Array.from({ length: 601 }, (_, number) =>
      runNative(program, { number, args: NOTHING }, architecture),
    ).map((one) => one.steps);
    expect(Math.max(...steps)).toBeLessThanOrEqual(20);
    expect(program.length / 8).toBeLessThan(512);
  });
});
