import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { changeMethods } from "../../../src/runtime/store/sqlite/changes.ts";
import { codebaseMethods } from "../../../src/runtime/store/sqlite/codebases.ts";
import { Database } from "../../../src/runtime/store/sqlite/database.ts";
import { entryMethods } from "../../../src/runtime/store/sqlite/entries.ts";
import { eventMethods } from "../../../src/runtime/store/sqlite/events.ts";
import { retentionMethods } from "../../../src/runtime/store/sqlite/retention.ts";
import { sandboxMethods } from "../../../src/runtime/store/sqlite/sandboxes.ts";
import { sessionMethods } from "../../../src/runtime/store/sqlite/sessions.ts";
import { versionMethods } from "../../../src/runtime/store/sqlite/versions.ts";
import { codebase, file, journal } from "./records.ts";

/** SQLite's own account of how it answers what `ask` asks: one line per step. */
async function plansOf(ask: (database: Database) => void): Promise<string[]> {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-plans-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const path = join(directory, "metadata.db");
  const database = Database.open(path);
  onTestFinished(() => database.close());
  codebaseMethods(database).insertCodebase(codebase({ id: "cb_1" }));
  const prepare = vi.spyOn(database, "prepare");
  ask(database);
  using connection = new DatabaseSync(path);
  return prepare.mock.calls
    .filter(([sql]) => !sql.includes("SELECT number FROM codebases WHERE id = ?") || sql.includes("changes"))
    .flatMap(([sql]) => connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all())
    .map(({ detail }) => String(detail));
}

test("the lists of entries, by directory, below one and by hash, come from an index in order", async () => {
  const plans = await plansOf((database) => {
    const { listEntries, entriesByHash, entry } = entryMethods(database);
    entry("cb_1", "a");
    listEntries("cb_1", { directory: "a", recursive: false, after: "a/b", limit: 10 });
    listEntries("cb_1", { directory: "a", recursive: true, after: "a/b", limit: 10 });
    listEntries("cb_1", { directory: "", recursive: true });
    entriesByHash("cb_1", ["ab"]);
  });
  expect(plans).toEqual([
    "SEARCH entries USING PRIMARY KEY (codebase=? AND path=?)",
    "SEARCH entries USING INDEX entries_by_parent (codebase=? AND parent=? AND path>?)",
    "SEARCH entries USING PRIMARY KEY (codebase=? AND path>? AND path<?)",
    "SEARCH entries USING PRIMARY KEY (codebase=? AND path>? AND path<?)",
    "SEARCH entries USING INDEX entries_by_hash (codebase=? AND sha256=?)",
  ]);
});

test("pages of codebases and sandboxes come from an index in order", async () => {
  const after = [5, "x"] as const;
  const plans = await plansOf((database) => {
    const { listCodebases } = codebaseMethods(database);
    listCodebases({ after, limit: 10 });
    listCodebases({ ownerId: "ann", after, limit: 10 });
    const { listSandboxes } = sandboxMethods(database);
    listSandboxes({ after, limit: 10 });
    listSandboxes({ ownerId: "ann", after, limit: 10 });
    listSandboxes({ status: "RUNNING" });
    sessionMethods(database).listSessions("sb_1");
  });
  expect(plans).toEqual([
    "SEARCH codebases USING INDEX codebases_by_age ((created_at,id)>(?,?))",
    "SEARCH codebases USING INDEX codebases_by_owner (owner_id=? AND (created_at,id)>(?,?))",
    "SEARCH sandboxes USING INDEX sandboxes_by_age ((created_at,id)>(?,?))",
    "SEARCH sandboxes USING INDEX sandboxes_by_owner (owner_id=? AND (created_at,id)>(?,?))",
    "SEARCH sandboxes USING INDEX sandboxes_by_status (status=?)",
    "SEARCH sessions USING INDEX sessions_by_sandbox (sandbox_id=?)",
  ]);
});

test("events are found by their index and come in the order of the log", async () => {
  const plans = await plansOf((database) => {
    const { listEvents } = eventMethods(database);
    listEvents({ afterSequence: 5, limit: 10 });
    listEvents({ ownerId: "ann", afterSequence: 5, limit: 10 });
    listEvents({ sandboxId: "sb_1", ownerId: "ann", afterSequence: 5, limit: 10 });
    listEvents({ codebaseId: "cb_1", afterSequence: 5, limit: 10 });
    listEvents({ types: ["alert"], afterSequence: 5, limit: 10 });
  });
  expect(plans.filter((plan) => plan.includes("TEMP B-TREE"))).toEqual([]);
  expect(plans.map((plan) => /USING (?:INTEGER )?(?:INDEX )?(\w+)/.exec(plan)?.[1])).toEqual([
    "PRIMARY",
    "events_by_owner",
    "events_by_sandbox",
    "events_by_codebase",
    "events_by_type",
  ]);
});

test("what changed after a version is found by path or by version, never by a walk over all changes", async () => {
  const plans = await plansOf((database) => {
    const { firstChangesAfter, changesOf } = versionMethods(database);
    firstChangesAfter("cb_1", 3, { path: "a" });
    firstChangesAfter("cb_1", 3, { directory: "a" });
    firstChangesAfter("cb_1", 3, {});
    changesOf("cb_1", 3);
  });
  expect(plans.filter((plan) => plan.startsWith("SCAN"))).toEqual([]);
  expect(plans).toContain("SEARCH changes USING INDEX changes_by_path (codebase=? AND path=? AND version>?)");
});

test("old versions are found and dropped by their numbers", async () => {
  const plans = await plansOf((database) => {
    const { beginChange, finishChange, settleChange } = changeMethods(database);
    for (const version of [1, 2, 3]) {
      const before = version === 1 ? undefined : file("a");
      beginChange(journal("cb_1", version, [{ path: "a", before, after: file("a", { version }) }]));
      finishChange("cb_1");
      settleChange("cb_1");
    }
    retentionMethods(database).dropVersions("cb_1", { versions: 2, bytes: 1 });
  });
  expect(plans.filter((plan) => plan.startsWith("SCAN versions") || plan.startsWith("SCAN changes"))).toEqual([]);
  expect(plans.filter((plan) => plan.includes("TEMP B-TREE"))).toEqual([]);
  expect(plans).toContain("SEARCH changes USING PRIMARY KEY (codebase=? AND version<?)");
});
