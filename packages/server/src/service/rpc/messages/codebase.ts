import * as wire from "@agentfense/protocol/codebase";
import * as words from "@agentfense/protocol/words";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BatchResult, ManifestEntry, VersionChange } from "../../../runtime/codebases/api.ts";
import type { ViewEntry } from "../../../runtime/sandboxes/api.ts";
import type { CodebaseRecord, EntryRecord, VersionRecord } from "../../../runtime/store/store.ts";
import { count, int32, messageOf, permissionBits, required, timestampMessage, wordFor } from "./fields.ts";

export function codebaseMessage(record: CodebaseRecord): MessageInitShape<typeof wire.CodebaseSchema> {
  return messageOf(wire.CodebaseSchema, record, { fileCount: int32(record.fileCount) });
}

export function versionMessage(
  record: VersionRecord,
  changes: readonly VersionChange[] = [],
): MessageInitShape<typeof wire.VersionSchema> {
  return messageOf(wire.VersionSchema, record, {
    origin: words.VERSION_ORIGINS[record.origin],
    filesChanged: int32(record.filesChanged),
    fileCount: int32(record.fileCount),
    changes: changes.map(({ kind, path, size, sensitive }) => ({
      kind: words.CHANGE_KINDS[kind],
      path,
      size: BigInt(size),
      sensitive,
    })),
    conflicts: record.conflicts.map((conflict) => messageOf(wire.ConflictSchema, conflict, {})),
  });
}

export function batchResultMessage(
  codebaseId: string,
  result: BatchResult,
): MessageInitShape<typeof wire.BatchUploadResultSchema> {
  const filesChanged = int32(result.filesChanged);
  return messageOf(wire.BatchUploadResultSchema, result, { codebaseId, filesChanged });
}

/** `at` says where the entry stands in the request: "entries[3]". */
export function manifestEntryOf(message: wire.ManifestEntry, at: string): ManifestEntry {
  const path = required(message.path, `${at}: path`);
  const kind = wordFor(words.MANIFEST_KINDS, message.kind, `${at}: kind`) ?? "file";
  switch (kind) {
    case "file":
      return {
        kind,
        path,
        mode: permissionBits(message.mode, `${at}: mode`),
        size: count(message.size, `${at}: size`),
        sha256: message.checksum,
      };
    case "directory":
      return { kind, path, mode: permissionBits(message.mode, `${at}: mode`) };
    case "symlink":
      return { kind, path, target: required(message.symlinkTarget, `${at}: symlink_target`) };
    case "absent":
      return { kind, path };
  }
}

type FileInfoInit = MessageInitShape<typeof wire.FileInfoSchema>;

/** How a caller writes paths, "/src/a.ts" or "src/a.ts": the answer's paths begin as the request's path did. */
export type PathForm = "absolute" | "relative";

export function pathForm(requestPath: string): PathForm {
  return requestPath.startsWith("/") ? "absolute" : "relative";
}

/** A file of a codebase. */
export function entryInfo(entry: EntryRecord, form: PathForm): FileInfoInit {
  return { ...commonInfo(entry, form), checksum: entry.sha256 };
}

/** A file as a sandbox sees it. */
export function viewInfo(entry: ViewEntry, form: PathForm): FileInfoInit {
  const { permission, attributes = {} } = entry;
  return { ...commonInfo(entry, form), permission: words.PERMISSIONS[permission], attributes };
}

function commonInfo(entry: EntryRecord | ViewEntry, form: PathForm): FileInfoInit {
  const relative = entry.path.startsWith("/") ? entry.path.slice(1) : entry.path;
  return {
    path: form === "absolute" ? `/${relative}` : relative,
    name: relative.slice(relative.lastIndexOf("/") + 1),
    isDir: entry.kind === "directory",
    size: BigInt(Math.trunc(entry.size)),
    modifiedAt: timestampMessage(entry.modifiedAtMs),
    mode: entry.mode & 0o7777,
    symlinkTarget: entry.target,
  };
}
