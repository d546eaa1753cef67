import type {
  CodebaseMetadata,
  ConflictRecord,
  EntryRecord,
  VersionChangeRecord,
  VersionRecord,
} from "../store/store.ts";
import type { StagedEntry } from "./api.ts";
import type { PathChange } from "./content.ts";
import { ancestorsOf } from "./paths.ts";

/** What others made of a path after the sandbox had its own version of it. */
export interface ForeignWork {
  /** What the sandbox's version began as: what it copied, or what it wrote into the codebase itself. */
  readonly base: EntryRecord | undefined;
  /** The newest change of somebody else. */
  readonly replaced: VersionRecord;
}

type History = Pick<CodebaseMetadata, "listVersions" | "firstChangesAfter">;

const PAGE = 64;

/** Finds other people's work by path; most paths have none. */
export async function foreignWork(
  store: History,
  codebaseId: string,
  sandboxId: string,
  entries: readonly StagedEntry[],
): Promise<ReadonlyMap<string, ForeignWork>> {
  const work = new Map<string, ForeignWork>();
  const earliestMs = entries.reduce((earliest, { madeAtMs }) => Math.min(earliest, madeAtMs), Infinity);
  const later = await versionsAfter(store, codebaseId, earliestMs);
  const [first] = later;
  if (first === undefined) return work;
  const byNumber = new Map(later.map((version) => [version.version, version]));
  const changed = new Set((await store.firstChangesAfter(codebaseId, first.version - 1, {})).map(({ path }) => path));
  for (const { path, madeAtMs } of entries) {
    const since = changed.has(path) ? later.find(({ createdAtMs }) => createdAtMs > madeAtMs) : undefined;
    if (since === undefined) continue;
    let base: EntryRecord | undefined;
    let replaced: VersionRecord | undefined;
    for await (const [index, change] of changesOf(store, codebaseId, path, since.version - 1)) {
      const version = byNumber.get(change.version)!;
      const isOwn = version.sandboxId === sandboxId;
      if (isOwn) base = change.after;
      else if (index === 0) base = change.before;
      replaced = isOwn ? undefined : version;
    }
    if (replaced !== undefined) work.set(path, { base, replaced });
  }
  return work;
}

/**
 * Paths that the sandbox has as they were before others changed them: nothing of its own is there to be written, an old copy
 * least of all. What was put into a directory after the sandbox deleted that belongs to them: it stays, with the directory,
 * unless something else takes the directory's place.
 */
export function supersededPaths(
  entries: readonly StagedEntry[],
  work: ReadonlyMap<string, ForeignWork>,
): ReadonlySet<string> {
  const kinds = new Map(entries.map(({ path, kind }) => [path, kind]));
  const superseded = new Set<string>();
  for (const entry of entries) {
    const foreign = work.get(entry.path);
    if (foreign === undefined || !isSame(entry, foreign.base)) continue;
    const above = ancestorsOf(entry.path);
    const makesRoom = above.some((path) => kinds.get(path) === "file" || kinds.get(path) === "symlink");
    if (entry.kind === "absent" && makesRoom) continue;
    superseded.add(entry.path);
    if (entry.kind !== "absent") continue;
    for (const path of above) if (kinds.get(path) === "absent") superseded.add(path);
  }
  return superseded;
}

/** Whose work these changes replace. */
export function conflictsOf(
  changes: readonly PathChange[],
  work: ReadonlyMap<string, ForeignWork>,
): readonly ConflictRecord[] {
  return changes.flatMap(({ path, before, after }) => {
    const foreign = work.get(path);
    if (foreign === undefined || before?.kind === "directory" || after?.kind === "directory") return [];
    return [{ path, replacedVersion: foreign.replaced.version, replacedSandboxId: foreign.replaced.sandboxId }];
  });
}

/** Oldest first. */
async function versionsAfter(store: History, codebaseId: string, timeMs: number): Promise<readonly VersionRecord[]> {
  const found: VersionRecord[] = [];
  while (true) {
    const before = found.at(-1)?.version;
    const page = await store.listVersions(codebaseId, { before, limit: PAGE });
    const later = page.filter(({ createdAtMs }) => createdAtMs > timeMs);
    found.push(...later);
    if (page.length < PAGE || later.length < page.length) return found.reverse();
  }
}

/** What happened to one path after a version, in order. */
async function* changesOf(
  store: History,
  codebaseId: string,
  path: string,
  version: number,
): AsyncGenerator<readonly [index: number, change: VersionChangeRecord]> {
  for (let at = version, index = 0; ; index++) {
    const [change] = await store.firstChangesAfter(codebaseId, at, { path });
    if (change === undefined) return;
    yield [index, change];
    at = change.version;
  }
}

function isSame(entry: StagedEntry, base: EntryRecord | undefined): boolean {
  if (base === undefined) return entry.kind === "absent";
  if (entry.kind !== base.kind) return false;
  if (entry.kind === "symlink") return entry.target === base.target;
  return (entry.mode & 0o777) === base.mode && entry.sha256 === base.sha256;
}
