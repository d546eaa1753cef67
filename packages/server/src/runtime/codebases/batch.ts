import { invalid, RuntimeError } from "../runtime-error.ts";
import type { BatchPiece, FileEntry, ManifestEntry } from "./api.ts";
import { emptyContent, isEmptyContent, type Staging, type Wanted } from "./content.ts";
import { checkHash, checkMode, checkPath, checkSize, checkTarget, shown } from "./paths.ts";
import type { UploadMeter } from "./quotas.ts";

const DIRECTORY_MODE = 0o755;
const FILE_MODE = 0o644;

/** A manifest entry with its path, mode, hash and target checked. */
export function checkEntry(entry: ManifestEntry): ManifestEntry {
  const path = checkPath(entry.path);
  switch (entry.kind) {
    case "file": {
      const mode = checkMode(path, entry.mode) || FILE_MODE;
      return { kind: "file", path, mode, size: checkSize(path, entry.size), sha256: checkHash(path, entry.sha256) };
    }
    case "directory":
      return { kind: "directory", path, mode: checkMode(path, entry.mode) || DIRECTORY_MODE };
    case "symlink":
      return { kind: "symlink", path, target: checkTarget(path, entry.target) };
    case "absent":
      return { kind: "absent", path };
  }
}

/** Reads a batch to its end: its content goes to staging as it comes, the entries are what it wants. */
export async function receiveBatch(
  pieces: AsyncIterable<BatchPiece>,
  staging: Staging,
  meter: UploadMeter,
  signal?: AbortSignal,
): Promise<readonly Wanted[]> {
  const sender = staging.send();
  const entries = new Map<string, { readonly entry: ManifestEntry; index: number | undefined }>();
  let current: { readonly entry: ManifestEntry; index: number | undefined } | undefined;
  for await (const { entry, data } of pieces) {
    signal?.throwIfAborted();
    if (entry !== undefined) {
      const checked = checkEntry(entry);
      if (entries.has(checked.path)) {
        throw invalid(`${shown(checked.path)} is named twice`);
      }
      meter.begin(checked.path, checked.kind, checked.kind === "file" ? checked.size : 0);
      current = { entry: checked, index: undefined };
      entries.set(checked.path, current);
    }
    if (data === undefined || data.length === 0) continue;
    if (current === undefined) throw invalid("data came before the first entry");
    if (current.entry.kind !== "file") {
      throw invalid(`${shown(current.entry.path)} is no file and has no content`);
    }
    meter.add(current.entry.path, data.length);
    current.index ??= await sender.begin();
    await sender.write(data);
  }
  // An empty file has a staged file too, made in the end.
  for (const one of entries.values()) {
    if (one.entry.kind !== "file" || one.index !== undefined || !isEmpty(one.entry)) continue;
    one.index = await sender.begin();
  }
  const received = await sender.end();
  return [...entries.values()].map(({ entry, index }): Wanted => {
    if (entry.kind !== "file") return entry;
    const { path, mode } = entry;
    if (index === undefined) return { ...entry, content: { at: "codebase" } };
    const { size, sha256 } = checkReceived(entry, received[index]!);
    return { kind: "file", path, mode, size, sha256, content: { at: "staged", name: String(index) } };
  });
}

/** What a file entry comes to when no data follows it. */
function isEmpty({ path, size, sha256 }: FileEntry): boolean {
  if (size === 0 && (sha256 === "" || isEmptyContent(sha256))) return true;
  if (sha256 === "") {
    throw invalid(`${shown(path)} has neither content nor a checksum`);
  }
  return false;
}

/** Size 0 without a hash means that nothing was announced. */
function checkReceived(
  { path, size, sha256 }: FileEntry,
  received: { readonly size: number; readonly sha256: string },
): { readonly size: number; readonly sha256: string } {
  const isSizeKnown = size > 0 || sha256 !== "";
  if (isSizeKnown && received.size !== size) {
    throw mismatch(path, `${received.size} bytes arrived, ${size} were announced`);
  }
  if (sha256 !== "" && received.sha256 !== sha256) throw mismatch(path, "the checksum is another");
  return received.size === 0 ? emptyContent() : received;
}

export function mismatch(path: string, reason: string): RuntimeError {
  return new RuntimeError("UPLOAD_MISMATCH", `${shown(path)} did not arrive as announced: ${reason}`, {
    details: { path },
  });
}
