import { compileRules } from "@agentfense/permission";
import { isForeign } from "./content-reader.ts";
import { rootEntry, tryEntriesOf, type ViewEntry } from "./workspace-view.ts";

/** A tree can be larger than anybody wants to wait for; the top of it says most. */
const MOST_ENTRIES = 100_000;

/** What a project consists of, as far as it was looked at. */
export interface Survey {
  /** Parents before their children. */
  readonly entries: readonly ViewEntry[];
  /** Everything was looked at but what belongs to others. */
  readonly complete: boolean;
}

/** Looks at a directory level by level, so that a bound cuts off the depths. No link is followed. */
export function surveyDirectory(directory: string, most = MOST_ENTRIES): Survey {
  const entries: ViewEntry[] = [];
  // The rules do not matter here; they come along with every entry.
  let level: ViewEntry[] = [rootEntry(directory, compileRules([]).root)];
  while (level.length > 0) {
    const next: ViewEntry[] = [];
    for (const place of level) {
      for (const entry of tryEntriesOf(place).entries) {
        if (entries.length === most) return { entries, complete: false };
        entries.push(entry);
        if (entry.type === "directory" && isOwn(place, entry)) next.push(entry);
      }
    }
    level = next;
  }
  return { entries, complete: true };
}

/** Below .git only its own files count, not the objects. */
function isOwn(parent: ViewEntry, { name }: ViewEntry): boolean {
  return !isForeign(name) && parent.name !== ".git";
}
