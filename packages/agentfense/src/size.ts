import { UsageError } from "./command.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** `512m`, `1g`, `1.5GiB` or plain bytes; the units are powers of 1024. */
export function parseByteSize(text: string, option: string): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit?.toLowerCase() ?? ""] ?? Number.NaN);
  if (!Number.isFinite(bytes) || bytes > Number.MAX_SAFE_INTEGER) {
    throw new UsageError(`${option} takes a size such as 512m, 1g or a number of bytes, not ${JSON.stringify(text)}`);
  }
  return Math.floor(bytes);
}

/** A whole number, zero or more. */
export function parseCount(text: string, option: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(count)) throw new UsageError(`${option} takes a number, not ${JSON.stringify(text)}`);
  return count;
}

/** `UID:GID`, both numbers. */
export function parseOwner(text: string, option: string): { uid: number; gid: number } {
  const [, uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? [];
  const owner = { uid: Number(uid), gid: Number(gid) };
  // 2³² − 1 means "no change" to the kernel and is nobody's number.
  if (!(owner.uid < 0xffff_ffff && owner.gid < 0xffff_ffff)) {
    throw new UsageError(`${option} takes UID:GID, two numbers such as 1000:1000, not ${JSON.stringify(text)}`);
  }
  return owner;
}
