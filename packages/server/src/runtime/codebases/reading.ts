import { OpenContent } from "../../isolation/codebase/reading.ts";
import type { Caller } from "../caller.ts";
import { RuntimeError } from "../errors.ts";
import { decodePageToken, encodePageToken, type Page, type PageRequest, pageLimit } from "../page.ts";
import type { EntryRecord, VersionRecord } from "../store/store.ts";
import type { Codebases, ManifestEntry, VersionChange } from "./api.ts";
import { packArchive } from "./archive-out.ts";
import { checkEntry } from "./batch.ts";
import { isEmptyContent } from "./content.ts";
import { toRuntimeError } from "./errors.ts";
import { type Parts, visibleCodebase } from "./parts.ts";
import { checkDirectory, checkPath, fileNotFound, shown } from "./paths.ts";
import { requireVersion, resolveVersion } from "./snapshots.ts";

type Methods = "compare" | "listFiles" | "download" | "downloadArchive" | "listVersions" | "getVersion";

/** Pages of a list of files are of one version, whatever is changed between them. */
type FileKey = readonly [path: string, version: number];
type VersionKey = readonly [version: number];

/** What reads codebases. */
export class Reading implements Pick<Codebases, Methods> {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async compare(caller: Caller, id: string, entries: readonly ManifestEntry[]): Promise<readonly string[]> {
    await visibleCodebase(this.#parts, caller, id);
    const { store } = this.#parts;
    const files = entries.map(checkEntry).flatMap((entry) => (entry.kind === "file" ? [entry] : []));
    const present = await store.entries(
      id,
      files.map(({ path }) => path),
    );
    const unknown = files.filter(({ sha256, size }, index) => {
      if (isEmptyContent(sha256) || (sha256 === "" && size === 0)) return false;
      return sha256 === "" || present[index]?.sha256 !== sha256;
    });
    const hashes = [...new Set(unknown.map(({ sha256 }) => sha256).filter((sha256) => sha256 !== ""))];
    const elsewhere = await store.entriesByHash(id, hashes);
    return unknown.filter(({ sha256 }) => !elsewhere.has(sha256)).map(({ path }) => path);
  }

  async listFiles(
    caller: Caller,
    id: string,
    query: PageRequest & { readonly path: string; readonly recursive: boolean; readonly version: number },
  ): Promise<Page<EntryRecord>> {
    const directory = checkDirectory(query.path);
    const record = await visibleCodebase(this.#parts, caller, id);
    const key = decodePageToken(query.pageToken, isFileKey);
    const version = resolveVersion(record, key?.[1] ?? query.version);
    const { snapshots } = this.#parts;
    if (directory !== "") {
      const entry = await snapshots.entry(id, version, directory);
      if (entry === undefined && query.recursive) throw fileNotFound(directory);
      if (entry === undefined) return { items: [], nextPageToken: "" };
      requireDirectory(entry);
    }
    const { recursive } = query;
    const limit = query.pageSize > 0 ? pageLimit(query.pageSize) : undefined;
    const { entries } = await snapshots.list(id, version, {
      directory,
      recursive,
      ...(key === undefined ? {} : { after: key[0] }),
      ...(limit === undefined ? {} : { limit: limit + 1 }),
    });
    if (limit === undefined || entries.length <= limit) return { items: entries, nextPageToken: "" };
    const items = entries.slice(0, limit);
    return { items, nextPageToken: encodePageToken([items.at(-1)!.path, version]) };
  }

  async download(
    caller: Caller,
    id: string,
    path: string,
    options: { readonly version?: number; readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly entry: EntryRecord; readonly content: AsyncIterable<Uint8Array> }> {
    const checked = checkPath(path);
    const record = await visibleCodebase(this.#parts, caller, id);
    const version = resolveVersion(record, options.version ?? 0);
    const { entry, fd } = await this.#translated(this.#parts.snapshots.openFile(id, version, checked));
    return { entry, content: new OpenContent(fd, entry.size, options.signal) };
  }

  async downloadArchive(
    caller: Caller,
    id: string,
    query: { readonly path: string; readonly version: number; readonly signal?: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>> {
    const directory = checkDirectory(query.path);
    const record = await visibleCodebase(this.#parts, caller, id);
    const version = resolveVersion(record, query.version);
    const { snapshots } = this.#parts;
    if (directory !== "") {
      const entry = await snapshots.entry(id, version, directory);
      if (entry === undefined) throw fileNotFound(directory);
      requireDirectory(entry);
    }
    const listing = await snapshots.list(id, version, { directory, recursive: true });
    const open = snapshots.opener(id, version, directory, listing);
    return packArchive(listing.entries, directory, open, query.signal);
  }

  async listVersions(caller: Caller, id: string, query: PageRequest): Promise<Page<VersionRecord>> {
    await visibleCodebase(this.#parts, caller, id);
    const key = decodePageToken(query.pageToken, isVersionKey);
    const limit = pageLimit(query.pageSize);
    const found = await this.#parts.store.listVersions(id, {
      ...(key === undefined ? {} : { before: key[0] }),
      limit: limit + 1,
    });
    const items = found.slice(0, limit);
    const last = items.at(-1);
    return { items, nextPageToken: found.length > limit && last ? encodePageToken([last.version]) : "" };
  }

  async getVersion(
    caller: Caller,
    id: string,
    version: number,
  ): Promise<{ readonly version: VersionRecord; readonly changes: readonly VersionChange[] }> {
    const record = await visibleCodebase(this.#parts, caller, id);
    const wanted = resolveVersion(record, version);
    // In this order: a version that is there in the end had its changes before.
    const changes = await this.#parts.store.changesOf(id, wanted);
    const found = await this.#parts.store.version(id, wanted);
    if (found === undefined) {
      await requireVersion(this.#parts.store, id, wanted);
      throw new RuntimeError("VERSION_NOT_FOUND", `version ${version} not found`);
    }
    return {
      version: found,
      changes: changes.map(({ path, before, after }) => ({
        kind: before === undefined ? "added" : after === undefined ? "deleted" : "modified",
        path,
        size: (after ?? before)?.size ?? 0,
      })),
    };
  }

  async #translated<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      throw toRuntimeError(error);
    }
  }
}

function requireDirectory({ path, kind }: EntryRecord): void {
  if (kind === "directory") return;
  throw new RuntimeError("FILE_WRONG_KIND", `${shown(path)} is a ${kind}, not a directory`, { details: { path } });
}

function isFileKey(value: unknown): value is FileKey {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "number";
}

function isVersionKey(value: unknown): value is VersionKey {
  return Array.isArray(value) && value.length === 1 && typeof value[0] === "number";
}
