import type {
  BatchUploadResult,
  Codebase as CodebaseMessage,
  FileInfo as FileInfoMessage,
  UploadResult as UploadResultMessage,
  Version as VersionMessage,
} from "@agentfense/protocol/codebase";
import { Permission } from "@agentfense/protocol/common";
import type { BatchResult, Codebase, FileInfo, UploadResult, Version } from "../../model/records.ts";
import { numberOf } from "./numbers.ts";
import { dateOf } from "./time.ts";
import { CHANGE_KINDS, PERMISSIONS, VERSION_ORIGINS, wordOf } from "./words.ts";

export function codebaseOf(message: CodebaseMessage): Codebase {
  return {
    id: message.id,
    name: message.name,
    ownerId: message.ownerId,
    size: numberOf(message.size),
    fileCount: message.fileCount,
    version: numberOf(message.version),
    createdAt: dateOf(message.createdAt),
    updatedAt: dateOf(message.updatedAt),
  };
}

export function fileInfoOf(message: FileInfoMessage): FileInfo {
  return {
    path: message.path,
    name: message.name,
    kind: message.isDir ? "directory" : message.symlinkTarget === "" ? "file" : "symlink",
    size: numberOf(message.size),
    mode: message.mode,
    modifiedAt: dateOf(message.modifiedAt),
    target: message.symlinkTarget,
    sha256: message.checksum,
    ...permissionOf(message.permission),
  };
}

/** What is hidden is not listed, so that its level never travels. */
const VISIBLE = { view: PERMISSIONS.view, read: PERMISSIONS.read, write: PERMISSIONS.write } as const;

function permissionOf(permission: Permission): Pick<FileInfo, "permission"> {
  return permission === Permission.UNSPECIFIED ? {} : { permission: wordOf(VISIBLE, permission, "permission") };
}

export function uploadResultOf({ filePath, size, checksum, version }: UploadResultMessage): UploadResult {
  return { path: filePath, size: numberOf(size), sha256: checksum, version: numberOf(version) };
}

export function batchResultOf({ version, filesChanged, bytesReceived }: BatchUploadResult): BatchResult {
  return { version: numberOf(version), filesChanged, bytesReceived: numberOf(bytesReceived) };
}

export function versionOf(message: VersionMessage): Version {
  return {
    codebaseId: message.codebaseId,
    version: numberOf(message.version),
    origin: wordOf(VERSION_ORIGINS, message.origin, "origin of a version"),
    sandboxId: message.sandboxId,
    message: message.message,
    createdAt: dateOf(message.createdAt),
    filesChanged: message.filesChanged,
    size: numberOf(message.size),
    fileCount: message.fileCount,
    changes: message.changes.map(({ kind, path, size, sensitive }) => ({
      kind: wordOf(CHANGE_KINDS, kind, "kind of change"),
      path,
      size: numberOf(size),
      sensitive,
    })),
    conflicts: message.conflicts.map(({ path, replacedVersion, replacedSandboxId }) => ({
      path,
      replacedVersion: numberOf(replacedVersion),
      replacedSandboxId,
    })),
  };
}
