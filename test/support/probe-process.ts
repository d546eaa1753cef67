import { type OperationName, operations } from "./operations.ts";
import { answerParent } from "./peer.ts";
import type { Result } from "./syscall.ts";

type Call = readonly [OperationName, ...unknown[]];

/** The agent in the box: carries out batches of operations, one after the other, and reports what each gave. */
answerParent((batch) => (batch as readonly Call[]).map(perform));

function perform([name, ...values]: Call): Result {
  const operation = operations[name] as (...values: readonly unknown[]) => Result;
  return operation(...values);
}
