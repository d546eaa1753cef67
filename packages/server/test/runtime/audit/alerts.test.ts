import { beforeEach, expect, test } from "vitest";
import { alertsFor } from "../../../src/runtime/audit/alerts.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import type { EventDraft } from "../../../src/runtime/store/store.ts";
import { event } from "../store/records.ts";
import { temporaryStore } from "../store/temporary.ts";
import { ALL, testAudit } from "./support.ts";

let alertOf: ReturnType<typeof alertsFor>;

beforeEach(() => {
  alertOf = alertsFor({});
});

const denied = (timeMs: number, values: Partial<EventDraft> = {}): EventDraft =>
  event({ type: "permission_denied", timeMs, sandboxId: "sb_1", codebaseId: "cb_1", ...values });

test("more than ten denials of a sandbox within a minute raise one alert a minute", () => {
  const raised: number[] = [];
  for (let timeMs = 0; timeMs < 180_000; timeMs += 1000) {
    if (alertOf(denied(timeMs)) !== undefined) raised.push(timeMs);
  }
  expect(raised).toEqual([10_000, 80_000, 150_000]);
});

test("ten a minute raise none", () => {
  for (let timeMs = 0; timeMs < 600_000; timeMs += 6000) expect(alertOf(denied(timeMs))).toBeUndefined();
});

test("an alert says what it is about", () => {
  expect(alertOf(denied(5000, { data: { suppressed: 40 } }))).toEqual({
    timeMs: 5000,
    type: "alert",
    level: "warn",
    ownerId: "ann",
    keyId: "",
    sandboxId: "sb_1",
    codebaseId: "cb_1",
    sessionId: "",
    data: { alert: "permission_denied", threshold: 10, window_ms: 60_000, count: 41 },
  });
});

test("sandboxes are counted apart", () => {
  for (let i = 0; i < 20; i++) expect(alertOf(denied(i, { sandboxId: `sb_${i % 2}` }))).toBeUndefined();
  expect(alertOf(denied(30, { sandboxId: "sb_0" }))).toBeDefined();
});

test("more than a hundred sandboxes of an owner within an hour raise an alert", () => {
  const created = (i: number): EventDraft => event({ type: "sandbox_created", timeMs: i, sandboxId: `sb_${i}` });
  for (let i = 0; i < 100; i++) expect(alertOf(created(i))).toBeUndefined();
  expect(alertOf(created(100))).toMatchObject({ ownerId: "ann", sandboxId: "", data: { count: 101 } });
});

test("any exceeded limit raises an alert, a sandbox's once a minute", () => {
  const exceeded = (timeMs: number): EventDraft =>
    event({ type: "resource_limit_exceeded", timeMs, sandboxId: "sb_1", data: { resource: "memory" } });
  expect(alertOf(exceeded(0))?.data).toEqual({
    alert: "resource_limit_exceeded",
    threshold: 0,
    window_ms: 60_000,
    count: 1,
    resource: "memory",
  });
  expect(alertOf(exceeded(59_999))).toBeUndefined();
  expect(alertOf(exceeded(60_000))).toBeDefined();
});

test("a session of more than an hour raises an alert", () => {
  const lasted = (duration_ms: number, sessionId: string): EventDraft =>
    event({ type: "session_duration", sessionId, sandboxId: "sb_1", data: { duration_ms } });
  expect(alertOf(lasted(3_600_000, "se_1"))).toBeUndefined();
  expect(alertOf(lasted(3_600_001, "se_1"))).toMatchObject({
    sessionId: "se_1",
    data: { alert: "session_duration", threshold: 3_600_000, count: 1, duration_ms: 3_600_001 },
  });
  expect(alertOf(lasted(9_999_999, "se_1"))).toBeUndefined();
  expect(alertOf(lasted(9_999_999, "se_2"))).toBeDefined();
});

test("thresholds are what the operator says, and Infinity is never reached", () => {
  alertOf = alertsFor({ permissionDeniedPerMinute: 1, resourceLimitExceededPerMinute: Number.POSITIVE_INFINITY });
  expect(alertOf(denied(0))).toBeUndefined();
  expect(alertOf(denied(1))).toBeDefined();
  expect(alertOf(event({ type: "resource_limit_exceeded" }))).toBeUndefined();
});

test("an alert is an event of the log, after the one that raised it", async () => {
  const { store } = await temporaryStore();
  const { audit, lines } = testAudit(store);
  audit.record({ type: "resource_limit_exceeded", level: "warn", ownerId: "ann", sandboxId: "sb_1" });
  const { items } = await audit.list(SERVER, ALL);
  expect(items.map(({ type, ownerId, sandboxId }) => [type, ownerId, sandboxId])).toEqual([
    ["resource_limit_exceeded", "ann", "sb_1"],
    ["alert", "ann", "sb_1"],
  ]);
  expect(lines.at(-1)).toMatchObject({ level: "warn", msg: "alert", user_id: "ann", alert: "resource_limit_exceeded" });
});
