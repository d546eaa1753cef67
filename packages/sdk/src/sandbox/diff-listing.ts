import { Listing } from "../listing.ts";
import type { FileDiff } from "../model/records.ts";

/** The changes as unified diffs, one by one or all as one text. */
export class DiffListing extends Listing<FileDiff> {
  /** What `patch` reads. Files that are binary or too large have a line that says so. */
  async text(): Promise<string> {
    let all = "";
    for await (const { change, unified, binary } of this) {
      if (unified !== "") all += unified.endsWith("\n") ? unified : `${unified}\n`;
      else if (binary) all += `Binary file ${change.path} ${change.kind}\n`;
    }
    return all;
  }
}
