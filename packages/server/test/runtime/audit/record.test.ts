import { beforeEach, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { verifyAudit } from "../../../src/runtime/audit/verify.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import type { EventDraft, MetadataStore } from "../../../src/runtime/store/store.ts";
import { temporaryStore } from "../store/temporary.ts";
import { ALL, ANN, testAudit } from "./support.ts";

let store: MetadataStore;

beforeEach(async () => {
  ({ store } = await temporaryStore());
});

test("an event is stored, and is one line of the operator's log", async () => {
  const { audit, lines } = testAudit(store);
  audit.record({
    type: "command_executed",
    ownerId: "ann",
    sandboxId: "sb_1",
    data: { command: "echo \u001b[31m\nred", exit_code: 0, duration_ms: 45 },
  });
  audit.record({
    type: "permission_denied",
    level: "warn",
    sandboxId: "sb_1",
    data: { path: "/.env", operation: "open", permission: "none", msg: "forged", sandbox_id: "sb_2" },
  });
  expect(lines).toEqual([
    {
      level: "info",
      time: "2026-02-03T10:15:30.000Z",
      msg: "command_executed",
      sandbox_id: "sb_1",
      user_id: "ann",
      command: "echo \u001b[31m\nred",
      exit_code: 0,
      duration_ms: 45,
    },
    {
      level: "warn",
      time: "2026-02-03T10:15:30.000Z",
      msg: "permission_denied",
      sandbox_id: "sb_1",
      path: "/.env",
      operation: "open",
      permission: "none",
    },
  ]);
  await audit.flush();
  expect(await store.listEvents({ limit: 10 })).toMatchObject([
    { sequence: 1, type: "command_executed", ownerId: "ann", data: { exit_code: 0 } },
    { sequence: 2, type: "permission_denied", level: "warn", ownerId: "", data: { path: "/.env" } },
  ]);
});

test("what was recorded is what is stored, whatever becomes of the object, and nothing is too odd to record", async () => {
  const { audit } = testAudit(store);
  const data: Record<string, unknown> = { count: 1n, when: new Date(0), nothing: undefined, number: Number.NaN };
  audit.record({ type: "a", data });
  data.count = 2n;
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  audit.record({ type: "b", data: cycle });
  audit.record({ type: "c", data: { command: "x".repeat(1_000_000) } });
  audit.record({ type: "d", data: { list: Array.from({ length: 100 }, () => "x".repeat(8000)) } });
  audit.record({ type: "e", data: { call: () => 1, half: "a\ud800", ["__proto__"]: 1 } });
  const { items } = await audit.list(SERVER, ALL);
  expect(items.map(({ data }) => data)).toEqual([
    { count: "1", when: "1970-01-01T00:00:00.000Z", number: null },
    { unreadable: expect.stringContaining("circular") },
    { command: "x".repeat(8192), truncated: true },
    { truncated: true },
    { half: "a\ufffd", ["__proto__"]: 1 },
  ]);
  expect(await verifyAudit(store)).toEqual({ ok: true, events: 5 });
});

test("pages follow each other to the end", async () => {
  const { audit } = testAudit(store);
  for (let i = 1; i <= 7; i++) audit.record({ type: "a", ownerId: "ann", data: { i } });
  const seen: unknown[] = [];
  let pageToken = "";
  let pages = 0;
  do {
    const page = await audit.list(ANN, { ...ALL, pageSize: 3, pageToken });
    seen.push(...page.items.map(({ data }) => data.i));
    pageToken = page.nextPageToken;
    pages += 1;
  } while (pageToken !== "");
  expect([seen, pages]).toEqual([[1, 2, 3, 4, 5, 6, 7], 3]);
  await expect(audit.list(ANN, { ...ALL, pageToken: "nonsense" })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
});

test("an owner sees the own events only, whatever is asked for", async () => {
  const { audit } = testAudit(store);
  audit.record({ type: "a", ownerId: "ann", sandboxId: "sb_ann" });
  audit.record({ type: "a", ownerId: "ben", sandboxId: "sb_ben" });
  audit.record({ type: "a" });
  const owners = async (caller: typeof ANN, filter: Partial<typeof ALL>): Promise<string[]> =>
    (await audit.list(caller, { ...ALL, ...filter })).items.map(({ ownerId }) => ownerId);
  expect(await owners(ANN, {})).toEqual(["ann"]);
  expect(await owners(ANN, { ownerId: "ann" })).toEqual(["ann"]);
  expect(await owners(ANN, { ownerId: "ben" })).toEqual([]);
  expect(await owners(ANN, { sandboxId: "sb_ben" })).toEqual([]);
  expect(await owners(SERVER, {})).toEqual(["ann", "ben", ""]);
  expect(await owners(SERVER, { ownerId: "ben" })).toEqual(["ben"]);
});

test("closing stores what is still queued", async () => {
  const { audit, lines } = testAudit(store);
  for (let i = 0; i < 1000; i++) audit.record({ type: "a" });
  await audit[Symbol.asyncDispose]();
  audit.record({ type: "late" });
  expect((await store.chainHead()).sequence).toBe(1000);
  expect(lines.at(-1)).toMatchObject({ msg: "late" });
});

test("old events go by age and by count, and the rest still verifies", async () => {
  const { audit, clock } = testAudit(store);
  for (let i = 0; i < 20; i++) {
    audit.record({ type: "a" });
    clock.nowMs += 1000;
  }
  await audit[Symbol.asyncDispose]();
  const byAge = testAudit(store, { clock: () => clock.nowMs, retention: { maxAgeMs: 15_000, maxEvents: 0 } });
  await byAge.audit[Symbol.asyncDispose]();
  expect(await verifyAudit(store)).toEqual({ ok: true, events: 15 });
  const byCount = testAudit(store, { clock: () => clock.nowMs, retention: { maxAgeMs: 0, maxEvents: 5 } });
  for (let i = 0; i < 2500; i++) byCount.audit.record({ type: "b" });
  await byCount.audit[Symbol.asyncDispose]();
  const verdict = await verifyAudit(store);
  expect(verdict).toMatchObject({ ok: true });
  // A round of retention runs beside the writing; between two of them a thousand and some may come together.
  expect("events" in verdict && verdict.events).toBeLessThan(2000);
});

/** A store that does nothing until it is let. */
function heldStore(): { held: MetadataStore; letGo: (error?: Error) => void; batches: EventDraft[][] } {
  let gate = Promise.withResolvers<void>();
  const batches: EventDraft[][] = [];
  const held: MetadataStore = {
    ...store,
    async appendEvents(drafts) {
      batches.push([...drafts]);
      await gate.promise;
      return store.appendEvents(drafts);
    },
  };
  const letGo = (error?: Error): void => {
    const old = gate;
    if (error !== undefined) gate = Promise.withResolvers<void>();
    if (error === undefined) old.resolve();
    else old.reject(error);
  };
  return { held, letGo, batches };
}

test("when the store cannot keep up, denials come together first and the rest is dropped and counted", async () => {
  const { held, letGo } = heldStore();
  const { audit, lines } = testAudit(held, {
    queueLimits: { events: 100, size: 1_000_000 },
    alerts: { permissionDeniedPerMinute: Number.POSITIVE_INFINITY },
  });
  for (let i = 0; i < 60; i++) audit.record({ type: "a" });
  for (let i = 0; i < 500; i++)
    audit.record({ type: "permission_denied", sandboxId: `sb_${i % 2}`, data: { path: `/${i}` } });
  for (let i = 0; i < 60; i++) audit.record({ type: "b" });
  letGo();
  await audit.flush();
  await audit.flush();
  const { items } = await audit.list(SERVER, { ...ALL, pageSize: 1000 });
  const count = (type: string): number => items.filter((item) => item.type === type).length;
  expect({ a: count("a"), denied: count("permission_denied"), b: count("b") }).toEqual({ a: 60, denied: 2, b: 38 });
  expect(items.filter(({ type }) => type === "permission_denied").map(({ data }) => data)).toEqual([
    { path: "/0", suppressed: 249 },
    { path: "/1", suppressed: 249 },
  ]);
  expect(items.at(-1)).toMatchObject({ type: "events_dropped", level: "error", data: { count: 22, types: { b: 22 } } });
  // What is lost to the store is still in the operator's log, except for what an agent can repeat at will.
  expect(lines.filter(({ msg }) => msg === "b")).toHaveLength(60);
  expect(lines.filter(({ msg }) => msg === "permission_denied")).toHaveLength(2);
});

test("the queue is bounded by size too", async () => {
  const { held, letGo } = heldStore();
  const { audit } = testAudit(held, { queueLimits: { events: 1000, size: 10_000 } });
  for (let i = 0; i < 20; i++) audit.record({ type: "a", data: { text: "x".repeat(1000) } });
  letGo();
  await audit.flush();
  await audit.flush();
  const { items } = await audit.list(SERVER, ALL);
  expect(items).toHaveLength(11);
  expect(items.at(-1)?.data).toEqual({ count: 10, types: { a: 10 } });
});

test("a store that fails is told to the log, and asked again", async () => {
  const { held, letGo, batches } = heldStore();
  const { audit, lines } = testAudit(held);
  audit.record({ type: "a" });
  const flushed = audit.flush();
  await eventually(() => expect(batches.length).toBe(1));
  letGo(new Error("disk full"));
  await expect(flushed).rejects.toThrow("disk full");
  expect(lines.at(-1)).toMatchObject({ level: "error", msg: "audit_store_failed", error: "disk full" });
  letGo();
  await audit.flush();
  expect((await store.listEvents({ limit: 10 })).map(({ type }) => type)).toEqual(["a"]);
});

test("what cannot be stored when the log is closed is told, and closing ends", async () => {
  const broken: MetadataStore = { ...store, appendEvents: () => Promise.reject(new Error("disk full")) };
  const { audit, lines } = testAudit(broken);
  audit.record({ type: "a" });
  audit.record({ type: "b" });
  await audit[Symbol.asyncDispose]();
  expect(lines.at(-1)).toMatchObject({ level: "error", msg: "audit_events_lost", events: 2 });
});
