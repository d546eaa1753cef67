import { isSensitive } from "@agentfense/permission";
import { OpenContent } from "../../isolation/codebase/reading.ts";
import { decodePageToken, pageLimit, pageOf } from "../page.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { EntryRecord } from "../store/store.ts";
import type { Codebases } from "./api.ts";
import { packArchive } from "./archive.ts";
import { checkEntry } from "./batch.ts";
import { isEmptyContent } from "./content.ts";
import { type Parts, toRuntimeError, visibleCodebase } from "./parts.ts";
import { checkDirectory, checkPath, fileNotFound, shown } from "./paths.ts";
import { requireVersion, resolveVersion } from "./snapshots.ts";

type Methods = "compare" | "listFiles" | "download" | "downloadArchive" | "listVersions" | "getVersion";

/** What reads codebases. */
export function readingCalls(parts: Parts): Pick<Codebases, Methods> {
  const { store, snapshots } = parts;
  return {
    async compare(caller, id, entries) {
      await visibleCodebase(parts, caller, id);
      const files = entries.map(checkEntry).flatMap((entry) => (entry.kind === "file" ? [entry] : []));
      const paths = files.map(({ path }) => path);
      const present = await store.entries(id, paths);
      const unknown = files.filter(({ sha256, size }, index) => {
        if (isEmptyContent(sha256) || (sha256 === "" && size === 0)) return false;
        return sha256 === "" || present[index]?.sha256 !== sha256;
      });
      const hashes = [...new Set(unknown.map(({ sha256 }) => sha256).filter((sha256) => sha256 !== ""))];
      const elsewhere = await store.entriesByHash(id, hashes);
      return unknown.filter(({ sha256 }) => !elsewhere.has(sha256)).map(({ path }) => path);
    },

    async listFiles(caller, id, { path, recursive, pageSize, pageToken, version: asked }) {
      const directory = checkDirectory(path);
      const record = await visibleCodebase(parts, caller, id);
      // Pages of a list of files are of one version, whatever is changed between them.
      const key = decodePageToken(pageToken, ["string", "number"]);
      const version = resolveVersion(record, key?.[1] ?? asked);
      if (directory !== "") {
        const entry = await snapshots.entry(id, version, directory);
        if (entry === undefined && recursive) throw fileNotFound(directory);
        if (entry === undefined) return { items: [], nextPageToken: "" };
        requireDirectory(entry);
      }
      const limit = pageSize > 0 ? pageLimit(pageSize) : undefined;
      const part = { directory, recursive, after: key?.[0], limit: limit === undefined ? undefined : limit + 1 };
      const { entries } = await snapshots.list(id, version, part);
      return pageOf(entries, limit ?? entries.length, (last) => [last.path, version]);
    },

    async download(caller, id, path, options = {}) {
      const checked = checkPath(path);
      const record = await visibleCodebase(parts, caller, id);
      const version = resolveVersion(record, options.version ?? 0);
      const { entry, fd } = await snapshots.openFile(id, version, checked).catch((error: unknown) => {
        throw toRuntimeError(error);
      });
      return { entry, content: new OpenContent(fd, entry.size, options.signal) };
    },

    async downloadArchive(caller, id, query) {
      const directory = checkDirectory(query.path);
      const record = await visibleCodebase(parts, caller, id);
      const version = resolveVersion(record, query.version);
      if (directory !== "") {
        const entry = await snapshots.entry(id, version, directory);
        if (entry === undefined) throw fileNotFound(directory);
        requireDirectory(entry);
      }
      const listing = await snapshots.list(id, version, { directory, recursive: true });
      const open = snapshots.opener(id, version, directory, listing);
      return packArchive(listing.entries, directory, open, query.signal);
    },

    async listVersions(caller, id, query) {
      await visibleCodebase(parts, caller, id);
      const key = decodePageToken(query.pageToken, ["number"]);
      const limit = pageLimit(query.pageSize);
      const found = await store.listVersions(id, { before: key?.[0], limit: limit + 1 });
      return pageOf(found, limit, (last) => [last.version]);
    },

    async getVersion(caller, id, version) {
      const record = await visibleCodebase(parts, caller, id);
      const wanted = resolveVersion(record, version);
      // In this order: a version that is there in the end had its changes before.
      const changes = await store.changesOf(id, wanted);
      const found = await store.version(id, wanted);
      if (found === undefined) {
        await requireVersion(store, id, wanted);
        throw new RuntimeError("VERSION_NOT_FOUND", `version ${version} not found`);
      }
      return {
        version: found,
        changes: changes.map(({ path, before, after }) => ({
          kind: before === undefined ? "added" : after === undefined ? "deleted" : "modified",
          path,
          size: (after ?? before)?.size ?? 0,
          sensitive: after !== undefined && isSensitive(`/${path}`, after.target === "" ? undefined : after.target),
        })),
      };
    },
  };
}

function requireDirectory({ path, kind }: EntryRecord): void {
  if (kind === "directory") return;
  throw new RuntimeError("FILE_WRONG_KIND", `${shown(path)} is a ${kind}, not a directory`, { details: { path } });
}
