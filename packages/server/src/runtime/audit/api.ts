import type { Caller } from "../caller.ts";
import type { Page, PageRequest } from "../page.ts";
import type { EventLevel, EventRecord } from "../store/store.ts";

/** What happened, as those tell it who made it happen. Absent ids do not apply. */
export interface AuditEntry {
  readonly type: string;
  /** Default info. */
  readonly level?: EventLevel | undefined;
  readonly ownerId?: string;
  readonly keyId?: string | undefined;
  readonly sandboxId?: string;
  readonly codebaseId?: string;
  readonly sessionId?: string | undefined;
  /** Plain JSON values; what is undefined is left out. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
}

export interface EventFilter {
  readonly sandboxId: string;
  readonly codebaseId: string;
  readonly ownerId: string;
  readonly types: readonly string[];
}

/** The audit log. */
export interface AuditLog {
  /** Never throws and never waits: what cannot be stored is told to the operator's log. */
  record(entry: AuditEntry): void;
  /** Everything recorded so far is stored. */
  flush(): Promise<void>;
  list(
    caller: Caller,
    query: EventFilter & PageRequest & { readonly fromMs?: number | undefined; readonly untilMs?: number | undefined },
  ): Promise<Page<EventRecord>>;
  /** Stored events after `afterSequence`, if given, and then what happens, until the signal. */
  watch(
    caller: Caller,
    filter: EventFilter & { readonly afterSequence?: number; readonly signal: AbortSignal },
  ): AsyncIterable<EventRecord>;
}
