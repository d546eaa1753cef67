import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { EventFilter } from "../../../src/runtime/audit/api.ts";
import { type Caller, SERVER } from "../../../src/runtime/caller.ts";
import type { EventRecord, MetadataStore } from "../../../src/runtime/store/store.ts";
import { event } from "../store/records.ts";
import { temporaryStore } from "../store/temporary.ts";
import { ALL, ANN, next, testAudit } from "./support.ts";

let store: MetadataStore;

beforeEach(async () => {
  ({ store } = await temporaryStore());
});

function watch(
  audit: ReturnType<typeof testAudit>["audit"],
  caller: Caller,
  filter: Partial<EventFilter> & { afterSequence?: number } = {},
): { events: AsyncIterator<EventRecord>; end: () => void } {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const events = audit.watch(caller, { ...ALL, ...filter, signal: controller.signal })[Symbol.asyncIterator]();
  return { events, end: () => controller.abort() };
}

const sequences = (events: readonly EventRecord[]): number[] => events.map(({ sequence }) => sequence);
const oneTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i);

test("without a cursor a watch shows what happens from its start on, and not what was still being stored", async () => {
  const { audit } = testAudit(store);
  audit.record({ type: "before" });
  const { events } = watch(audit, SERVER);
  const first = events.next();
  audit.record({ type: "after" });
  expect((await first).value).toMatchObject({ sequence: 2, type: "after" });
});

test("from a cursor on it shows what is stored and then what happens, without a gap and nothing twice", async () => {
  const { audit } = testAudit(store);
  for (let i = 0; i < 250; i++) audit.record({ type: "a" });
  await audit.flush();
  const { events } = watch(audit, SERVER, { afterSequence: 20 });
  const seen: EventRecord[] = [];
  for (let round = 0; round < 40; round++) {
    // While it reads the past, new events come in all the time.
    for (let i = 0; i < 5; i++) audit.record({ type: "b" });
    seen.push(...(await next(events, 5)));
  }
  seen.push(...(await next(events, 230)));
  expect(sequences(seen)).toEqual(oneTo(450, 21));
});

test("a watcher that is too slow for its buffer loses nothing", async () => {
  const { audit } = testAudit(store);
  const { events } = watch(audit, ANN);
  const first = events.next();
  audit.record({ type: "a", ownerId: "ann" });
  await first;
  for (let i = 0; i < 3000; i++) audit.record({ type: "a", ownerId: i % 2 === 0 ? "ann" : "ben" });
  await audit.flush();
  const seen = await next(events, 700);
  for (let i = 0; i < 1000; i++) audit.record({ type: "a", ownerId: "ann" });
  await audit.flush();
  seen.push(...(await next(events, 1800)));
  expect(sequences(seen)).toEqual([...oneTo(1500).map((i) => 2 * i), ...oneTo(4001, 3002)]);
});

test("what another process appends is seen with the next event", async () => {
  const { audit } = testAudit(store);
  const { events } = watch(audit, SERVER);
  const first = events.next();
  audit.record({ type: "own" });
  await first;
  await store.appendEvents([event({ type: "foreign" }), event({ type: "foreign" })]);
  audit.record({ type: "own" });
  expect((await next(events, 3)).map(({ type }) => type)).toEqual(["foreign", "foreign", "own"]);
});

test("an owner's watch shows nothing of others, live or stored, and one for a foreign owner shows nothing", async () => {
  const { audit } = testAudit(store);
  audit.record({ type: "a", ownerId: "ben" });
  audit.record({ type: "a", ownerId: "ann" });
  await audit.flush();
  const own = watch(audit, ANN, { afterSequence: 0 });
  const foreign = watch(audit, ANN, { afterSequence: 0, ownerId: "ben" });
  const live = watch(audit, ANN, { ownerId: "ben" });
  const nothing = [foreign.events.next(), live.events.next()];
  expect(sequences(await next(own.events, 1))).toEqual([2]);
  audit.record({ type: "a", ownerId: "ben" });
  audit.record({ type: "a", ownerId: "ann" });
  expect(sequences(await next(own.events, 1))).toEqual([4]);
  foreign.end();
  live.end();
  expect(await Promise.all(nothing)).toEqual([
    { done: true, value: undefined },
    { done: true, value: undefined },
  ]);
});

test("a watch shows the sandbox, codebase and types asked for", async () => {
  const { audit } = testAudit(store);
  const { events } = watch(audit, SERVER, { sandboxId: "sb_1", codebaseId: "cb_1", types: ["a", "b"] });
  const first = events.next();
  audit.record({ type: "c", sandboxId: "sb_1", codebaseId: "cb_1" });
  audit.record({ type: "a", sandboxId: "sb_2", codebaseId: "cb_1" });
  audit.record({ type: "a", sandboxId: "sb_1" });
  audit.record({ type: "b", sandboxId: "sb_1", codebaseId: "cb_1" });
  expect((await first).value).toMatchObject({ sequence: 4, type: "b" });
});

test("a watch ends with its signal, and with the log", async () => {
  const { audit } = testAudit(store);
  const one = watch(audit, SERVER);
  const two = watch(audit, SERVER, { afterSequence: 0 });
  const waiting = [one.events.next(), two.events.next()];
  one.end();
  expect(await waiting[0]).toEqual({ done: true, value: undefined });
  await audit[Symbol.asyncDispose]();
  expect(await waiting[1]).toEqual({ done: true, value: undefined });
  expect(await watch(audit, SERVER).events.next()).toEqual({ done: true, value: undefined });
});
