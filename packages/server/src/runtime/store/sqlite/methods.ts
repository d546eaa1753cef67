import { changeMethods } from "./changes.ts";
import { codebaseMethods } from "./codebases.ts";
import type { Database } from "./database.ts";
import { entryMethods } from "./entries.ts";
import { eventMethods } from "./events.ts";
import { keyMethods } from "./keys.ts";
import type { Immediate, StoreCalls } from "./protocol.ts";
import { retentionMethods } from "./retention.ts";
import { sandboxMethods } from "./sandboxes.ts";
import { secretMethods } from "./secrets.ts";
import { sessionMethods } from "./sessions.ts";
import { snapshotMethods } from "./snapshots.ts";
import { versionMethods } from "./versions.ts";

/** Everything a store can be asked, answered at once. */
export function storeMethods(database: Database): Immediate<StoreCalls> {
  return {
    ...codebaseMethods(database),
    ...entryMethods(database),
    ...changeMethods(database),
    ...versionMethods(database),
    ...retentionMethods(database),
    ...sandboxMethods(database),
    ...sessionMethods(database),
    ...eventMethods(database),
    ...keyMethods(database),
    ...secretMethods(database),
    ...snapshotMethods(database),
  };
}
