import { decodePageToken, pageLimit, pageOf } from "../page.ts";
import type { EventDraft, EventMetadata } from "../store/store.ts";
import { type AlertThresholds, alertsFor } from "./alerts.ts";
import type { AuditEntry, AuditLog } from "./api.ts";
import { EventQueue, type QueueLimits } from "./queue.ts";
import { visibleEvents } from "./visibility.ts";
import { Watchers } from "./watch.ts";
import { type AuditLine, draftOf, EventWriter, lineOf } from "./writer.ts";

export interface AuditOptions {
  readonly store: EventMetadata;
  /** The operator's log: one line per event. Must not throw. */
  readonly log: (line: AuditLine) => void;
  readonly retention: RetentionOptions;
  readonly alerts: AlertThresholds;
  readonly clock?: () => number;
  readonly queueLimits?: QueueLimits;
}

/** Closing it stores what is still queued and ends every watch; the store stays open. */
export function openAudit(options: AuditOptions): AuditLog & AsyncDisposable {
  const { store, log, clock = Date.now } = options;
  const queue = new EventQueue(options.queueLimits);
  const alertOf = alertsFor(options.alerts);
  const watchers = new Watchers();
  const tell = (msg: string, error: unknown, facts: Readonly<Record<string, unknown>> = {}): void =>
    log({ level: "error", time: new Date(clock()).toISOString(), msg, error: messageOf(error), ...facts });
  const retention = startRetention({
    limits: options.retention,
    store,
    clock,
    onFailure: (error) => tell("audit_retention_failed", error),
  });
  const writer = new EventWriter({
    queue,
    store,
    onStored(events) {
      watchers.announce(events);
      retention.added(events.length);
      const dropped = queue.takeDropped();
      if (dropped !== undefined) queueDropped(dropped);
    },
    onFailure: (error) => tell("audit_store_failed", error),
  });
  const closing = new AbortController();

  function add(draft: EventDraft, size: number): void {
    const isOpen = !closing.signal.aborted;
    const queued = isOpen && queue.push(draft, size);
    // A denial that was merged into another is no further line either: an agent can make as many as it likes.
    if (queued || draft.type !== "permission_denied") log(lineOf(draft));
    if (isOpen) writer.wake();
  }

  function queueDropped(types: Readonly<Record<string, number>>): void {
    const count = Object.values(types).reduce((sum, dropped) => sum + dropped, 0);
    const entry: AuditEntry = { type: "events_dropped", level: "error", data: { count, types } };
    const { draft } = draftOf(entry, clock());
    log(lineOf(draft));
    queue.force(draft);
    writer.wake();
  }

  return {
    record(entry) {
      const { draft, size } = draftOf(entry, clock());
      add(draft, size);
      const alert = alertOf(draft);
      if (alert !== undefined) add(alert, 0);
    },
    flush: () => writer.flush(),
    async list(caller, query) {
      const selection = visibleEvents(caller, query);
      const token = decodePageToken(query.pageToken, ["number"]);
      if (selection === undefined) return { items: [], nextPageToken: "" };
      // Who asks after a call must find what the call did.
      await writer.flush();
      const limit = pageLimit(query.pageSize);
      const { fromMs, untilMs } = query;
      const events = await store.listEvents({
        ...selection,
        fromMs,
        untilMs,
        afterSequence: token?.[0],
        limit: limit + 1,
      });
      return pageOf(events, limit, ({ sequence }) => [sequence]);
    },
    async *watch(caller, { afterSequence, signal, ...filter }) {
      const end = AbortSignal.any([signal, closing.signal]);
      const selection = visibleEvents(caller, filter);
      // Whoever may see nothing waits like one to whom nothing happens.
      if (selection === undefined) return await aborted(end);
      const start = afterSequence === undefined ? { afterSerial: queue.lastSerial } : { afterSequence };
      using watcher = watchers.join(selection, start);
      yield* watcher.follow(store, end);
    },
    async [Symbol.asyncDispose]() {
      if (closing.signal.aborted) return;
      closing.abort();
      await writer.flush().catch((error: unknown) => tell(`audit_events_lost`, error, { events: queue.length }));
      await writer.stop();
      await retention[Symbol.asyncDispose]();
    },
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** How long events are kept. 0 or less, or Infinity: without that limit. */
export interface RetentionOptions {
  readonly maxAgeMs: number;
  readonly maxEvents: number;
}

const INTERVAL_MS = 60_000;
/** Between two rounds the log may outgrow its limit by this share of it, and by as many events at least. */
const EXCESS_SHARE = 0.1;
const LEAST_EXCESS = 1_000;

/** Removes old events: at once, every minute, and whenever many have been added. */
function startRetention(options: {
  readonly limits: RetentionOptions;
  readonly store: EventMetadata;
  readonly clock: () => number;
  readonly onFailure: (error: unknown) => void;
}): AsyncDisposable & { added(events: number): void } {
  const { store, clock, onFailure } = options;
  const { maxAgeMs, maxEvents } = options.limits;
  let addedSince = 0;
  let running: Promise<void> | undefined;

  function trim(): void {
    if (running !== undefined) return;
    addedSince = 0;
    running = store
      .trimEvents({
        ...(isLimit(maxAgeMs) ? { beforeMs: clock() - maxAgeMs } : {}),
        ...(isLimit(maxEvents) ? { keep: maxEvents } : {}),
      })
      .then(() => {}, onFailure)
      .finally(() => {
        running = undefined;
      });
  }

  const timer = setInterval(trim, INTERVAL_MS);
  timer.unref();
  trim();
  return {
    added(events) {
      addedSince += events;
      if (addedSince >= Math.max(LEAST_EXCESS, maxEvents * EXCESS_SHARE)) trim();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await running;
    },
  };
}

function isLimit(value: number): boolean {
  return value > 0 && Number.isFinite(value);
}
