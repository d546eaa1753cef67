import { type Entry, isSame, type LocalEntry } from "./entry.ts";

/** What is to be done at a path of the local copy. */
export type Decision =
  /** It is like that already. */
  { readonly act: "nothing" } | { readonly act: "replace" } | { readonly act: "leave"; readonly reason: string };

/**
 * Whether a path may become what the codebase has there now. Only what is as it was uploaded, or as it was last written
 * from here, is ever touched: anything else is somebody's work.
 */
export function decide(situation: {
  /** What was uploaded, or written by us since. */
  readonly known: Entry | undefined;
  /** What is there. */
  readonly local: LocalEntry | undefined;
  /** What is to be there. */
  readonly wanted: Entry | undefined;
}): Decision {
  const { known, local, wanted } = situation;
  if (local === undefined) {
    if (wanted === undefined) return { act: "nothing" };
    return known === undefined ? { act: "replace" } : { act: "leave", reason: "it was removed here since the upload" };
  }
  if (known === undefined) {
    const isFile = wanted !== undefined && wanted.kind !== "directory";
    if (isFile && isSame(local, wanted)) return { act: "nothing" };
    return { act: "leave", reason: "it is here and was not uploaded" };
  }
  if (wanted !== undefined && isSame(local, wanted)) return { act: "nothing" };
  return isSame(local, known) ? { act: "replace" } : { act: "leave", reason: "it changed here since the upload" };
}
