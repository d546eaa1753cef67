import { setImmediate } from "node:timers/promises";
import { invalid, RuntimeError } from "../runtime-error.ts";
import type { CodebaseMetadata, EntryRecord } from "../store/store.ts";
import type { PathChange, Wanted } from "./content.ts";
import { ancestorsOf, checkPath, comparePaths, fileNotFound, shown } from "./paths.ts";

/** The part of a manifest that a change has to do with: what is at its paths, on the way to them, and below them. */
export interface Surroundings {
  entry(path: string): EntryRecord | undefined;
  /** All below a directory that may have to go, in path order. */
  below(directory: string): readonly EntryRecord[];
}

export async function loadSurroundings(
  store: Pick<CodebaseMetadata, "entries" | "listEntries">,
  codebaseId: string,
  wanted: readonly Wanted[],
  options: { readonly everything: boolean },
): Promise<Surroundings> {
  const known = new Map<string, EntryRecord>();
  const lists = new Map<string, readonly EntryRecord[]>();
  if (options.everything) {
    const all = await store.listEntries(codebaseId, { directory: "", recursive: true });
    for (const entry of all) known.set(entry.path, entry);
    lists.set("", all);
  } else {
    const paths = [...new Set(wanted.flatMap(({ path }) => [...ancestorsOf(path), path]))];
    for (const entry of await store.entries(codebaseId, paths)) if (entry !== undefined) known.set(entry.path, entry);
  }
  for (const { kind, path } of wanted) {
    if (kind === "directory" || known.get(path)?.kind !== "directory") continue;
    const list = await store.listEntries(codebaseId, { directory: path, recursive: true });
    for (const entry of list) known.set(entry.path, entry);
    lists.set(path, list);
  }
  return {
    entry: (path) => known.get(path),
    below: (directory) => lists.get(directory) ?? [],
  };
}

/** What the entries that a change makes are marked with. */
export interface Stamp {
  readonly version: number;
  readonly nowMs: number;
}

export interface PlanOptions {
  /** What no entry names goes. */
  readonly replaceAll: boolean;
  /**
   * | value     | a directory in the way of something else       | what cannot be done |
   * | "refuse"  | goes with all below it                          | the whole change is refused |
   * | "skip"    | goes if the change removes all that is below it | is left out          |
   */
  readonly onProblem: "refuse" | "skip";
}

export interface ChangePlan {
  /** In path order; nothing that stays as it is. */
  readonly changes: readonly PathChange[];
  /** Paths that were left out. */
  readonly skipped: readonly string[];
}

/** The mode of a directory that nobody named, on the way to something. */
const IMPLICIT_DIRECTORY = 0o755;
const DEFAULT_FILE = 0o644;
const LINK_MODE = 0o777;

/** So many entries before other callers get their turn. */
const ENTRIES_A_TURN = 1000;

/**
 * Compares what is wanted with what is there: the paths that change, parents that appear and all that goes along. The
 * caller holds the codebase's lock: nothing of it changes meanwhile.
 */
export async function planChanges(
  wanted: readonly Wanted[],
  there: Surroundings,
  stamp: Stamp,
  { replaceAll, onProblem }: PlanOptions,
): Promise<ChangePlan> {
  const inOrder = wanted.toSorted((a, b) => comparePaths(a.path, b.path));
  const named = new Map(wanted.map((one) => [one.path, one]));
  const changes = new Map<string, PathChange>();
  const skipped: string[] = [];
  /** Directories that something wanted is in. */
  const needed = new Set<string>();

  function set(change: PathChange): void {
    changes.set(change.path, change);
  }

  function isGoing(path: string): boolean {
    const change = changes.get(path);
    return change !== undefined && change.after === undefined;
  }

  /** All below the directory goes; false when something may not. */
  function empty(directory: string): boolean {
    const below = there.below(directory);
    if (onProblem === "skip") {
      const stays = below.find(({ path }) => !isGoing(path));
      if (stays !== undefined) skipped.push(directory);
      return stays === undefined;
    }
    for (const entry of below) set({ path: entry.path, before: entry, after: undefined });
    return true;
  }

  function remove(path: string): void {
    const entry = there.entry(path);
    if (entry === undefined) return;
    if (entry.kind === "directory" && !empty(path)) return;
    set({ path, before: entry, after: undefined });
  }

  function want(one: Exclude<Wanted, { kind: "absent" }>): void {
    if (!makeWay(one.path)) return;
    const before = there.entry(one.path);
    const after = entryOf(one, before, stamp);
    if (before !== undefined && isSame(before, after)) return;
    if (before?.kind === "directory" && one.kind !== "directory" && !empty(one.path)) return;
    set({ path: one.path, before, after, ...(one.kind === "file" ? { content: one.content } : {}) });
  }

  /** The directories on the way to a path. */
  function makeWay(path: string): boolean {
    for (const directory of ancestorsOf(path)) {
      if (needed.has(directory)) continue;
      const problem = problemOnTheWay(path, directory);
      if (problem !== undefined) {
        if (onProblem === "refuse") throw problem;
        skipped.push(path);
        return false;
      }
      needed.add(directory);
      const before = there.entry(directory);
      const isThere = before?.kind === "directory" && !isGoing(directory);
      if (isThere || named.get(directory)?.kind === "directory") continue;
      if (before?.kind === "directory") changes.delete(directory);
      else set({ path: directory, before, after: directoryEntry(directory, IMPLICIT_DIRECTORY, stamp) });
    }
    return true;
  }

  function problemOnTheWay(path: string, directory: string): RuntimeError | undefined {
    const asked = named.get(directory);
    if (asked !== undefined) {
      if (asked.kind === "directory" || (asked.kind === "absent" && onProblem === "skip")) return undefined;
      const what = asked.kind === "absent" ? "nothing" : `a ${asked.kind}`;
      return invalid(`${shown(path)} cannot be below ${shown(directory)}, which is to be ${what}`);
    }
    const present = there.entry(directory);
    if (present === undefined || present.kind === "directory" || replaceAll) return undefined;
    const problem = `${shown(path)} cannot be below ${shown(directory)}, which is a ${present.kind}`;
    return new RuntimeError("FILE_WRONG_KIND", problem, { details: { path } });
  }

  // What goes first, the deepest before the directory it is in: a directory goes when nothing is left in it.
  await inTurns(inOrder.toReversed(), (one) => {
    if (one.kind === "absent") remove(one.path);
  });
  await inTurns(inOrder, (one) => {
    if (one.kind !== "absent") want(one);
  });
  const unnamed = replaceAll ? there.below("").filter(({ path }) => !named.has(path) && !needed.has(path)) : [];
  for (const entry of unnamed) set({ path: entry.path, before: entry, after: undefined });
  return { changes: [...changes.values()].sort((a, b) => comparePaths(a.path, b.path)), skipped };
}

function entryOf(one: Exclude<Wanted, { kind: "absent" }>, before: EntryRecord | undefined, stamp: Stamp): EntryRecord {
  const { path } = one;
  const { version, nowMs } = stamp;
  const common = { path, size: 0, sha256: "", target: "", modifiedAtMs: nowMs, version };
  if (one.kind === "directory") return directoryEntry(path, one.mode, stamp);
  if (one.kind === "symlink") return { ...common, kind: "symlink", mode: LINK_MODE, target: one.target };
  const { size, sha256, modifiedAtMs = nowMs } = one;
  const mode = one.mode ?? (before?.kind === "file" ? before.mode : DEFAULT_FILE);
  return { ...common, kind: "file", mode, size, sha256, modifiedAtMs };
}

function directoryEntry(path: string, mode: number, { version, nowMs }: Stamp): EntryRecord {
  return { path, kind: "directory", mode, size: 0, sha256: "", target: "", modifiedAtMs: nowMs, version };
}

function isSame(a: EntryRecord, b: EntryRecord): boolean {
  return a.kind === b.kind && a.mode === b.mode && a.sha256 === b.sha256 && a.target === b.target;
}

async function inTurns<Item>(items: readonly Item[], work: (item: Item) => void): Promise<void> {
  for (let done = 0; done < items.length; done += ENTRIES_A_TURN) {
    if (done > 0) await setImmediate();
    for (const item of items.slice(done, done + ENTRIES_A_TURN)) work(item);
  }
}

/** A rename of a file, or of a directory with all below it. */
export interface MovePlan {
  readonly changes: readonly PathChange[];
  /** Where each new path comes from. */
  readonly moved: ReadonlyMap<string, string>;
}

/** Nothing may be at the new path; directories on the way to it appear. */
export async function planMove(
  store: Pick<CodebaseMetadata, "entries" | "listEntries">,
  codebaseId: string,
  from: string,
  to: string,
  stamp: Stamp,
): Promise<MovePlan> {
  const ancestors = ancestorsOf(to);
  const [source, target, ...onTheWay] = await store.entries(codebaseId, [from, to, ...ancestors]);
  if (source === undefined) throw fileNotFound(from);
  if (target !== undefined) {
    throw new RuntimeError("FILE_EXISTS", `${shown(to)} exists already`, { details: { path: to } });
  }
  if (ancestors.includes(from)) {
    throw invalid(`${shown(from)} cannot be moved into itself`);
  }
  const blocking = onTheWay.find((entry) => entry !== undefined && entry.kind !== "directory");
  if (blocking !== undefined) {
    const where = `${shown(blocking.path)}, which is a ${blocking.kind}`;
    throw new RuntimeError("FILE_WRONG_KIND", `${shown(to)} cannot be below ${where}`, { details: { path: to } });
  }
  const below =
    source.kind === "directory" ? await store.listEntries(codebaseId, { directory: from, recursive: true }) : [];
  const moved = new Map<string, string>();
  const changes: PathChange[] = ancestors
    .filter((_, index) => onTheWay[index] === undefined)
    .map((path) => ({ path, before: undefined, after: directoryEntry(path, IMPLICIT_DIRECTORY, stamp) }));
  for (const entry of [source, ...below]) {
    const path = to + entry.path.slice(from.length);
    checkPath(path);
    moved.set(path, entry.path);
    changes.push({ path: entry.path, before: entry, after: undefined });
    changes.push({ path, before: undefined, after: { ...entry, path, version: stamp.version } });
  }
  return { changes: changes.sort((a, b) => comparePaths(a.path, b.path)), moved };
}
