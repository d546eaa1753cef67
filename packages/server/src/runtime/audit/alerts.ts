import type { EventDraft } from "../store/store.ts";

/** When an alert is raised. Infinity switches one off. */
export interface AlertThresholds {
  /** More than this many in a minute, for a sandbox. Default 10. */
  readonly permissionDeniedPerMinute?: number;
  /** More than this many in an hour, for an owner. Default 100. */
  readonly sandboxesCreatedPerHour?: number;
  /** More than this many in a minute, for a sandbox. Default 0: every one counts. */
  readonly resourceLimitExceededPerMinute?: number;
  /** A session that is longer. Default one hour. */
  readonly sessionDurationMs?: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Beyond this many subjects of a rule, the one that was quiet for the longest time is forgotten. */
const MOST_SUBJECTS = 10_000;

type Subject = Pick<EventDraft, "ownerId" | "sandboxId" | "codebaseId" | "sessionId">;

interface AlertRule {
  /** The type of the events it looks at, and the alert's name. */
  readonly alert: string;
  readonly threshold: number;
  /** How long is counted, and how long an alert about the same subject is not repeated. */
  readonly windowMs: number;
  /** Whom the alert is about. */
  subject(event: EventDraft): Subject;
  /** What an event adds to the count in the window. */
  weight?(event: EventDraft): number;
  /** Compared with the threshold instead of a count: something the event says. */
  value?(event: EventDraft): number;
}

function alertRules(thresholds: AlertThresholds): readonly AlertRule[] {
  return [
    {
      alert: "permission_denied",
      threshold: thresholds.permissionDeniedPerMinute ?? 10,
      windowMs: MINUTE_MS,
      subject: ofSandbox,
      weight: withSuppressed,
    },
    {
      alert: "sandbox_created",
      threshold: thresholds.sandboxesCreatedPerHour ?? 100,
      windowMs: HOUR_MS,
      subject: ({ ownerId }) => ({ ...NOBODY, ownerId }),
    },
    {
      alert: "resource_limit_exceeded",
      threshold: thresholds.resourceLimitExceededPerMinute ?? 0,
      windowMs: MINUTE_MS,
      subject: ofSandbox,
      weight: withSuppressed,
    },
    {
      alert: "session_duration",
      threshold: thresholds.sessionDurationMs ?? HOUR_MS,
      windowMs: HOUR_MS,
      subject: (event) => ({ ...ofSandbox(event), sessionId: event.sessionId }),
      value: ({ data }) => natural(data.duration_ms),
    },
  ];
}

const NOBODY: Subject = { ownerId: "", sandboxId: "", codebaseId: "", sessionId: "" };

function ofSandbox({ ownerId, sandboxId, codebaseId }: EventDraft): Subject {
  return { ...NOBODY, ownerId, sandboxId, codebaseId };
}

/** The file system tells with the next denial how many it left out before, for there were too many. */
function withSuppressed(event: EventDraft): number {
  return 1 + natural(event.data.suppressed);
}

/** Watches what is recorded, and gives the alert that an event raises, if it is one too many. */
export function alertsFor(thresholds: AlertThresholds): (event: EventDraft) => EventDraft | undefined {
  const rules = alertRules(thresholds).filter(({ threshold }) => Number.isFinite(threshold));
  const watches = new Map(rules.map((rule) => [rule.alert, watchFor(rule)]));
  return (event) => watches.get(event.type)?.(event);
}

interface Tally {
  /** The counted events of the window, oldest first; never more than the threshold and one. */
  counted: readonly { readonly timeMs: number; readonly weight: number }[];
  quietUntilMs: number;
}

function watchFor(rule: AlertRule): (event: EventDraft) => EventDraft | undefined {
  const { alert, threshold, windowMs } = rule;
  const tallies = new Map<string, Tally>();

  function tallyOf(key: string): Tally {
    const tally = tallies.get(key) ?? { counted: [], quietUntilMs: 0 };
    // A map keeps the order of insertion, so its first is the one that was quiet for the longest time.
    tallies.delete(key);
    tallies.set(key, tally);
    const oldest = tallies.keys().next();
    if (tallies.size > MOST_SUBJECTS && !oldest.done) tallies.delete(oldest.value);
    return tally;
  }

  function count(tally: Tally, event: EventDraft): number {
    const { timeMs } = event;
    const recent = tally.counted.filter((counted) => counted.timeMs > timeMs - windowMs);
    tally.counted = [...recent, { timeMs, weight: rule.weight?.(event) ?? 1 }];
    return tally.counted.reduce((sum, counted) => sum + counted.weight, 0);
  }

  return (event) => {
    const subject = rule.subject(event);
    const tally = tallyOf(Object.values(subject).join("\n"));
    if (event.timeMs < tally.quietUntilMs) return undefined;
    const value = rule.value?.(event);
    const amount = value ?? count(tally, event);
    if (amount <= threshold) return undefined;
    tally.counted = [];
    tally.quietUntilMs = event.timeMs + windowMs;
    return {
      ...subject,
      timeMs: event.timeMs,
      type: "alert",
      level: "warn",
      keyId: "",
      data: { alert, threshold, window_ms: windowMs, count: value === undefined ? amount : 1, ...measured(event) },
    };
  };
}

/** What makes the alert understandable without its cause. */
function measured({ data }: EventDraft): Readonly<Record<string, unknown>> {
  const { duration_ms, resource } = data;
  return { ...(duration_ms === undefined ? {} : { duration_ms }), ...(resource === undefined ? {} : { resource }) };
}

function natural(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}
