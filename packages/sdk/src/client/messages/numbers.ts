import { InvalidConfigurationError, SandboxError } from "../../errors.ts";

/** An int64 of the wire as a number. Those that are not exact as one do not come from a server of ours. */
export function numberOf(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new SandboxError(`the server sent a number that is too large: ${value}`, { code: "UNKNOWN" });
}

/** A count on its way to the server. Absent is 0, which the contract takes for "not given". */
export function bigintOf(value: number | undefined, name: string): bigint {
  if (value === undefined) return 0n;
  if (Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  throw invalid(`${name} must be a whole number, 0 or more, not ${value}`);
}

const LARGEST_UINT32 = 2 ** 32 - 1;

/** The same for fields of 32 bits. */
export function uint32Of(value: number | undefined, name: string): number {
  if (value === undefined) return 0;
  if (Number.isInteger(value) && value >= 0 && value <= LARGEST_UINT32) return value;
  throw invalid(`${name} must be a whole number, 0 or more, not ${value}`);
}

const LARGEST_INT32 = 2 ** 31 - 1;

/** How many to fetch at a time; the server has a maximum of its own. */
export function pageSizeOf(pageSize: number | undefined): number {
  if (pageSize === undefined) return 0;
  if (Number.isInteger(pageSize) && pageSize > 0) return Math.min(pageSize, LARGEST_INT32);
  throw invalid(`pageSize must be a whole number above 0, not ${pageSize}`);
}

export function invalid(message: string, cause?: unknown): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT", cause });
}
