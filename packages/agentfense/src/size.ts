import { bytesOf } from "@agentfense/sdk/project";
import { UsageError } from "./command.ts";

/** `512m`, `1g`, `1.5GiB` or plain bytes; the units are powers of 1024. */
export function parseByteSize(text: string, option: string): number {
  const bytes = bytesOf(text);
  if (bytes === undefined) {
    throw new UsageError(`${option} takes a size such as 512m, 1g or a number of bytes, not ${JSON.stringify(text)}`);
  }
  return bytes;
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

const SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** A number of bytes for people. */
export function showSize(bytes: bigint | number): string {
  let size = Number(bytes);
  let unit = 0;
  for (; size >= 1024 && unit < SIZE_UNITS.length - 1; unit += 1) size /= 1024;
  return `${unit === 0 ? size : size.toFixed(1)} ${SIZE_UNITS[unit]}`;
}
