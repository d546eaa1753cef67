import type {
  BatchItemSchema,
  BatchUploadChunkSchema,
  BatchUploadResult,
  Codebase as CodebaseMessage,
  FileInfo as FileInfoMessage,
  ManifestEntrySchema,
  UploadResult as UploadResultMessage,
  Version as VersionMessage,
} from "@agentfense/protocol/codebase";
import { Permission } from "@agentfense/protocol/common";
import type {
  ApplyChangesResponse,
  ChangeCounts as ChangeCountsMessage,
  Change as ChangeMessage,
  FileDiff as FileDiffMessage,
} from "@agentfense/protocol/sandbox";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { SandboxError } from "../../errors.ts";
import type {
  ApplyResult,
  BatchResult,
  Change,
  ChangeCounts,
  Codebase,
  FileDiff,
  FileInfo,
  UploadResult,
  Version,
} from "../../model/records.ts";
import type { BatchEntry, ManifestEntry } from "../../model/requests.ts";
import { pieces } from "../content.ts";
import {
  bigintOf,
  CHANGE_KINDS,
  CHANGE_TYPES,
  dateOf,
  MANIFEST_KINDS,
  numberOf,
  PERMISSIONS,
  uint32Of,
  VERSION_ORIGINS,
  wordOf,
} from "./values.ts";

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

export function fileInfoOf(message: FileInfoMessage, withAttributes = false): FileInfo {
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
    ...(withAttributes ? { attributes: message.attributes } : {}),
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

export type BatchChunk = MessageInitShape<typeof BatchUploadChunkSchema>;
type Item = MessageInitShape<typeof BatchItemSchema>;

/** The messages of one batch: as many items in each as fit. */
export async function* batchChunks(
  begin: NonNullable<BatchChunk["begin"]>,
  entries: AsyncIterable<BatchEntry> | Iterable<BatchEntry>,
  onBytes: (count: number) => void = () => {},
): AsyncGenerator<BatchChunk> {
  yield { begin: { ...begin, announcesEnd: true } };
  let items: Item[] = [];
  let weight = 0;
  for await (const { item, bytes } of batchItems(entries)) {
    if (weight + bytes > MESSAGE_BYTES && items.length > 0) {
      yield { items };
      items = [];
      weight = 0;
    }
    items.push(item);
    weight += bytes;
    if (item.data !== undefined) onBytes(item.data.length);
  }
  // Without it a batch that is given up could be taken for complete, and what it had not got to, for removed.
  yield { items, end: true };
}

async function* batchItems(
  entries: AsyncIterable<BatchEntry> | Iterable<BatchEntry>,
): AsyncGenerator<{ readonly item: Item; readonly bytes: number }> {
  for await (const entry of entries) {
    let item: Item = { entry: manifestMessage(entry) };
    let bytes = entryWeight(entry);
    // What is short, or has no content, is one item; all that follows the first piece goes on with the file.
    for await (const data of contentOf(entry)) {
      if (item.data !== undefined) {
        yield { item, bytes };
        item = {};
        bytes = 0;
      }
      item = { ...item, data };
      bytes += data.length;
    }
    yield { item, bytes };
  }
}

async function* contentOf({ content }: BatchEntry): AsyncGenerator<Uint8Array> {
  if (content === undefined) return;
  if (content instanceof Uint8Array) yield* pieces(content);
  else for await (const data of content) yield* pieces(data);
}

export function manifestMessage(entry: ManifestEntry): MessageInitShape<typeof ManifestEntrySchema> {
  const named = { path: entry.path, kind: MANIFEST_KINDS[entry.kind] };
  switch (entry.kind) {
    case "absent":
      return named;
    case "directory":
      return { ...named, mode: uint32Of(entry.mode, "mode") };
    case "symlink":
      return { ...named, symlinkTarget: entry.target };
    case "file": {
      const { mode, size, sha256: checksum } = entry;
      return { ...named, mode: uint32Of(mode, "mode"), size: bigintOf(size, "size"), checksum };
    }
  }
}

/** More than any entry takes on the wire besides its names. */
const ENTRY_OVERHEAD = 128;

/** About how many bytes an entry takes in a message. */
function entryWeight(entry: ManifestEntry): number {
  const target = entry.kind === "symlink" ? Buffer.byteLength(entry.target) : 0;
  return Buffer.byteLength(entry.path) + target + ENTRY_OVERHEAD;
}

/** Messages stay well below what any server accepts, and none has so many entries that others wait for it to be read. */
export const MESSAGE_BYTES = 262_144;

/** The entries in groups that each fit into one message. */
export function* inMessages<Entry extends ManifestEntry>(entries: Iterable<Entry>): Generator<readonly Entry[]> {
  let group: Entry[] = [];
  let weight = 0;
  for (const entry of entries) {
    const own = entryWeight(entry);
    if (weight + own > MESSAGE_BYTES && group.length > 0) {
      yield group;
      group = [];
      weight = 0;
    }
    group.push(entry);
    weight += own;
  }
  if (group.length > 0) yield group;
}

export function changeOf(message: ChangeMessage | undefined): Change {
  if (message === undefined) throw new SandboxError("the server left out what changed", { code: "UNKNOWN" });
  return {
    kind: wordOf(CHANGE_KINDS, message.kind, "kind of change"),
    path: message.path,
    oldPath: message.oldPath,
    type: wordOf(CHANGE_TYPES, message.type, "kind of file"),
    size: numberOf(message.size),
    sensitive: message.sensitive,
    ...(message.folded && { folded: countsOf(message.folded) }),
  };
}

function countsOf({ added, modified, deleted, renamed }: ChangeCountsMessage): ChangeCounts {
  return { added, modified, deleted, renamed };
}

/** One diff, of the messages that it came in. */
export function fileDiffOf(messages: readonly [FileDiffMessage, ...FileDiffMessage[]]): FileDiff {
  const [{ change, binary }] = messages;
  return { change: changeOf(change), unified: messages.map(({ unified }) => unified).join(""), binary };
}

export function applyResultOf({ version, outcomes }: ApplyChangesResponse): ApplyResult {
  return {
    version: numberOf(version),
    outcomes: outcomes.map(({ change, applied, reason, sensitive, conflict }) => ({
      change: changeOf(change),
      applied,
      reason,
      sensitive,
      conflict,
    })),
  };
}
