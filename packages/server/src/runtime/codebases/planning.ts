import { setImmediate } from "node:timers/promises";
import { invalid, RuntimeError } from "../errors.ts";
import type { CodebaseMetadata, EntryRecord } from "../store/store.ts";
import { ancestorsOf, comparePaths, shown } from "./paths.ts";
import type { PathChange, Wanted } from "./wanted.ts";

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

/** Of a directory that nobody named, on the way to something. */
export const IMPLICIT_DIRECTORY = 0o755;
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
  surroundings: Surroundings,
  stamp: Stamp,
  options: PlanOptions,
): Promise<ChangePlan> {
  return await new Planner(wanted, surroundings, stamp, options).plan();
}

class Planner {
  readonly #wanted: readonly Wanted[];
  readonly #named: ReadonlyMap<string, Wanted>;
  readonly #there: Surroundings;
  readonly #stamp: Stamp;
  readonly #options: PlanOptions;
  readonly #changes = new Map<string, PathChange>();
  readonly #skipped: string[] = [];
  /** Directories that something wanted is in. */
  readonly #needed = new Set<string>();

  constructor(wanted: readonly Wanted[], there: Surroundings, stamp: Stamp, options: PlanOptions) {
    this.#wanted = [...wanted].sort((a, b) => comparePaths(a.path, b.path));
    this.#named = new Map(wanted.map((one) => [one.path, one]));
    this.#there = there;
    this.#stamp = stamp;
    this.#options = options;
  }

  async plan(): Promise<ChangePlan> {
    // What goes first, the deepest before the directory it is in: a directory goes when nothing is left in it.
    await inTurns(this.#wanted.toReversed(), (one) => {
      if (one.kind === "absent") this.#remove(one.path);
    });
    await inTurns(this.#wanted, (one) => {
      if (one.kind !== "absent") this.#want(one);
    });
    if (this.#options.replaceAll) this.#removeUnnamed();
    const changes = [...this.#changes.values()].sort((a, b) => comparePaths(a.path, b.path));
    return { changes, skipped: this.#skipped };
  }

  #remove(path: string): void {
    const entry = this.#there.entry(path);
    if (entry === undefined) return;
    if (entry.kind === "directory" && !this.#empty(path)) return;
    this.#set({ path, before: entry, after: undefined });
  }

  /** All below the directory goes; false when something may not. */
  #empty(directory: string): boolean {
    const below = this.#there.below(directory);
    if (this.#options.onProblem === "skip") {
      const stays = below.find(({ path }) => !this.#isGoing(path));
      if (stays !== undefined) this.#skipped.push(directory);
      return stays === undefined;
    }
    for (const entry of below) this.#set({ path: entry.path, before: entry, after: undefined });
    return true;
  }

  #isGoing(path: string): boolean {
    const change = this.#changes.get(path);
    return change !== undefined && change.after === undefined;
  }

  #want(one: Exclude<Wanted, { kind: "absent" }>): void {
    if (!this.#makeWay(one.path)) return;
    const before = this.#there.entry(one.path);
    const after = this.#entryOf(one, before);
    if (before !== undefined && isSame(before, after)) return;
    if (before?.kind === "directory" && one.kind !== "directory" && !this.#empty(one.path)) return;
    this.#set({ path: one.path, before, after, ...(one.kind === "file" ? { content: one.content } : {}) });
  }

  /** The directories on the way to a path. */
  #makeWay(path: string): boolean {
    for (const directory of ancestorsOf(path)) {
      if (this.#needed.has(directory)) continue;
      const problem = this.#problemOnTheWay(path, directory);
      if (problem !== undefined) {
        if (this.#options.onProblem === "refuse") throw problem;
        this.#skipped.push(path);
        return false;
      }
      this.#needed.add(directory);
      const before = this.#there.entry(directory);
      const isThere = before?.kind === "directory" && !this.#isGoing(directory);
      if (isThere || this.#named.get(directory)?.kind === "directory") continue;
      if (before?.kind === "directory") this.#changes.delete(directory);
      else this.#set({ path: directory, before, after: directoryEntry(directory, IMPLICIT_DIRECTORY, this.#stamp) });
    }
    return true;
  }

  #problemOnTheWay(path: string, directory: string): RuntimeError | undefined {
    const named = this.#named.get(directory);
    if (named !== undefined) {
      if (named.kind === "directory" || (named.kind === "absent" && this.#options.onProblem === "skip"))
        return undefined;
      const what = named.kind === "absent" ? "nothing" : `a ${named.kind}`;
      return invalid(`${shown(path)} cannot be below ${shown(directory)}, which is to be ${what}`);
    }
    const there = this.#there.entry(directory);
    if (there === undefined || there.kind === "directory" || this.#options.replaceAll) return undefined;
    return new RuntimeError(
      "FILE_WRONG_KIND",
      `${shown(path)} cannot be below ${shown(directory)}, which is a ${there.kind}`,
      { details: { path } },
    );
  }

  #removeUnnamed(): void {
    for (const entry of this.#there.below("")) {
      const stays = this.#named.has(entry.path) || this.#needed.has(entry.path);
      if (!stays) this.#set({ path: entry.path, before: entry, after: undefined });
    }
  }

  #set(change: PathChange): void {
    this.#changes.set(change.path, change);
  }

  #entryOf(one: Exclude<Wanted, { kind: "absent" }>, before: EntryRecord | undefined): EntryRecord {
    const { path } = one;
    const { version, nowMs } = this.#stamp;
    const common = { path, size: 0, sha256: "", target: "", modifiedAtMs: nowMs, version };
    if (one.kind === "directory") return directoryEntry(path, one.mode, this.#stamp);
    if (one.kind === "symlink") return { ...common, kind: "symlink", mode: LINK_MODE, target: one.target };
    const { size, sha256, modifiedAtMs = nowMs } = one;
    const mode = one.mode ?? (before?.kind === "file" ? before.mode : DEFAULT_FILE);
    return { ...common, kind: "file", mode, size, sha256, modifiedAtMs };
  }
}

export function directoryEntry(path: string, mode: number, { version, nowMs }: Stamp): EntryRecord {
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
