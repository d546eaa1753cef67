import { randomBytes } from "node:crypto";
import type { Caller } from "../caller.ts";
import { decodePageToken, pageLimit, pageOf } from "../page.ts";
import { invalid } from "../runtime-error.ts";
import type { CodebaseRecord } from "../store/store.ts";
import type { Codebases } from "./api.ts";
import { codebaseNotFound, type Parts, recordEvent, toRuntimeError, visibleCodebase } from "./parts.ts";
import { checkLabel } from "./paths.ts";

/** The codebases as such: made, found, removed. */
export function registryCalls(parts: Parts): Pick<Codebases, "create" | "get" | "list" | "delete"> {
  const { clock, disk, heads, quotas, store, log } = parts;
  return {
    async create(caller, request) {
      const name = checkLabel("name", request.name);
      const ownerId = ownerFor(caller, request.ownerId);
      const record = newCodebase(name, ownerId, clock.now());
      await quotas.admitCodebase(ownerId, async () => {
        try {
          // In this order: a directory without a record is removed at the next start.
          disk.create(record.id);
          await store.insertCodebase(record);
        } catch (error) {
          await disk.remove(record.id).catch(() => {});
          throw toRuntimeError(error);
        }
      });
      recordEvent(parts, "codebase_created", caller, record, { name });
      return record;
    },

    get: (caller, id) => visibleCodebase(parts, caller, id),

    async list(caller, query) {
      const after = decodePageToken(query.pageToken, ["number", "string"]);
      const ownerId = caller.ownerId ?? (query.ownerId || undefined);
      if (caller.ownerId !== undefined && query.ownerId !== "" && query.ownerId !== caller.ownerId) {
        return { items: [], nextPageToken: "" };
      }
      const limit = pageLimit(query.pageSize);
      const found = await store.listCodebases({ ownerId, after, limit: limit + 1 });
      return pageOf(found, limit, codebaseKey);
    },

    async delete(caller, id) {
      const record = await visibleCodebase(parts, caller, id);
      const head = heads.of(id);
      await head.turns.run(async () => {
        if ((await store.codebase(id)) === undefined) throw codebaseNotFound();
        await store.deleteCodebase(id);
        head.finish();
        heads.forget(id);
        await disk.remove(id).catch((error: unknown) => {
          const message = "a deleted codebase's files stay until the next start";
          log({ level: "error", message, codebaseId: id, error });
        });
      });
      recordEvent(parts, "codebase_deleted", caller, record, { name: record.name, version: record.version });
    },
  };
}

export function newCodebase(name: string, ownerId: string, nowMs: number): CodebaseRecord {
  const id = `cb_${randomBytes(16).toString("hex")}`;
  return { id, name, ownerId, size: 0, fileCount: 0, createdAtMs: nowMs, updatedAtMs: nowMs, version: 0 };
}

/** Where a page of codebases ends. */
export function codebaseKey({ createdAtMs, id }: CodebaseRecord): readonly [createdAtMs: number, id: string] {
  return [createdAtMs, id];
}

/** With keys the owner of the key, which the request may repeat; without, whoever the request names. */
export function ownerFor(caller: Caller, requested: string): string {
  if (caller.ownerId === undefined) return checkLabel("owner_id", requested);
  if (requested === "" || requested === caller.ownerId) return caller.ownerId;
  throw invalid("owner_id is not the owner of the key");
}
