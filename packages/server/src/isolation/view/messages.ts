import type { OPERATIONS, OperationName } from "./operations.ts";

export type OperationInput<Name extends OperationName> = Parameters<(typeof OPERATIONS)[Name]>[0];

type Result<T> = T extends Generator<void, infer Value> ? Value : T;
/** Without the negated errnos, which come as failures. */
export type OperationOutput<Name extends OperationName> = Result<ReturnType<(typeof OPERATIONS)[Name]>>;

export interface ViewRequest {
  /** Counts up, over all threads. */
  readonly serial: number;
  readonly name: OperationName;
  readonly input: unknown;
}

// What the thread is doing, in memory that its owner can read while it is stuck in the kernel.
export const Progress = {
  /** Counts up with every step. */
  STEPS: 0,
  /** The serial of the request being worked on; 0 for none. */
  CURRENT: 1,
  LENGTH: 2,
} as const;
