import { createHash } from "node:crypto";
import { type Event, EventSchema, type EventService, type ListEventsRequest } from "@agentfense/protocol/event";
import { create, type JsonObject, toJsonString } from "@bufbuild/protobuf";
import { timestampDate, timestampNow } from "@bufbuild/protobuf/wkt";
import { Bell } from "../sandbox/execution/bell.ts";
import { type Handlers, pageOf } from "./handlers.ts";

export interface EventDraft {
  readonly type: string;
  readonly level?: "warn";
  readonly ownerId: string;
  readonly codebaseId: string;
  readonly sandboxId?: string;
  readonly sessionId?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** What happened, in order, chained by hashes as the server's log is. */
export class EventLog {
  readonly #events: Event[] = [];
  readonly #bell = new Bell();

  record({ data = {}, ...draft }: EventDraft): void {
    const sequence = BigInt(this.#events.length + 1);
    const own = { level: "info", ...draft, sequence, time: timestampNow() };
    const event = create(EventSchema, { ...own, data: JSON.parse(JSON.stringify(data)) as JsonObject });
    const previous = this.#events.at(-1)?.hash ?? "";
    event.hash = createHash("sha256")
      .update(`${previous}\n${toJsonString(EventSchema, event)}`)
      .digest("hex");
    this.#events.push(event);
    this.#bell.ring();
  }

  handlers(): Handlers<typeof EventService> {
    return {
      listEvents: async (request) => {
        const after = request.after === undefined ? Number.NEGATIVE_INFINITY : timestampDate(request.after).getTime();
        const before =
          request.before === undefined ? Number.POSITIVE_INFINITY : timestampDate(request.before).getTime();
        const found = this.#events.filter((event) => {
          const timeMs = timestampDate(event.time!).getTime();
          return isSelected(event, request) && timeMs >= after && timeMs < before;
        });
        const { items, nextPageToken } = pageOf(found, request);
        return { events: items, nextPageToken };
      },

      watchEvents: (request, signal) => this.#watch(request, signal),
    };
  }

  async *#watch(
    request: Filter & { readonly afterSequence?: bigint | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<Event> {
    const ring = (): void => this.#bell.ring();
    signal.addEventListener("abort", ring, { once: true });
    for (let next = Number(request.afterSequence ?? this.#events.length); !signal.aborted; ) {
      const event = this.#events[next];
      if (event === undefined) await this.#bell.wait();
      else next += 1;
      if (event !== undefined && isSelected(event, request)) yield event;
    }
  }
}

type Filter = Pick<ListEventsRequest, "sandboxId" | "codebaseId" | "ownerId" | "types">;

function isSelected(event: Event, { sandboxId, codebaseId, ownerId, types }: Filter): boolean {
  return (
    (sandboxId === "" || sandboxId === event.sandboxId) &&
    (codebaseId === "" || codebaseId === event.codebaseId) &&
    (ownerId === "" || ownerId === event.ownerId) &&
    (types.length === 0 || types.includes(event.type))
  );
}
