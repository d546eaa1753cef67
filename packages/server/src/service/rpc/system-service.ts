import { EventSchema, type EventService } from "@agentfense/protocol/event";
import { KeySchema, SystemService } from "@agentfense/protocol/system";
import { ROLES, RUNTIMES } from "@agentfense/protocol/words";
import type { DescMethod, JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { AuditLog, EventFilter } from "../../runtime/audit/api.ts";
import type { Caller } from "../../runtime/caller.ts";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import type { EventRecord, KeyRecord } from "../../runtime/store/store.ts";
import type { Handlers } from "./handlers.ts";
import { count, messageOf, required, timestampMs, wordFor } from "./messages/fields.ts";
import type { ServiceRuntime } from "./register.ts";

export function systemHandlers({
  keys,
  audit,
  info,
}: Pick<ServiceRuntime, "keys" | "audit" | "info">): Handlers<typeof SystemService> {
  return {
    async getServerInfo(_request, { caller }) {
      return {
        version: info.version,
        runtimes: info.runtimes.map((name) => RUNTIMES[name]),
        degradations: [...info.degradations()],
        keysRequired: info.keysRequired,
        ownerId: caller.ownerId ?? "",
        role: ROLES[caller.role],
      };
    },

    async createKey({ ownerId, role: roleNumber, name }, { caller }) {
      const role = wordFor(ROLES, roleNumber, "role") ?? "user";
      // An administrator is of no owner in particular.
      if (role !== "admin") required(ownerId, "owner_id");
      const { key, secret } = await keys.create({ ownerId, role, name });
      audit.record({
        type: "key_created",
        ownerId: key.ownerId,
        keyId: caller.keyId,
        data: { key_id: key.id, role: key.role, name: key.name },
      });
      return { key: keyMessage(key), secret };
    },

    listKeys: async () => ({ keys: (await keys.list()).map(keyMessage) }),

    async revokeKey({ keyId }, { caller }) {
      await keys.revoke(keyId);
      audit.record({ type: "key_revoked", keyId: caller.keyId, data: { key_id: keyId } });
    },
  };
}

/** What is about keys is an administrator's. */
export function admitToSystem({ role }: Caller, method: DescMethod): void {
  if (role === "admin" || method === SystemService.method.getServerInfo) return;
  throw new RuntimeError("ROLE_FORBIDS", "only an administrator may manage keys", { details: { role } });
}

/** Without the hash of the secret. */
function keyMessage(record: KeyRecord): MessageInitShape<typeof KeySchema> {
  return messageOf(KeySchema, record, { role: ROLES[record.role] });
}

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
