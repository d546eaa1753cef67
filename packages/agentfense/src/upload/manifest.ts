import { EntryKind, type ManifestEntrySchema } from "@agentfense/protocol/codebase";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HashedFile } from "./hash.ts";
import type { LocalEntry } from "./walk.ts";

/** What will be uploaded: files are known by their hashes. */
export type UploadEntry = Exclude<LocalEntry, { kind: "file" }> | HashedFile;

export type ManifestEntry = MessageInitShape<typeof ManifestEntrySchema>;

export function manifestEntry(entry: UploadEntry): ManifestEntry {
  const { path } = entry;
  switch (entry.kind) {
    case "directory":
      return { path, kind: EntryKind.DIRECTORY, mode: entry.mode };
    case "symlink":
      return { path, kind: EntryKind.SYMLINK, symlinkTarget: entry.target };
    case "file":
      return { path, kind: EntryKind.FILE, mode: entry.mode, size: BigInt(entry.size), checksum: entry.sha256 };
  }
}

/** More than any entry takes on the wire besides its names. */
const ENTRY_OVERHEAD = 128;

/** About how many bytes an entry takes in a message. */
export function entryWeight(entry: UploadEntry): number {
  const target = entry.kind === "symlink" ? Buffer.byteLength(entry.target) : 0;
  return Buffer.byteLength(entry.path) + target + ENTRY_OVERHEAD;
}

/** Messages stay well below what any server accepts, and none has so many entries that others wait for it to be read. */
export const MESSAGE_BYTES = 262_144;

/** The files in groups that each fit into one message. */
export function* inMessages<Entry extends UploadEntry>(entries: Iterable<Entry>): Generator<readonly Entry[]> {
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
