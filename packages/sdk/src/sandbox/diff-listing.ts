import { Listing } from "../listing.ts";
import type { FileDiff } from "../model/records.ts";

/** The changes as unified diffs, one by one or all as one text. */
export class DiffListing extends Listing<FileDiff> {
  /** All of them; of `diff({ patch: true })` what `git apply` reads. */
  async text(): Promise<string> {
    const texts: string[] = [];
    for await (const { unified } of this) texts.push(unified);
    return texts.join("");
  }
}
