import { randomBytes } from "node:crypto";
import type { Caller } from "../caller.ts";
import { RuntimeError } from "../errors.ts";
import { decodePageToken, encodePageToken, type Page, type PageRequest, pageLimit } from "../page.ts";
import type { CodebaseRecord } from "../store/store.ts";
import type { Codebases } from "./api.ts";
import { codebaseNotFound, toRuntimeError } from "./errors.ts";
import { type Parts, visibleCodebase, witness } from "./parts.ts";
import { checkLabel } from "./paths.ts";

/** Where a page of codebases ends. */
export type CodebaseKey = readonly [createdAtMs: number, id: string];

/** The codebases as such: made, found, removed. */
export class Registry implements Pick<Codebases, "create" | "get" | "list" | "delete"> {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async create(caller: Caller, request: { readonly name: string; readonly ownerId: string }): Promise<CodebaseRecord> {
    const name = checkLabel("name", request.name);
    const ownerId = ownerFor(caller, request.ownerId);
    const { clock, disk, quotas, store } = this.#parts;
    const nowMs = clock.now();
    const record: CodebaseRecord = {
      id: `cb_${randomBytes(16).toString("hex")}`,
      name,
      ownerId,
      size: 0,
      fileCount: 0,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      version: 0,
    };
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
    witness(this.#parts, "codebase_created", caller, record, { name });
    return record;
  }

  async get(caller: Caller, id: string): Promise<CodebaseRecord> {
    return await visibleCodebase(this.#parts, caller, id);
  }

  async list(caller: Caller, query: PageRequest & { readonly ownerId: string }): Promise<Page<CodebaseRecord>> {
    const after = decodePageToken(query.pageToken, isCodebaseKey);
    const ownerId = caller.ownerId ?? (query.ownerId === "" ? undefined : query.ownerId);
    if (caller.ownerId !== undefined && query.ownerId !== "" && query.ownerId !== caller.ownerId) {
      return { items: [], nextPageToken: "" };
    }
    const limit = pageLimit(query.pageSize);
    const found = await this.#parts.store.listCodebases({
      ...(ownerId === undefined ? {} : { ownerId }),
      ...(after === undefined ? {} : { after }),
      limit: limit + 1,
    });
    const items = found.slice(0, limit);
    const last = items.at(-1);
    const hasMore = found.length > limit && last !== undefined;
    return { items, nextPageToken: hasMore ? encodePageToken([last.createdAtMs, last.id]) : "" };
  }

  async delete(caller: Caller, id: string): Promise<void> {
    const record = await visibleCodebase(this.#parts, caller, id);
    const { disk, heads, store, log } = this.#parts;
    const head = heads.of(id);
    await head.lock.run(async () => {
      if ((await store.codebase(id)) === undefined) throw codebaseNotFound();
      await store.deleteCodebase(id);
      head.finish();
      heads.forget(id);
      await disk.remove(id).catch((error: unknown) => {
        log({ level: "error", message: "a deleted codebase's files stay until the next start", codebaseId: id, error });
      });
    });
    witness(this.#parts, "codebase_deleted", caller, record, { name: record.name, version: record.version });
  }
}

/** With keys the owner of the key, which the request may repeat; without, whoever the request names. */
function ownerFor(caller: Caller, requested: string): string {
  if (caller.ownerId === undefined) return checkLabel("owner_id", requested);
  if (requested === "" || requested === caller.ownerId) return caller.ownerId;
  throw new RuntimeError("INVALID_ARGUMENT", "owner_id is not the owner of the key");
}

export function isCodebaseKey(value: unknown): value is CodebaseKey {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "number" && typeof value[1] === "string";
}
