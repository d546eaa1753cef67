import type {
  BatchUploadResultSchema,
  CodebaseSchema,
  ManifestEntry as ManifestEntryMessage,
  VersionSchema,
} from "@agentfense/protocol/codebase";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BatchResult, ManifestEntry, VersionChange } from "../../../runtime/codebases/api.ts";
import type { CodebaseRecord, VersionRecord } from "../../../runtime/store/store.ts";
import { CHANGE_KINDS, MANIFEST_KINDS, VERSION_ORIGINS, wordFor } from "./enums.ts";
import { count, int32, permissionBits, required, timestampMessage } from "./fields.ts";

export function codebaseMessage(record: CodebaseRecord): MessageInitShape<typeof CodebaseSchema> {
  return {
    id: record.id,
    name: record.name,
    ownerId: record.ownerId,
    size: BigInt(record.size),
    fileCount: int32(record.fileCount),
    createdAt: timestampMessage(record.createdAtMs),
    updatedAt: timestampMessage(record.updatedAtMs),
    version: BigInt(record.version),
  };
}

export function versionMessage(
  record: VersionRecord,
  changes: readonly VersionChange[] = [],
): MessageInitShape<typeof VersionSchema> {
  return {
    codebaseId: record.codebaseId,
    version: BigInt(record.version),
    origin: VERSION_ORIGINS[record.origin],
    sandboxId: record.sandboxId,
    message: record.message,
    createdAt: timestampMessage(record.createdAtMs),
    filesChanged: int32(record.filesChanged),
    size: BigInt(record.size),
    fileCount: int32(record.fileCount),
    changes: changes.map(({ kind, path, size }) => ({ kind: CHANGE_KINDS[kind], path, size: BigInt(size) })),
    conflicts: record.conflicts.map(({ path, replacedVersion, replacedSandboxId }) => ({
      path,
      replacedVersion: BigInt(replacedVersion),
      replacedSandboxId,
    })),
  };
}

export function batchResultMessage(
  codebaseId: string,
  result: BatchResult,
): MessageInitShape<typeof BatchUploadResultSchema> {
  return {
    codebaseId,
    version: BigInt(result.version),
    filesChanged: int32(result.filesChanged),
    bytesReceived: BigInt(result.bytesReceived),
  };
}

/** `at` says where the entry stands in the request: "entries[3]". */
export function manifestEntryOf(message: ManifestEntryMessage, at: string): ManifestEntry {
  const path = required(message.path, `${at}: path`);
  const kind = wordFor(MANIFEST_KINDS, message.kind, `${at}: kind`) ?? "file";
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
