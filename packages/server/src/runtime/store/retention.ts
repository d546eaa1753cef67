import type { Retention } from "./store.ts";

/** So many versions, or changes in them, are dropped at a time. */
export const VERSIONS_A_CALL = 256;
export const CHANGES_A_CALL = 20_000;

/** A version, and what it keeps of what it replaced. */
export interface KeptVersion {
  readonly version: number;
  readonly kept_bytes: number;
}

/** The oldest version that a codebase keeps. `kept`: its versions from the oldest on, without the newest. */
export function oldestToKeep(
  codebase: {
    readonly version: number;
    readonly keptBytes: number;
    readonly oldest: number;
    readonly kept: Iterable<KeptVersion>;
  },
  keep: Retention,
): number {
  const { version, keptBytes, oldest } = codebase;
  const byCount = keep.versions === 0 ? oldest : Math.max(oldest, version - keep.versions + 1);
  if (keep.bytes === 0 || keptBytes <= keep.bytes) return byCount;
  // A version needs what those after it replaced, and not what it replaced itself.
  let [bytes, byBytes] = [keptBytes, oldest];
  for (const row of codebase.kept) {
    if (bytes <= keep.bytes) break;
    byBytes = row.version;
    bytes -= row.kept_bytes;
  }
  return Math.max(byCount, byBytes);
}
