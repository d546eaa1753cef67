import type { Jobs } from "../../../isolation/jobs/thread.ts";
import type { AuditLog } from "../../audit/api.ts";
import { type Caller, maySee } from "../../caller.ts";
import { decodePageToken, encodePageToken, type Page, type PageRequest, pageLimit } from "../../page.ts";
import { RuntimeError } from "../../runtime-error.ts";
import type { CodebaseRecord } from "../../store/store.ts";
import type { CodebaseLayers, Codebases } from "../api.ts";
import { codebaseKey } from "../registry.ts";
import type { LocalDirectories } from "./directories.ts";
import { localReading } from "./reading.ts";

type AllCodebases = Codebases & CodebaseLayers & AsyncDisposable;

/** The stored codebases, and beside them directories of the host, which have no versions and are changed by sandboxes alone. */
export function withLocal(
  stored: AllCodebases,
  {
    local,
    jobs,
    audit,
  }: { readonly local: LocalDirectories; readonly jobs: Jobs; readonly audit: Pick<AuditLog, "record"> },
): AllCodebases {
  const reading = localReading(jobs);

  /** Methods that a directory has no answer to. */
  function unlessLocal<Rest extends readonly unknown[], Result>(
    method: (caller: Caller, id: string, ...rest: Rest) => Promise<Result>,
    what: string,
  ): (caller: Caller, id: string, ...rest: Rest) => Promise<Result> {
    return async (caller, id, ...rest) => {
      if (local.has(id)) throw isLocal(local.find(caller, id).record, what);
      return await method(caller, id, ...rest);
    };
  }

  function requireNewest(caller: Caller, id: string, version: number): void {
    if (version !== 0) throw isLocal(local.find(caller, id).record, "it has no versions");
  }

  return {
    ...stored,
    async get(caller, id) {
      return local.has(id) ? local.find(caller, id).record : await stored.get(caller, id);
    },
    async list(caller, query) {
      return together(local.all(), await stored.list(caller, query), caller, query);
    },
    async delete(caller, id) {
      if (!local.has(id)) return await stored.delete(caller, id);
      const { ownerId, name } = local.find(caller, id).record;
      local.forget(id);
      audit.record({ type: "codebase_deleted", ownerId, codebaseId: id, data: { name, version: 0 } });
    },
    async listFiles(caller, id, query) {
      if (!local.has(id)) return await stored.listFiles(caller, id, query);
      requireNewest(caller, id, query.version);
      return await reading.listFiles(local.find(caller, id), query);
    },
    async download(caller, id, path, options = {}) {
      if (!local.has(id)) return await stored.download(caller, id, path, options);
      requireNewest(caller, id, options.version ?? 0);
      return reading.download(local.find(caller, id), path, options.signal);
    },
    async downloadArchive(caller, id, query) {
      if (!local.has(id)) return await stored.downloadArchive(caller, id, query);
      requireNewest(caller, id, query.version);
      return await reading.downloadArchive(local.find(caller, id), query);
    },

    upload: unlessLocal(stored.upload, NO_UPLOADS),
    link: unlessLocal(stored.link, NO_UPLOADS),
    compare: unlessLocal(stored.compare, NO_UPLOADS),
    batch: unlessLocal(stored.batch, NO_UPLOADS),
    uploadArchive: unlessLocal(stored.uploadArchive, NO_UPLOADS),
    deleteFile: unlessLocal(stored.deleteFile, NO_UPLOADS),
    renameFile: unlessLocal(stored.renameFile, NO_UPLOADS),
    listVersions: unlessLocal(stored.listVersions, "it has no versions"),
    getVersion: unlessLocal(stored.getVersion, "it has no versions"),
    rollback: unlessLocal(stored.rollback, "it has no versions"),

    direct: (id) => local.direct(id),
    async open(id, version) {
      return local.has(id) ? await local.layer(id) : await stored.open(id, version);
    },
    onChange(listener) {
      const both = new DisposableStack();
      both.use(stored.onChange(listener));
      both.use(local.onChange(listener));
      return both;
    },
  };
}

const NO_UPLOADS = "its files are changed where they are, or by applying the changes of a sandbox";

function isLocal({ id, name }: CodebaseRecord, what: string): RuntimeError {
  return new RuntimeError("CODEBASE_IS_LOCAL", `the codebase ${name} is a directory of this machine: ${what}`, {
    details: { codebase_id: id },
  });
}

/** A page of the stored ones with the local ones that belong on it. */
function together(
  local: readonly CodebaseRecord[],
  page: Page<CodebaseRecord>,
  caller: Caller,
  query: PageRequest & { readonly ownerId: string },
): Page<CodebaseRecord> {
  const after = decodePageToken(query.pageToken, ["number", "string"]);
  const last = page.nextPageToken === "" ? undefined : page.items.at(-1);
  const belonging = local.filter(
    (record) =>
      maySee(caller, record.ownerId) &&
      (query.ownerId === "" || query.ownerId === record.ownerId) &&
      (after === undefined || compareKeys(codebaseKey(record), after) > 0) &&
      (last === undefined || compareKeys(codebaseKey(record), codebaseKey(last)) < 0),
  );
  const all = [...page.items, ...belonging].sort((a, b) => compareKeys(codebaseKey(a), codebaseKey(b)));
  const items = all.slice(0, pageLimit(query.pageSize));
  if (items.length === all.length) return { items, nextPageToken: page.nextPageToken };
  return { items, nextPageToken: encodePageToken(codebaseKey(items.at(-1)!)) };
}

type CodebaseKey = ReturnType<typeof codebaseKey>;

function compareKeys([aMs, a]: CodebaseKey, [bMs, b]: CodebaseKey): number {
  return aMs - bMs || (a < b ? -1 : a > b ? 1 : 0);
}
