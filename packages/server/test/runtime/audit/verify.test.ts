import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test } from "vitest";
import { verifyAudit } from "../../../src/runtime/audit/verify.ts";
import { chainHash } from "../../../src/runtime/store/event-chain.ts";
import type { MetadataStore } from "../../../src/runtime/store/store.ts";
import { event } from "../store/records.ts";
import { temporaryStore } from "../store/temporary.ts";

let store: MetadataStore;
let path: string;

beforeEach(async () => {
  ({ store, path } = await temporaryStore());
});

/** 1,200 events, the first 200 of which retention removed. */
async function fill(): Promise<void> {
  const drafts = Array.from({ length: 1200 }, (_, i) => event({ timeMs: i, data: { i, ü: [i, { b: 1, a: 2 }] } }));
  await store.appendEvents(drafts);
  await store.trimEvents({ keep: 1000 });
}

function tamper(sql: string): void {
  using connection = new DatabaseSync(path, { timeout: 5000 });
  connection.exec(sql);
}

test("a log that nobody touched is right, empty, full or trimmed to nothing", async () => {
  expect(await verifyAudit(store)).toEqual({ ok: true, events: 0 });
  await fill();
  expect(await verifyAudit(store)).toEqual({ ok: true, events: 1000 });
  await store.trimEvents({ keep: 0 });
  expect(await verifyAudit(store)).toEqual({ ok: true, events: 0 });
});

test.for([
  ["changed data", `UPDATE events SET data = '{"i":0}' WHERE sequence = 700`, 700],
  ["a changed time", "UPDATE events SET time = time + 1 WHERE sequence = 701", 701],
  ["a changed owner", "UPDATE events SET owner_id = 'ben' WHERE sequence = 201", 201],
  ["a changed key", "UPDATE events SET key_id = 'key_1' WHERE sequence = 1200", 1200],
  ["a changed hash", `UPDATE events SET hash = '${"0".repeat(64)}' WHERE sequence = 1200`, 1200],
  ["an event missing in the middle", "DELETE FROM events WHERE sequence = 600", 600],
  ["the newest missing", "DELETE FROM events WHERE sequence > 1100", 1101],
  ["the oldest missing", "DELETE FROM events WHERE sequence <= 210", 201],
  ["all missing", "DELETE FROM events", 201],
  [
    "two that changed places",
    `UPDATE events SET sequence = -1 WHERE sequence = 500; UPDATE events SET sequence = 500 WHERE sequence = 501;
     UPDATE events SET sequence = 501 WHERE sequence = -1`,
    500,
  ],
  [
    "one inserted, the later ones moved up",
    `UPDATE events SET sequence = -(sequence + 1) WHERE sequence >= 500;
     UPDATE events SET sequence = -sequence WHERE sequence < 0;
     INSERT INTO events SELECT 500, time, type, level, owner_id, key_id, sandbox_id, codebase_id, session_id, data, hash
     FROM events WHERE sequence = 499`,
    500,
  ],
  [
    "one inserted before all",
    `INSERT INTO events SELECT 5, time, type, level, owner_id, key_id, sandbox_id, codebase_id, session_id, data, hash
     FROM events WHERE sequence = 201`,
    5,
  ],
  ["an anchor that was moved", "UPDATE chain_ends SET sequence = 210 WHERE name = 'anchor'", 201],
  ["a head that was moved back", "UPDATE chain_ends SET sequence = 1100 WHERE name = 'head'", 1200],
] as const)("%s is found", async ([, sql, sequence]) => {
  await fill();
  tamper(sql);
  expect(await verifyAudit(store)).toEqual({ ok: false, sequence, reason: expect.any(String) });
});

test("an event forged at the end, with a right hash, is found", async () => {
  await fill();
  const head = await store.chainHead();
  const forged = event({ timeMs: 5000, data: {} });
  const hash = chainHash(head.hash, head.sequence + 1, forged);
  tamper(`INSERT INTO events VALUES (1201, 5000, '${forged.type}', 'info', 'ann', '', '', '', '', '{}', '${hash}')`);
  expect(await verifyAudit(store)).toEqual({ ok: false, sequence: 1201, reason: expect.any(String) });
});

test("retention does not hide that the event it would hang the chain on is missing", async () => {
  await fill();
  tamper("DELETE FROM events WHERE sequence = 300");
  await expect(store.trimEvents({ keep: 900 })).rejects.toThrow("tampered");
  expect(await verifyAudit(store)).toMatchObject({ ok: false, sequence: 300 });
});

test("a log that is written and trimmed meanwhile is right", async () => {
  await fill();
  let running = true;
  const writing = (async () => {
    for (let i = 0; running && i < 500; i++) {
      await store.appendEvents(Array.from({ length: 20 }, () => event()));
      await store.trimEvents({ keep: 1000 });
    }
  })();
  for (let i = 0; i < 5; i++) expect(await verifyAudit(store)).toMatchObject({ ok: true });
  running = false;
  await writing;
});
