// The policy as a value. A decision is an answer, or a question about one argument whose answer leads to a further
// decision. The same value is compiled for the kernel (filter.ts) and written down for Docker (profile.ts).

/** `allow`, or the errno the caller gets. */
export type Verdict = "allow" | number;

export interface Question {
  /** Which of the six arguments. */
  readonly argument: number;
  /**
   * Which bits of it count. Only the low half of the 64 bits can be asked for: every argument we look at is 32 bits wide
   * (or less) in the kernel, which drops the rest, so that a filter looking at the whole is passed by setting a high bit.
   */
  readonly mask: number;
  readonly cases: readonly Case[];
  /** What holds when no case does. */
  readonly otherwise: Decision;
}

export interface Case {
  readonly values: readonly number[];
  readonly decision: Decision;
}

export type Decision = Verdict | Question;

export const WHOLE_WORD = 0xffff_ffff;

/** The same numbers on x86-64 and arm64. */
export const Errno = { EPERM: 1, ENOMEM: 12, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;

/** Allows the listed values of an argument and refuses all others. */
export function only(argument: number, mask: number, values: readonly number[], refusal: number): Question {
  return { argument, mask, cases: [{ values, decision: "allow" }], otherwise: refusal };
}

/** Refuses the listed values of an argument and allows all others. */
export function allBut(argument: number, mask: number, values: readonly number[], refusal: number): Question {
  return { argument, mask, cases: [{ values, decision: refusal }], otherwise: "allow" };
}
