import type { EventSchema, EventService } from "@agentfense/protocol/event";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EventRecord } from "../audit-log.ts";
import type { World } from "../world.ts";
import { count, pageOf, timestampMessage, timestampMs } from "./fields.ts";
import type { Handlers } from "./handlers.ts";

export function eventHandlers({ audit }: World): Handlers<typeof EventService> {
  return {
    async listEvents(request) {
      const from = timestampMs(request.after) ?? Number.NEGATIVE_INFINITY;
      const until = timestampMs(request.before) ?? Number.POSITIVE_INFINITY;
      const all = audit.select(request).filter(({ timeMs }) => timeMs >= from && timeMs < until);
      const { items, nextPageToken } = pageOf(all, request);
      return { events: items.map(eventMessage), nextPageToken };
    },

    async *watchEvents(request, signal) {
      const { afterSequence } = request;
      const after = afterSequence === undefined ? undefined : count(afterSequence, "after_sequence");
      for await (const event of audit.watch(request, after, signal)) yield eventMessage(event);
    },
  };
}

function eventMessage(event: EventRecord): MessageInitShape<typeof EventSchema> {
  const { timeMs, sequence, ...rest } = event;
  return { ...rest, sequence: BigInt(sequence), time: timestampMessage(timeMs) };
}
