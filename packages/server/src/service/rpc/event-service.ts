import { EventSchema, type EventService } from "@agentfense/protocol/event";
import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { AuditLog, EventFilter } from "../../runtime/audit/api.ts";
import type { EventRecord } from "../../runtime/store/store.ts";
import type { Handlers } from "./handlers.ts";
import { count, messageOf, timestampMs } from "./messages/fields.ts";

export function eventHandlers(audit: AuditLog): Handlers<typeof EventService> {
  return {
    async listEvents(request, { caller }) {
      const page = await audit.list(caller, {
        ...filterOf(request),
        pageSize: request.pageSize,
        pageToken: request.pageToken,
        fromMs: timestampMs(request.after, "after"),
        untilMs: timestampMs(request.before, "before"),
      });
      return { events: page.items.map(eventMessage), nextPageToken: page.nextPageToken };
    },

    async *watchEvents(request, { caller, signal }) {
      const { afterSequence } = request;
      const events = audit.watch(caller, {
        ...filterOf(request),
        signal,
        ...(afterSequence === undefined ? {} : { afterSequence: count(afterSequence, "after_sequence") }),
      });
      for await (const event of events) yield eventMessage(event);
    },
  };
}

function filterOf({ sandboxId, codebaseId, ownerId, types }: EventFilter): EventFilter {
  return { sandboxId, codebaseId, ownerId, types };
}

function eventMessage(record: EventRecord): MessageInitShape<typeof EventSchema> {
  // What JSON makes of it: a value that a Struct cannot hold (undefined, NaN) would fail the whole answer.
  const data = JSON.parse(JSON.stringify(record.data)) as JsonObject;
  return messageOf(EventSchema, record, { data });
}
