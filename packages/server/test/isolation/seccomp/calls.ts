import fc from "fast-check";
import { CONDITIONS } from "../../../src/isolation/seccomp/conditions.ts";
import type { Decision, Verdict } from "../../../src/isolation/seccomp/decision.ts";
import { type Architecture, SYSCALL_NUMBERS } from "../../../src/isolation/seccomp/numbers.ts";
import { NOT_GRANTED, POLICY, UNKNOWN } from "../../../src/isolation/seccomp/policy.ts";
import type { Call } from "./interpreter.ts";

/** The policy read straight from its tables, to compare compiled forms with. */
export function verdictOf({ number, args }: Call, architecture: Architecture): Verdict {
  const name = nameOf(number, architecture);
  if (name === undefined) return UNKNOWN;
  return answer(POLICY.get(name) ?? NOT_GRANTED, args);
}

function answer(decision: Decision, args: readonly bigint[]): Verdict {
  if (typeof decision !== "object") return decision;
  const word = args[decision.argument]! & BigInt(decision.mask);
  const found = decision.cases.find(({ values }) => values.some((value) => BigInt(value) === word));
  return answer(found?.decision ?? decision.otherwise, args);
}

export function nameOf(number: number, architecture: Architecture): string | undefined {
  return [...SYSCALL_NUMBERS[architecture]].find(([, other]) => other === number)?.[0];
}

/** Calls of all kinds: the interesting numbers and values are frequent, with and without bits the kernel ignores. */
export function anyCall(architecture: Architecture): fc.Arbitrary<Call> {
  const numbers = SYSCALL_NUMBERS[architecture];
  const conditional = Object.keys(CONDITIONS).flatMap((name) => numbers.get(name) ?? []);
  return fc.record({
    number: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...conditional) },
      { weight: 2, arbitrary: fc.nat(600) },
      { weight: 1, arbitrary: fc.nat(600).map((number) => (number | 0x4000_0000) >>> 0) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff_ffff }) },
    ),
    args: fc.array(anyArgument(), { minLength: 6, maxLength: 6 }),
  });
}

function anyArgument(): fc.Arbitrary<bigint> {
  const known = [...new Set(Object.values(CONDITIONS).flatMap(mentioned))];
  const low = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...known).map(BigInt) },
    { weight: 2, arbitrary: fc.nat(300).map(BigInt) },
    { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: 0xffff_ffffn }) },
  );
  const flags = fc.constantFrom(0n, 0x80000n, 0x800n, 0x80800n); // SOCK_CLOEXEC, SOCK_NONBLOCK
  const high = fc.oneof(fc.constantFrom(0n, 1n, 0xffff_ffffn), fc.bigInt({ min: 0n, max: 0xffff_ffffn }));
  return fc.tuple(high, low, flags).map(([upper, lower, extra]) => (upper << 32n) | lower | extra);
}

/** The values and masks of a decision, and their neighbours. */
function mentioned(decision: Decision): number[] {
  if (typeof decision !== "object") return [];
  const own = [decision.mask, ...decision.cases.flatMap(({ values }) => values)];
  const around = own.flatMap((value) => [value, (value - 1) >>> 0, (value + 1) >>> 0]);
  return [...around, ...decision.cases.flatMap((one) => mentioned(one.decision)), ...mentioned(decision.otherwise)];
}
