import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { aWhile, withoutHanging } from "../../../../../test/support/eventually.ts";
import { migrate } from "../../../src/runtime/store/sqlite/migrations.ts";
import { openSqliteStore } from "../../../src/runtime/store/sqlite/open-sqlite-store.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { describeStore } from "./contract.ts";
import { codebase, directory as directoryEntry, event, file, journal, key, sandbox, session } from "./records.ts";

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "agentfense-store-"));
  path = join(directory, "state", "metadata.db");
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

describeStore("sqlite", () => openSqliteStore({ path }));

test("a restart finds everything", async () => {
  const everything = async (store: MetadataStore): Promise<unknown> => ({
    codebase: await store.codebase("cb_1"),
    entries: await store.listEntries("cb_1", { directory: "", recursive: true }),
    versions: await store.listVersions("cb_1", { limit: 10 }),
    changes: await store.changesOf("cb_1", 1),
    journals: await store.unsettledChanges(),
    sandboxes: await store.listSandboxes({}),
    sessions: await store.listSessions("sb_1"),
    events: await store.listEvents({ limit: 10 }),
    head: await store.chainHead(),
    anchor: await store.chainAnchor(),
    keys: await store.listKeys(),
  });
  let before: unknown;
  {
    await using store = await openSqliteStore({ path });
    await store.insertCodebase(codebase({ id: "cb_1" }));
    await store.beginChange(journal("cb_1", 1, [{ path: "a", before: undefined, after: file("a") }]));
    await store.finishChange("cb_1");
    await store.settleChange("cb_1");
    await store.beginChange(journal("cb_1", 2, [{ path: "a", before: file("a"), after: undefined }]));
    await store.insertSandbox(sandbox({ id: "sb_1", expiresAtMs: 5 }), 1);
    await store.insertSession(session({ id: "se_1", sandboxId: "sb_1" }));
    await store.appendEvents([event(), event(), event()]);
    await store.trimEvents({ keep: 2 });
    await store.insertKey(key({ id: "key_1" }));
    before = await everything(store);
  }
  await using store = await openSqliteStore({ path });
  expect(await everything(store)).toEqual(before);
  expect(await store.finishChange("cb_1")).toMatchObject({ fileCount: 0, version: 2 });
});

test("only the server's user can read the database and its side files", async () => {
  await using store = await openSqliteStore({ path });
  await store.insertKey(key({ id: "key_1" }));
  const mode = async (name: string): Promise<string> => ((await stat(name)).mode & 0o777).toString(8);
  expect(await mode(join(directory, "state"))).toBe("700");
  for (const suffix of ["", "-wal", "-shm"]) expect(await mode(path + suffix), suffix).toBe("600");
});

test("a link in the place of the database is refused", async () => {
  const elsewhere = join(directory, "elsewhere");
  await writeFile(elsewhere, "", { mode: 0o644 });
  await symlink(elsewhere, join(directory, "link.db"));
  await expect(openSqliteStore({ path: join(directory, "link.db") })).rejects.toThrow("must not be a symbolic link");
  expect((await stat(elsewhere)).mode & 0o777).toBe(0o644);
});

test("what one process writes counts for the other at once", async () => {
  await using server = await openSqliteStore({ path });
  await using commandLine = await openSqliteStore({ path });
  await server.insertKey(key({ id: "key_1" }));
  expect(await commandLine.revokeKey("key_1", 5000)).toBe(true);
  expect(await server.key("key_1")).toEqual(key({ id: "key_1", revokedAtMs: 5000 }));
  const appended = await Promise.all(
    [server, commandLine, server, commandLine].map((store) => store.appendEvents([event(), event()])),
  );
  expect(
    appended
      .flat()
      .map(({ sequence }) => sequence)
      .sort((a, b) => a - b),
  ).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

test("a closed store answers what was asked before, and refuses what is asked after", async () => {
  const store = await openSqliteStore({ path });
  const asked = store.listKeys();
  await store[Symbol.asyncDispose]();
  expect(await asked).toEqual([]);
  await expect(store.listKeys()).rejects.toThrow("the metadata store is closed");
  await store[Symbol.asyncDispose]();
});

test("a kill in the middle of writes loses nothing that was acknowledged", async () => {
  for (const lifeMs of [20, 60, 110]) {
    const file = join(directory, `killed-${lifeMs}.db`);
    const child = spawn(process.execPath, [join(import.meta.dirname, "writer-program.ts"), file], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    await once(child.stdout, "data");
    await aWhile(lifeMs);
    child.kill("SIGKILL");
    await once(child, "close");
    const acknowledged = Number(output.slice(0, output.lastIndexOf("\n")).split("\n").at(-1));

    await using store = await openSqliteStore({ path: file });
    const before = (await store.codebase("cb_1"))?.version;
    for (const { codebaseId, version } of await store.unsettledChanges()) {
      if (version.version !== before) await store.finishChange(codebaseId);
    }
    const { version, fileCount, size } = (await store.codebase("cb_1")) ?? codebase({ id: "none" });
    expect(version).toBeGreaterThanOrEqual(acknowledged);
    expect(version).toBeLessThanOrEqual(acknowledged + 2);
    expect({ fileCount, size }).toEqual({ fileCount: version, size: version * 10 });
    expect(await store.listEntries("cb_1", { directory: "", recursive: true })).toHaveLength(version);
    expect((await store.chainHead()).sequence).toBeGreaterThanOrEqual(acknowledged);
  }
});

test("a change of 10,000 entries is no work for minutes", async () => {
  await using store = await openSqliteStore({ path });
  await store.insertCodebase(codebase({ id: "cb_1" }));
  const entries = (version: number) =>
    Array.from({ length: 10_000 }, (_, i) =>
      file(`packages/part-${i % 100}/src/module-${i}.ts`, { version, sha256: sha256(`${i}-${version}`) }),
    );
  const added = entries(1).map((after) => ({ path: after.path, before: undefined, after }));
  await withoutHanging(() => store.beginChange(journal("cb_1", 1, added)));
  await withoutHanging(() => store.finishChange("cb_1"));
  await withoutHanging(() => store.settleChange("cb_1"));
  const replaced = entries(2).map((after, i) => ({ path: after.path, before: added[i]?.after, after }));
  await withoutHanging(() => store.beginChange(journal("cb_1", 2, replaced)));
  await withoutHanging(() => store.finishChange("cb_1"));
  await withoutHanging(() => store.settleChange("cb_1"));
  const paths = entries(2).map((entry) => entry.path);
  await withoutHanging(() => store.entries("cb_1", paths));
  const hashes = entries(2).map((entry) => entry.sha256);
  await withoutHanging(() => store.entriesByHash("cb_1", hashes));
  const all = await withoutHanging(() => store.listEntries("cb_1", { directory: "", recursive: true }));
  expect(all).toHaveLength(10_000);
  await withoutHanging(() => store.firstChangesAfter("cb_1", 1, {}));
  await withoutHanging(() => store.deleteCodebase("cb_1"));
});

test("a database of a newer schema is refused, and stays as it is", async () => {
  await (await openSqliteStore({ path }))[Symbol.asyncDispose]();
  setVersion(99);
  await expect(openSqliteStore({ path })).rejects.toThrow("schema 99");
  await expect(openSqliteStore({ path })).rejects.toThrow("newer");
  expect(setVersion(99)).toBe(99);
});

test("a file that is no database is refused", async () => {
  await writeFile(join(directory, "text.db"), "this is a letter, not a database".repeat(100));
  await expect(openSqliteStore({ path: join(directory, "text.db") })).rejects.toThrow("not a database");
});

test("migrations run once each, in order, and a failing one leaves the step before", () => {
  using connection = new DatabaseSync(join(directory, "steps.db"));
  const steps = ["CREATE TABLE a (x)", "INSERT INTO a VALUES (1)"];
  const rows = (): unknown => connection.prepare("SELECT count(*) AS rows FROM a").get()?.rows;
  migrate(connection, steps.slice(0, 1));
  migrate(connection, steps);
  migrate(connection, steps);
  expect(rows()).toBe(1);
  expect(() => migrate(connection, [...steps, "INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1)"])).toThrow(
    "nowhere",
  );
  expect(rows()).toBe(1);
  expect(connection.prepare("PRAGMA user_version").get()?.user_version).toBe(2);
});

test("a database from before versions were dropped knows what they keep", async () => {
  const before = file("a", { size: 5000 });
  {
    await using store = await openSqliteStore({ path });
    await store.insertCodebase(codebase({ id: "cb_1" }));
    await store.beginChange(
      journal("cb_1", 1, [
        { path: "a", before: undefined, after: before },
        { path: "d", before: undefined, after: directoryEntry("d") },
      ]),
    );
    await store.finishChange("cb_1");
    await store.settleChange("cb_1");
    await store.beginChange(journal("cb_1", 2, [{ path: "a", before, after: undefined }]));
    await store.finishChange("cb_1");
    await store.settleChange("cb_1");
  }
  const asItIs = { released: [], oldest: 1, keptBytes: 2 * 4096 + 512, hasMore: false };
  {
    using connection = new DatabaseSync(path);
    connection.exec(`
      DROP TABLE snapshots;
      ALTER TABLE versions DROP COLUMN kept_bytes;
      ALTER TABLE codebases DROP COLUMN kept_bytes;
      ALTER TABLE codebases DROP COLUMN directory_count;
      ALTER TABLE sandboxes DROP COLUMN idle_pause_ms;
      ALTER TABLE sandboxes DROP COLUMN home;
      ALTER TABLE sandboxes DROP COLUMN last_process;
      ALTER TABLE sandboxes DROP COLUMN network_rules;
      ALTER TABLE sandboxes DROP COLUMN secrets;
      DROP TABLE secrets;
      ALTER TABLE sandboxes DROP COLUMN workspace_home;
      ALTER TABLE sandboxes DROP COLUMN pause_at_expiry;
      PRAGMA user_version = 1;
    `);
  }
  await using store = await openSqliteStore({ path });
  expect(await store.dropVersions("cb_1", { versions: 0, bytes: 0 })).toEqual(asItIs);
  expect(await store.ownerUsage("ann")).toEqual({ codebases: 1, bytes: 0, files: 0, directories: 1 });
});

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Gives the version that was there. */
function setVersion(version: number): unknown {
  using connection = new DatabaseSync(path);
  const before = connection.prepare("PRAGMA user_version").get()?.user_version;
  connection.exec(`PRAGMA user_version = ${version}`);
  return before;
}
