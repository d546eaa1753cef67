import { assemble, type Line } from "./assembler.ts";
import { type Decision, type Verdict, WHOLE_WORD } from "./decision.ts";
import { type Architecture, AUDIT_ARCH } from "./numbers.ts";
import { decisionsByNumber, POLICY, type Policy, UNKNOWN } from "./policy.ts";

// The policy compiled for the kernel: a search over ranges of numbers with the same decision, so that a call costs the
// logarithm of their number. (Calls allowed whatever their arguments cost nothing: since 5.11 the kernel runs the filter
// for them once and remembers.)
//
// A call of another architecture (i386 by int 0x80, 32 bit arm) ends the process: numbers mean something else there, and a
// program that gets an errno for every call cannot even exit. The x32 calls have bit 30 in their number and so are above
// every number we know: ENOSYS, as from a kernel built without them. So is -1, the number by which a tracer says that
// a call is to be skipped; killing for it would break `strace --inject`.

// struct seccomp_data (linux/seccomp.h): int nr, u32 arch, u64 instruction_pointer, u64 args[6].
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const lowHalfOfArgument = (index: number) => 16 + 8 * index;

export const Action = { killProcess: 0x8000_0000, errno: 0x0005_0000, allow: 0x7fff_0000 } as const;

/** The seccomp filter as `bwrap --seccomp FD` reads it: an array of struct sock_filter. */
export function seccompFilter(
  architecture: Architecture = process.arch === "arm64" ? "arm64" : "x64",
  policy: Policy = POLICY,
): Buffer {
  return assemble([
    { kind: "load", offset: ARCHITECTURE_OFFSET },
    { kind: "branch", test: "different", value: AUDIT_ARCH[architecture], to: "foreign" },
    { kind: "load", offset: NUMBER_OFFSET },
    ...search(rangesOf(architecture, policy)),
    { kind: "label", name: "foreign" },
    { kind: "return", value: Action.killProcess },
  ]);
}

/** The numbers from `first` to the next range. */
interface Range {
  readonly first: number;
  readonly decision: Decision;
}

/** The policy as few ranges as possible, which together cover every number from 0 to 2³² − 1. */
function rangesOf(architecture: Architecture, policy: Policy): Range[] {
  const ranges: Range[] = [];
  for (const [first, decision] of [...decisionsByNumber(architecture, policy), UNKNOWN].entries()) {
    if (ranges.at(-1)?.decision !== decision) ranges.push({ first, decision });
  }
  return ranges;
}

function search(ranges: readonly Range[]): Line[] {
  if (ranges.length === 1) return decide(ranges[0]!.decision, `range ${ranges[0]!.first}`);
  const middle = ranges.length >> 1;
  const { first } = ranges[middle]!;
  return [
    { kind: "branch", test: "atLeast", value: first, to: `from ${first}` },
    ...search(ranges.slice(0, middle)),
    { kind: "label", name: `from ${first}` },
    ...search(ranges.slice(middle)),
  ];
}

/** @param place names the labels, unique in the program */
function decide(decision: Decision, place: string): Line[] {
  if (typeof decision !== "object") return [{ kind: "return", value: returnValue(decision) }];
  const { argument, mask, cases, otherwise } = decision;
  return [
    { kind: "load", offset: lowHalfOfArgument(argument) },
    ...(mask === WHOLE_WORD ? [] : [{ kind: "and", mask } as const]),
    ...cases.flatMap(({ values }, index) =>
      values.map((value) => ({ kind: "branch", test: "equal", value, to: `${place} case ${index}` }) as const),
    ),
    ...decide(otherwise, `${place} otherwise`),
    ...cases.flatMap((one, index) => [
      { kind: "label", name: `${place} case ${index}` } as const,
      ...decide(one.decision, `${place} case ${index}`),
    ]),
  ];
}

function returnValue(verdict: Verdict): number {
  return verdict === "allow" ? Action.allow : Action.errno | verdict;
}
