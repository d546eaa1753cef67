import { createHash } from "node:crypto";
import {
  type BatchUploadChunk,
  type BatchUploadChunk_Begin,
  EntryKind,
  type ManifestEntry,
} from "@agentfense/protocol/codebase";
import type { Codebase } from "../codebases/codebase.ts";
import { filePath, shown } from "../codebases/codebase-paths.ts";
import type { Wanted } from "../codebases/draft.ts";
import { brokenOff, Fault, invalid } from "../faults.ts";
import { directoryEntry, fileEntry, linkEntry, sha256Of } from "../files/entry.ts";
import { count, permissionBits, required } from "./fields.ts";

const EMPTY_SHA256 = createHash("sha256").digest("hex");

interface Received {
  readonly entry: ManifestEntry;
  readonly path: string;
  readonly data: Uint8Array[];
}

/** Reads a batch to its end: `begin` in its first chunk, then items over as many chunks as the client likes. */
export async function receiveBatch(
  chunks: AsyncIterable<BatchUploadChunk>,
): Promise<{ readonly begin: BatchUploadChunk_Begin; readonly received: readonly Received[] }> {
  let begin: BatchUploadChunk_Begin | undefined;
  const received = new Map<string, Received>();
  let current: Received | undefined;
  let isComplete = false;
  for await (const chunk of chunks) {
    isComplete ||= chunk.end;
    if (chunk.begin !== undefined && begin !== undefined) throw invalid("begin already received");
    begin ??= chunk.begin;
    if (begin === undefined) throw invalid("begin must be sent first");
    for (const { entry, data } of chunk.items) {
      if (entry !== undefined) {
        const path = filePath(required(entry.path, "items: path"));
        if (received.has(path)) throw invalid(`${shown(path)} is named twice`);
        current = { entry, path, data: [] };
        received.set(path, current);
      }
      if (data.length === 0) continue;
      if (current === undefined) throw invalid("items[0]: entry is required: no file comes before it");
      if (!isFile(current.entry)) throw invalid(`${shown(current.path)} is no file and has no content`);
      current.data.push(data);
    }
  }
  if (begin === undefined) throw invalid("no begin received");
  required(begin.codebaseId, "codebase_id", "in begin");
  if (begin.announcesEnd && !isComplete) throw brokenOff();
  return { begin, received: [...received.values()] };
}

/** Paths of the files among these whose content the codebase lacks. */
export function missingContent(codebase: Codebase, entries: readonly ManifestEntry[]): string[] {
  const hashes = knownContent(codebase);
  return entries
    .filter((entry) => {
      const { checksum, size } = entry;
      filePath(required(entry.path, "entries: path"));
      if (!isFile(entry) || checksum === EMPTY_SHA256 || (checksum === "" && size === 0n)) return false;
      return !hashes.has(checksum.toLowerCase());
    })
    .map(({ path }) => path.replace(/^\//, ""));
}

/** What the batch wants; content that was not sent is found in the codebase. */
export function wantedOf(codebase: Codebase, received: readonly Received[]): Wanted[] {
  const hashes = knownContent(codebase);
  const missing: string[] = [];
  const wanted = received.map(({ entry, path, data }): Wanted => {
    const mode = permissionBits(entry.mode, `${shown(path)}: mode`);
    if (entry.kind === EntryKind.ABSENT) return { path, entry: undefined };
    if (entry.kind === EntryKind.DIRECTORY) return { path, entry: directoryEntry(mode || undefined) };
    if (entry.kind === EntryKind.SYMLINK) {
      return { path, entry: linkEntry(required(entry.symlinkTarget, `${shown(path)}: symlink_target`)) };
    }
    const checksum = entry.checksum.toLowerCase();
    const isEmpty = count(entry.size, "size") === 0 && (checksum === "" || checksum === EMPTY_SHA256);
    if (data.length === 0 && !isEmpty) {
      if (checksum === "") throw invalid(`${shown(path)} has neither content nor a checksum`);
      const known = hashes.get(checksum);
      if (known === undefined) missing.push(path);
      return { path, entry: fileEntry(known ?? new Uint8Array(), mode || undefined) };
    }
    const content = Buffer.concat(data);
    checkContent(path, content, { size: entry.size, checksum });
    return { path, entry: fileEntry(content, mode || undefined) };
  });
  if (missing.length === 0) return wanted;
  throw new Fault("CONTENT_MISSING", `the server does not have the content of ${missing.map(shown).join(", ")}`, {
    details: { missing: String(missing.length) },
    hint: "send the content of these files",
  });
}

/** Size 0 without a hash means that nothing was announced. */
export function checkContent(
  path: string,
  content: Uint8Array,
  announced: { readonly size: bigint; readonly checksum: string },
): void {
  const { size, checksum } = announced;
  if ((size > 0n || checksum !== "") && BigInt(content.length) !== size) {
    throw mismatch(path, `${content.length} bytes arrived, ${size} were announced`);
  }
  if (checksum !== "" && sha256Of(fileEntry(content)) !== checksum) throw mismatch(path, "the checksum is another");
}

export function mismatch(path: string, reason: string): Fault {
  return new Fault("UPLOAD_MISMATCH", `${shown(path)} did not arrive as announced: ${reason}`, {
    details: { path: path.slice(1) },
  });
}

function isFile({ kind }: ManifestEntry): boolean {
  return kind === EntryKind.FILE || kind === EntryKind.UNSPECIFIED;
}

function knownContent(codebase: Codebase): ReadonlyMap<string, Uint8Array> {
  const known = new Map<string, Uint8Array>();
  for (const [, entry] of codebase.tree) if (entry.kind === "file") known.set(sha256Of(entry), entry.content);
  return known;
}
