import { syscalls } from "@agentfense/fuse";
import { isSensitive, type Rule } from "@agentfense/permission";
import { MODE_BITS, openRegular, readTarget, sha256Of } from "./comparison.ts";
import { type EntryType, typeOf } from "./diff.ts";
import { OpenLayers } from "./places.ts";
import { Selection } from "./selection.ts";
import { audienceOf, type ChangeKind, type FoundChange, pathText, type Side, walkChanges } from "./walk.ts";

const { FileType } = syscalls;

export interface Change {
  readonly kind: ChangeKind | "renamed";
  /** "/src/a.ts"; bytes that are not UTF-8 appear as lone surrogates U+DC80 to U+DCFF. */
  readonly path: string;
  /** Of what was renamed: where it was. */
  readonly oldPath?: string;
  /** Of what was renamed: permission bits, before and after. */
  readonly modes?: readonly [old: number, now: number];
  readonly type: EntryType;
  /** Of the new content; of what was there, for a deletion. */
  readonly size: number;
  /** The host may run or trust it without being asked to, or it is a link out of the workspace. */
  readonly sensitive: boolean;
  /** The codebase ignores it: the directory in which it is folded. Told if it was asked for. */
  readonly ignoredIn?: string;
}

export interface ListSpec {
  readonly delta: string;
  /** What it lies on: deltas that snapshots froze, top first. */
  readonly beneath?: readonly string[] | undefined;
  /** Codebase directories, top first. */
  readonly lowers: readonly string[];
  /** What these hide or only let be looked at is left out; absent: all is told. */
  readonly rules?: readonly Rule[] | undefined;
  /** For the owner of the codebase: all that the delta holds, and of removed directories what the sandbox could see. */
  readonly tellsAll?: boolean;
  /** Tell what the codebase's ignore files name. */
  readonly ignores?: boolean;
  readonly paths?: readonly string[] | undefined;
  /** A file that is gone and one of the same content that is new are one renamed file. */
  readonly renames?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What a delta changes, in path order, directory by directory. Entries that were only copied up and are still equal to the
 * codebase, content and mode, are no changes. No symlink is followed on either side. The delta may be in use.
 */
export async function* listChanges(spec: ListSpec): AsyncGenerator<Change> {
  using layers = new OpenLayers(spec.delta, spec.lowers, spec.beneath);
  const found = walkChanges(layers, Selection.of(spec.paths), audienceOf(spec));
  if (!spec.renames) {
    for await (const change of found) {
      spec.signal?.throwIfAborted();
      yield describe(change);
    }
    return;
  }
  yield* withRenames(found, spec.signal);
}

function describe({ kind, names, old, now, ignoredIn }: FoundChange): Change {
  const { stat } = now ?? old!;
  const type = typeOf(stat);
  const size = type === "file" || type === "symlink" ? stat.size : 0;
  const path = pathText(names);
  const sensitive = now !== undefined && isSensitive(path, type === "symlink" ? readTarget(now.place) : undefined);
  return { kind, path, type, size, sensitive, ...(ignoredIn !== undefined && { ignoredIn }) };
}

interface Seen {
  readonly change: Change;
  readonly mode: number;
  /** Of an added or deleted file that can be half of a rename; read when another of its size turns up. */
  readonly digest: (() => Promise<string | undefined>) | undefined;
}

// The walk's descriptors are good only until it goes on, so each file that might be half of a rename keeps one of its own,
// until there are too many.
const KEPT_FILES = 512;

async function* withRenames(found: AsyncGenerator<FoundChange>, signal?: AbortSignal): AsyncGenerator<Change> {
  const kept: number[] = [];
  try {
    const seen: Seen[] = [];
    for await (const change of found) {
      signal?.throwIfAborted();
      const mode = (change.now ?? change.old!).stat.mode & MODE_BITS;
      seen.push({ change: describe(change), mode, digest: digestOf(change, kept, signal) });
    }
    const sources = await pairUp(seen, signal);
    const moved = new Set([...sources.values()].map(({ change }) => change));
    for (const { change, mode } of seen) {
      const source = sources.get(change);
      if (source !== undefined) {
        yield { ...change, kind: "renamed", oldPath: source.change.path, modes: [source.mode, mode] };
      } else if (!moved.has(change)) yield change;
    }
  } finally {
    for (const fd of kept) syscalls.close(fd);
  }
}

function digestOf({ kind, old, now }: FoundChange, kept: number[], signal?: AbortSignal): Seen["digest"] {
  const side: Side | undefined = kind === "added" ? now : kind === "deleted" ? old : undefined;
  if (side?.stat.type !== FileType.REGULAR || side.stat.size === 0 || kept.length >= KEPT_FILES) return undefined;
  const fd = openRegular(side.place);
  if (fd < 0) return undefined;
  kept.push(fd);
  let digest: Promise<string | undefined> | undefined;
  return () => {
    digest ??= sha256Of(fd, signal);
    return digest;
  };
}

/** For each new file that was moved: the deletion it came from. Each is used once, in path order. */
async function pairUp(seen: readonly Seen[], signal?: AbortSignal): Promise<Map<Change, Seen>> {
  const deletedOfSize = new Map<number, Seen[]>();
  for (const each of seen) {
    if (each.change.kind !== "deleted" || each.digest === undefined) continue;
    const sameSize = deletedOfSize.get(each.change.size) ?? [];
    sameSize.push(each);
    deletedOfSize.set(each.change.size, sameSize);
  }
  const pairs = new Map<Change, Seen>();
  for (const { change, digest } of seen) {
    const candidates = change.kind === "added" && digest ? deletedOfSize.get(change.size) : undefined;
    if (candidates === undefined || digest === undefined) continue;
    const wanted = await digest();
    for (const [index, candidate] of candidates.entries()) {
      signal?.throwIfAborted();
      if (wanted === undefined || (await candidate.digest?.()) !== wanted) continue;
      pairs.set(change, candidate);
      candidates.splice(index, 1);
      break;
    }
  }
  return pairs;
}

export interface ChangeCounts {
  readonly added: number;
  readonly modified: number;
  readonly deleted: number;
  readonly renamed: number;
}

/** A change, or all ignored changes of a directory as one. */
export type ListedChange = Change & {
  /** How many it stands for, of each kind; `size` is of all of them. */
  readonly folded?: ChangeCounts;
};

/**
 * For people: directory by directory, and what the codebase ignores behind everything else, one item for each directory of
 * it. A single ignored change stays what it is: its name says more than a number.
 */
export function foldChanges(changes: readonly Change[]): ListedChange[] {
  const shown = changes.filter(({ ignoredIn }) => ignoredIn === undefined);
  const groups = Map.groupBy(
    changes.filter(({ ignoredIn }) => ignoredIn !== undefined),
    ({ ignoredIn }) => ignoredIn!,
  );
  const folded = [...groups].map(([path, group]): ListedChange => (group.length === 1 ? group[0]! : fold(path, group)));
  return [...shown.toSorted(byDirectory), ...folded.toSorted((a, b) => compare(a.path, b.path))];
}

function fold(path: string, group: readonly Change[]): ListedChange {
  const count = (kind: Change["kind"]): number => group.filter((change) => change.kind === kind).length;
  const folded = {
    added: count("added"),
    modified: count("modified"),
    deleted: count("deleted"),
    renamed: count("renamed"),
  };
  const [first] = group;
  const kind = group.every((change) => change.kind === first!.kind) ? first!.kind : "modified";
  const size = group.reduce((sum, change) => sum + (change.kind === "deleted" ? 0 : change.size), 0);
  const sensitive = group.some((change) => change.sensitive);
  return { kind, path, type: "directory", size, sensitive, ignoredIn: path, folded };
}

function byDirectory(a: Change, b: Change): number {
  return compare(directoryOf(a.path), directoryOf(b.path)) || compare(a.path, b.path);
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
