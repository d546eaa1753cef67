import { RuntimeError } from "../../../runtime/errors.ts";

// Fields of requests, parsed where they come in. Every refusal names the field as the contract spells it.

export function invalid(message: string, details: Readonly<Record<string, string>> = {}): RuntimeError {
  return new RuntimeError("INVALID_ARGUMENT", message, { details });
}

/** `where` tells which message of a stream lacks it: "in metadata". */
export function required(value: string, field: string, where = ""): string {
  if (value === "") throw invalid(`${field} is required${where === "" ? "" : ` ${where}`}`, { field });
  return value;
}

/** An int64 that counts something: not negative, and exact as a number. */
export function count(value: bigint, field: string): number {
  if (value < 0n) throw invalid(`${field} must not be negative`, { field });
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid(`${field} is too large`, { field });
  return Number(value);
}

/** The same, where 0 stands for "not given". */
export function optionalCount(value: bigint, field: string): number | undefined {
  const number = count(value, field);
  return number === 0 ? undefined : number;
}

/** The bits that chmod takes; a file type among them (st_mode as a whole) is a mistake worth telling. */
export function permissionBits(mode: number, field: string): number {
  if (mode > 0o7777) throw invalid(`${field} must be permission bits only, 07777 at most`, { field });
  return mode;
}

const LARGEST_INT32 = 2 ** 31 - 1;

/** For fields of 32 bits that count what can outgrow them. */
export function int32(value: number): number {
  return Math.min(value, LARGEST_INT32);
}

/** Without the members that are undefined: in requests to the runtime, not given is spelled as absent. */
export function given<Members extends object>(
  members: Members,
): { -readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Members]?: Exclude<Members[Name], undefined>;
  };
}
