import type { ManifestEntrySchema } from "@agentfense/protocol/codebase";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ManifestEntry } from "../../model/requests.ts";
import { bigintOf, uint32Of } from "./numbers.ts";
import { MANIFEST_KINDS } from "./words.ts";

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
export function entryWeight(entry: ManifestEntry): number {
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
