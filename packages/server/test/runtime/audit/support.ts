import { onTestFinished } from "vitest";
import type { AuditLog, EventFilter } from "../../../src/runtime/audit/api.ts";
import { type AuditOptions, openAudit } from "../../../src/runtime/audit/open-audit.ts";
import type { AuditLine } from "../../../src/runtime/audit/writer.ts";
import type { Caller } from "../../../src/runtime/caller.ts";
import type { EventMetadata, EventRecord } from "../../../src/runtime/store/store.ts";

export const ANN: Caller = { ownerId: "ann", role: "user" };
export const ALL: EventFilter & { pageSize: number; pageToken: string } = {
  sandboxId: "",
  codebaseId: "",
  ownerId: "",
  types: [],
  pageSize: 0,
  pageToken: "",
};

/** An audit log without limits, with a clock of its own and its lines kept. */
export function testAudit(
  store: EventMetadata,
  options: Partial<AuditOptions> = {},
): { audit: AuditLog & AsyncDisposable; lines: AuditLine[]; clock: { nowMs: number } } {
  const lines: AuditLine[] = [];
  const clock = { nowMs: Date.parse("2026-02-03T10:15:30Z") };
  const audit = openAudit({
    store,
    log: (line) => lines.push(line),
    retention: { maxAgeMs: 0, maxEvents: 0 },
    alerts: {},
    clock: () => clock.nowMs,
    ...options,
  });
  onTestFinished(() => audit[Symbol.asyncDispose]());
  return { audit, lines, clock };
}

/** The next `count` events of a watch, which is then over. */
export async function next(events: AsyncIterator<EventRecord>, count: number): Promise<EventRecord[]> {
  const seen: EventRecord[] = [];
  while (seen.length < count) {
    const { value, done } = await events.next();
    if (done) throw new Error(`the watch ended after ${seen.length} of ${count} events`);
    seen.push(value);
  }
  return seen;
}
