import { type Event, EventService } from "@agentfense/protocol/event";
import { type Listing, paged } from "../listing.ts";
import type { AuditEvent } from "../model/records.ts";
import type { EventFilter, ListEventsOptions, WatchEventsOptions } from "../model/requests.ts";
import type { CallStream } from "./call-stream.ts";
import { bigintOf, dateOf, numberOf, pageSizeOf, timestampOf } from "./messages/values.ts";
import type { Rpc } from "./rpc.ts";

const { method } = EventService;

export class EventCalls {
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  list(options: ListEventsOptions = {}): Listing<AuditEvent> {
    const { after, before, pageSize, signal } = options;
    return paged(async (pageToken) => {
      const period = {
        ...(after === undefined ? {} : { after: timestampOf(after, "after") }),
        ...(before === undefined ? {} : { before: timestampOf(before, "before") }),
      };
      const request = { ...filterOf(options), ...period, pageSize: pageSizeOf(pageSize), pageToken };
      const page = await this.#rpc.unary(method.listEvents, request, { signal });
      return { items: page.events.map(eventOf), nextPageToken: page.nextPageToken };
    });
  }

  watch(options: WatchEventsOptions = {}): CallStream<AuditEvent> {
    const { afterSequence, signal } = options;
    const cursor = afterSequence === undefined ? {} : { afterSequence: bigintOf(afterSequence, "afterSequence") };
    return this.#rpc.serverStream(method.watchEvents, { ...filterOf(options), ...cursor }, { signal }).map(eventOf);
  }
}

function filterOf({ sandboxId = "", codebaseId = "", ownerId = "", types = [] }: EventFilter) {
  return { sandboxId, codebaseId, ownerId, types: [...types] };
}

function eventOf(message: Event): AuditEvent {
  return {
    sequence: numberOf(message.sequence),
    time: dateOf(message.time),
    type: message.type,
    level: isLevel(message.level) ? message.level : "info",
    ownerId: message.ownerId,
    keyId: message.keyId,
    sandboxId: message.sandboxId,
    codebaseId: message.codebaseId,
    sessionId: message.sessionId,
    data: message.data ?? {},
    hash: message.hash,
  };
}

function isLevel(level: string): level is AuditEvent["level"] {
  return level === "info" || level === "warn" || level === "error";
}
