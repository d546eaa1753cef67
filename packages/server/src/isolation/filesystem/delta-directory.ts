import { syscalls } from "@agentfense/fuse";
import { walkDirectory } from "./directory-reader.ts";
import { turn, type Walk } from "./walks.ts";
import { isReserved, OPAQUE_MARKER, readMarker, whiteoutFor } from "./whiteouts.ts";

const { FileType, Open } = syscalls;

/** One directory of a delta's tree, read with suspicion: the format is in whiteouts.ts. */
export interface DeltaDirectory {
  readonly names: ReadonlySet<string>;
  /** Deleted names, with the file that says so. A name can be here and in `names`, which then decides. */
  readonly whiteouts: ReadonlyMap<string, string>;
  /** Nothing of the codebase's directory shows here. */
  readonly opaque: boolean;
  /** Files with a reserved name that mean nothing, `.wh..` and `.wh...` among them. */
  readonly meaningless: readonly string[];
}

/** What a rmdir or a rename put aside because the rules hide it; see EntryChanges. */
export const KEPT_PREFIX = ".wh..wh.kept.";

/** Reads a directory of the delta, or returns a negated errno. */
export function* readDeltaDirectory(directory: number): Walk<DeltaDirectory | number> {
  const names = new Set<string>();
  const reserved: string[] = [];
  const code = yield* walkDirectory(directory, (name) => {
    if (isReserved(name)) reserved.push(name);
    else names.add(name);
  });
  if (code < 0) return code;
  const whiteouts = new Map<string, string>();
  const meaningless: string[] = [];
  for (const file of reserved) {
    turn.entries += 1;
    yield;
    if (file === OPAQUE_MARKER || file.startsWith(KEPT_PREFIX)) continue;
    const name = deletedName(directory, file);
    if (name === undefined) meaningless.push(file);
    else whiteouts.set(name, file);
  }
  return { names, whiteouts, opaque: reserved.includes(OPAQUE_MARKER), meaningless };
}

/** The name a whiteout deletes. Only the one way to write it counts, and only what can be a name. */
function deletedName(directory: number, file: string): string | undefined {
  const stat = new syscalls.Stat();
  if (syscalls.statat(directory, file, stat) < 0 || stat.type !== FileType.REGULAR) return undefined;
  const marker = readMarker(file);
  const name = marker?.kind === "long-whiteout" ? readName(directory, file) : markedName(marker);
  if (name === undefined || name === "" || name === "." || name === "..") return undefined;
  if (name.includes("/") || name.includes("\0") || whiteoutFor(name).name !== file) return undefined;
  return name;
}

function markedName(marker: ReturnType<typeof readMarker>): string | undefined {
  return marker?.kind === "whiteout" ? marker.name : undefined;
}

const LONGEST_NAME = 255;

function readName(directory: number, file: string): string | undefined {
  const fd = syscalls.openat(directory, file, Open.RDONLY | Open.NONBLOCK);
  if (fd < 0) return undefined;
  const content = Buffer.alloc(LONGEST_NAME + 1);
  const length = syscalls.pread(fd, content, content.length, 0);
  syscalls.close(fd);
  return length < 0 || length > LONGEST_NAME ? undefined : content.toString("latin1", 0, length);
}
