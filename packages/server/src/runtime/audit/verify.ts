import { chainHash } from "../store/event-chain.ts";
import type { ChainAnchor, EventMetadata } from "../store/store.ts";

export type AuditVerdict =
  | { readonly ok: true; readonly events: number }
  /** `sequence`: the first place where the log is not what it was. */
  | { readonly ok: false; readonly sequence: number; readonly reason: string };

const READ_AT_ONCE = 500;
/** Nothing may stand before the anchor either. */
const BEFORE_ALL = Number.MIN_SAFE_INTEGER;

/** Whether the stored events are all there and as they were written. A server may go on writing meanwhile. */
export async function verifyAudit(store: EventMetadata): Promise<AuditVerdict> {
  let anchor = await store.chainAnchor();
  for (;;) {
    const verdict = await verifyFrom(store, anchor);
    if (verdict.ok) return verdict;
    // Retention may have removed events that this walk was about to read: then it begins again where the log does now.
    const moved = await store.chainAnchor();
    if (moved.sequence <= anchor.sequence) return verdict;
    anchor = moved;
  }
}

async function verifyFrom(store: EventMetadata, anchor: ChainAnchor): Promise<AuditVerdict> {
  let last = anchor;
  let events = 0;
  for (;;) {
    const page = await store.listEvents({
      afterSequence: events === 0 ? BEFORE_ALL : last.sequence,
      limit: READ_AT_ONCE,
    });
    for (const event of page) {
      const expected = last.sequence + 1;
      if (event.sequence > expected) return { ok: false, sequence: expected, reason: "the event is missing" };
      if (event.sequence < expected) {
        return { ok: false, sequence: event.sequence, reason: "the event was removed by retention, or never written" };
      }
      if (chainHash(last.hash, event.sequence, event) !== event.hash) {
        return { ok: false, sequence: event.sequence, reason: "the event, or one before it, was changed" };
      }
      last = event;
      events += 1;
    }
    if (page.length > 0) continue;
    // Read after the events: what was appended in between is on the next page.
    const head = await store.chainHead();
    if (head.sequence === last.sequence && head.hash === last.hash) return { ok: true, events };
    if (head.sequence <= last.sequence) {
      return {
        ok: false,
        sequence: last.sequence,
        reason: "the log does not end with the event that was written last",
      };
    }
    const next = await store.listEvents({ afterSequence: last.sequence, limit: 1 });
    if (next.length === 0) return { ok: false, sequence: last.sequence + 1, reason: "the event is missing" };
  }
}
