import { UsageError } from "../command.ts";

/** The number of a version; absent is 0, the newest. */
export function parseVersion(text: string | undefined, option: string): bigint {
  if (text === undefined) return 0n;
  if (!/^[1-9]\d{0,17}$/.test(text))
    throw new UsageError(`${option} takes the number of a version, not ${JSON.stringify(text)}`);
  return BigInt(text);
}
