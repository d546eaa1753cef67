import { strict as assert } from "node:assert";
import type { Decision, Question } from "./decision.ts";
import { Errno } from "./decision.ts";
import { NOT_GRANTED, POLICY } from "./policy.ts";

// The policy as a seccomp profile of Docker, which hands it to runc and libseccomp. What these three make of it:
//
// - Rules are alternatives, the conditions within one must all hold. Two conditions on one argument become alternatives
//   (runc), and a rule without conditions swallows those with (libseccomp). So "all but X" cannot be said as "not X" or
//   as an exception; it is said as rules that together match everything else.
// - Comparisons other than the masked one look at all 64 bits of an argument, of which the kernel ignores half.
// - No architecture besides the native one is named, so that i386 and x32 calls kill.
// - Numbers above all that libseccomp knows get ENOSYS from runc.
// - A refusal by argument is always EPERM here: the default, for whatever no rule matches.

export interface DockerSeccompProfile {
  readonly defaultAction: "SCMP_ACT_ERRNO";
  readonly defaultErrnoRet: number;
  readonly archMap: readonly { readonly architecture: string; readonly subArchitectures: readonly string[] }[];
  readonly syscalls: readonly DockerRule[];
}

export interface DockerRule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly DockerCondition[];
}

/** Holds when (argument & value) === valueTwo. */
export interface DockerCondition {
  readonly index: number;
  readonly op: "SCMP_CMP_MASKED_EQ";
  readonly value: number;
  readonly valueTwo: number;
}

export function dockerSeccompProfile(): DockerSeccompProfile {
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: NOT_GRANTED,
    archMap: [
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: [] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: [] },
    ],
    syscalls: [
      { names: namesOf("allow"), action: "SCMP_ACT_ALLOW" },
      { names: namesOf(Errno.ENOSYS), action: "SCMP_ACT_ERRNO", errnoRet: Errno.ENOSYS },
      ...[...POLICY].flatMap(([name, decision]) =>
        typeof decision === "object" ? conditionalRules(name, decision) : [],
      ),
    ],
  };
}

function namesOf(decision: Decision): string[] {
  return [...POLICY].flatMap(([name, other]) => (other === decision ? [name] : [])).sort();
}

function conditionalRules(name: string, question: Question): DockerRule[] {
  return waysToAllow(question).map((args) => {
    assert(new Set(args.map(({ index }) => index)).size === args.length, `${name} asks for an argument twice`);
    return { names: [name], action: "SCMP_ACT_ALLOW", args };
  });
}

/** Every way through the questions that ends in "allow", as the conditions met on it. */
function waysToAllow(decision: Decision): DockerCondition[][] {
  if (decision === "allow") return [[]];
  if (typeof decision === "number") return [];
  const { argument, mask, cases, otherwise } = decision;
  const branches = cases.map(({ values, decision: next }) => ({
    patterns: values.map((value) => ({ mask, value })),
    next,
  }));
  const remaining = patternsOutside(
    bitsOf(mask),
    cases.flatMap(({ values }) => values),
  );
  return [...branches, { patterns: remaining, next: otherwise }].flatMap(({ patterns, next }) => {
    const ways = waysToAllow(next);
    return patterns.flatMap((pattern) =>
      ways.map((way): DockerCondition[] => [
        { index: argument, op: "SCMP_CMP_MASKED_EQ", value: pattern.mask, valueTwo: pattern.value },
        ...way,
      ]),
    );
  });
}

/** The words w with (w & mask) === value. */
interface Pattern {
  readonly mask: number;
  readonly value: number;
}

/**
 * Patterns that together match exactly the words other than the given ones: the empty branches of the binary tree whose
 * leaves are the values.
 *
 * @param bits the bits that count and are still open, highest first
 */
function patternsOutside(
  bits: readonly number[],
  values: readonly number[],
  above: Pattern = { mask: 0, value: 0 },
): Pattern[] {
  if (values.length === 0) return [above];
  const [bit, ...lower] = bits;
  if (bit === undefined) return [];
  return [0, bit].flatMap((set) =>
    patternsOutside(
      lower,
      values.filter((value) => (value & bit) >>> 0 === set),
      { mask: (above.mask | bit) >>> 0, value: (above.value | set) >>> 0 },
    ),
  );
}

function bitsOf(mask: number): number[] {
  return Array.from({ length: 32 }, (_, index) => (2 ** 31 / 2 ** index) >>> 0).filter((bit) => (mask & bit) !== 0);
}
