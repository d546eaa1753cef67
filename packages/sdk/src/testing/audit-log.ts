import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Bell } from "./bell.ts";

export interface EventDraft {
  readonly type: string;
  readonly level?: "info" | "warn" | "error";
  readonly ownerId?: string;
  readonly sandboxId?: string;
  readonly codebaseId?: string;
  readonly sessionId?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface EventRecord extends Required<EventDraft> {
  readonly sequence: number;
  readonly timeMs: number;
  readonly keyId: string;
  readonly data: JsonObject;
  readonly hash: string;
}

export interface EventFilter {
  readonly sandboxId: string;
  readonly codebaseId: string;
  readonly ownerId: string;
  readonly types: readonly string[];
}

/** What happened, in order, chained by hashes as the server's log is. */
export class AuditLog {
  readonly #events: EventRecord[] = [];
  readonly #bell = new Bell();

  record(draft: EventDraft): void {
    const sequence = this.#events.length + 1;
    const event = {
      codebaseId: draft.codebaseId ?? "",
      data: JSON.parse(JSON.stringify(draft.data ?? {})) as JsonObject,
      keyId: "",
      level: draft.level ?? "info",
      ownerId: draft.ownerId ?? "",
      sandboxId: draft.sandboxId ?? "",
      sequence,
      sessionId: draft.sessionId ?? "",
      timeMs: Date.now(),
      type: draft.type,
    };
    const previous = this.#events.at(-1)?.hash ?? "0".repeat(64);
    const hash = createHash("sha256")
      .update(`${previous}\n${canonicalJson(event)}`)
      .digest("hex");
    this.#events.push({ ...event, hash });
    this.#bell.ring();
  }

  select(filter: EventFilter): EventRecord[] {
    return this.#events.filter((event) => isSelected(event, filter));
  }

  /** From a cursor on, or from now on. Ends with the signal. */
  async *watch(
    filter: EventFilter,
    afterSequence: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<EventRecord> {
    let next = afterSequence ?? this.#events.length;
    while (!signal.aborted) {
      const event = this.#events[next];
      if (event === undefined) {
        await this.#bell.heard(signal);
        continue;
      }
      next += 1;
      if (isSelected(event, filter)) yield event;
    }
  }
}

function isSelected(event: EventRecord, { sandboxId, codebaseId, ownerId, types }: EventFilter): boolean {
  return (
    (sandboxId === "" || sandboxId === event.sandboxId) &&
    (codebaseId === "" || codebaseId === event.codebaseId) &&
    (ownerId === "" || ownerId === event.ownerId) &&
    (types.length === 0 || types.includes(event.type))
  );
}

/** Without white space, the members of every object in the order of their names. */
function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(",")}}`;
}
