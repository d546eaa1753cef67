import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { compileRules, LEVEL, type Rule } from "@agentfense/permission";
import { literals } from "../../isolation/changes/binary-patch.ts";
import type { CollectedChange as RawCollectedChange } from "../../isolation/changes/collect.ts";
import { isRefusedByGit, type FileDiff as RawDiff, renameText } from "../../isolation/changes/diff.ts";
import type { Change } from "../../isolation/changes/list.ts";
import { foldChanges, type ListedChange } from "../../isolation/changes/list.ts";
import { homeIn, WORK_OF_HOME } from "../../isolation/filesystem/delta.ts";
import { BENEATH } from "../../isolation/filesystem/freezing.ts";
import { encodeText, namesOf } from "../../isolation/filesystem/names.ts";
import { removeTree } from "../../isolation/filesystem/remove-tree.ts";
import type { SettledEntry } from "../../isolation/filesystem/settlement.ts";
import type { JobInput } from "../../isolation/jobs/jobs.ts";
import type { Jobs } from "../../isolation/jobs/thread.ts";
import type { StagedEntry } from "../codebases/api.ts";
import { isLayerName } from "../ids.ts";
import { RuntimeError } from "../runtime-error.ts";
import type { FileDiff, SandboxChange } from "./api.ts";
import { EmptyDeltas } from "./parts.ts";
import { translating } from "./refusals.ts";

export { BENEATH };

/** Where snapshots keep what they froze. */
export function layersDirectory(deltaDirectory: string): string {
  return join(deltaDirectory, "layers");
}

/** Directories of what a delta lies on, top first. */
export async function layersBeneath(
  delta: string,
  directory = layersDirectory(dirname(delta)),
): Promise<readonly string[]> {
  try {
    const names = await readFile(join(delta, BENEATH), "utf8");
    return names
      .split("\n")
      .filter(isLayerName)
      .map((name) => join(directory, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** A delta, and the codebase it changes. */
export interface DeltaPlace {
  readonly delta: string;
  readonly lower: string;
  /** Those in force now, whatever they were when the delta was made. */
  readonly rules: readonly Rule[];
  /** Only these, each with all below it ("/src/a.ts"). One without a change is FILE_NOT_FOUND. */
  readonly paths?: readonly string[];
  /** For what is written: see ApplicationOptions. */
  readonly holdsSensitive?: boolean;
}

/** One change on its way into the codebase. */
export interface CollectedChange {
  readonly change: SandboxChange;
  /** Absent: it may not be written, and `reason` says why. */
  readonly staged?: StagedEntry;
  readonly reason: string;
  /** The sandbox has only what others replaced meanwhile: not written, and no fault of anybody's. */
  readonly superseded?: true;
}

export interface Collection {
  readonly changes: readonly CollectedChange[];
  /** What may leave the delta once the codebase has it, entries that change nothing included. */
  readonly settled: readonly SettledEntry[];
}

export interface DirectCollection extends Collection {
  /** "/src/a.ts": there the codebase's file had changed after the sandbox made its own version. */
  readonly overwritten: readonly string[];
}

/** So many are asked for in one go; an answer has fewer when they are long. */
const DIFFS_AT_ONCE = 1000;

export type DeltaWork = ReturnType<typeof deltaWork>;

/**
 * What is done with deltas beside their mounts. It takes as long as they are large, so the job threads do it, and none of it is
 * done on the API thread.
 */
export function deltaWork(jobs: Jobs) {
  const empty = new EmptyDeltas();
  const found = async (
    { delta, lower, rules, paths }: DeltaPlace,
    signal?: AbortSignal,
    ignores = false,
  ): Promise<readonly Change[]> => {
    const beneath = await layersBeneath(delta);
    const spec = { delta, beneath, lowers: [lower], rules, paths, renames: true, ignores };
    const changes = await translating(jobs.run("listChanges", spec, { signal }));
    requireAll(paths, changes);
    return changes;
  };
  const list = async (place: DeltaPlace, signal?: AbortSignal): Promise<readonly SandboxChange[]> =>
    (await found(place, signal)).map(shownChange).sort((a, b) => (a.path < b.path ? -1 : 1));

  return {
    list,

    /** The same for people, see foldChanges. */
    listFolded: async (place: DeltaPlace): Promise<readonly SandboxChange[]> =>
      foldChanges(await found(place, undefined, true)).map(shownChange),

    /**
     * Copies what may be written to `staging`. Without one it only tells what it would do, and what may leave the delta is
     * what changes nothing.
     */
    async collect(
      { staging, ...place }: DeltaPlace & { readonly staging?: string },
      signal?: AbortSignal,
    ): Promise<Collection> {
      if (place.paths !== undefined) await list(place, signal);
      const spec = { ...place, staging, beneath: await layersBeneath(place.delta) };
      const { changes, settled } = await translating(jobs.run("collectChanges", spec, { signal }));
      const isReady = new Set(changes.filter(({ ready }) => ready).map(({ change }) => change.path));
      return {
        changes: changes.map(collectedChange),
        settled: staging === undefined ? settled.filter(({ path }) => !isReady.has(path)) : settled,
      };
    },

    /** Writes what may be written straight to the codebase, a directory of the host. Not to be cut short, so without a signal. */
    async write(place: DeltaPlace & { readonly dryRun: boolean }): Promise<DirectCollection> {
      if (place.paths !== undefined) await list(place);
      const spec = { ...place, beneath: await layersBeneath(place.delta) };
      const { changes, settled, overwritten } = await translating(jobs.run("writeChanges", spec));
      return { changes: changes.map(collectedChange), settled, overwritten };
    },

    /** `patch`: what git apply takes, see DiffSpec. */
    async *diff(
      { patch, ...place }: DeltaPlace & { readonly patch: boolean },
      signal?: AbortSignal,
    ): AsyncGenerator<FileDiff> {
      const spec = { delta: place.delta, beneath: await layersBeneath(place.delta), lowers: [place.lower] };
      const policy = compileRules(place.rules);
      // In the order of the walk that finds them, so that each answer has the first of those that are missing.
      const changes = (await found(place, signal)).map((change) => ({ change, order: walkOrder(change.path) }));
      changes.sort((a, b) => Buffer.compare(a.order, b.order));
      const diffs = new Map<string, RawDiff>();
      for (const [at, { change }] of changes.entries()) {
        const { kind, path } = change;
        // The content of what is only listed is nobody's to see; a change there was made under other rules.
        const isShown = kind !== "renamed" && policy.decide(path).level >= LEVEL.read;
        if (isShown && !diffs.has(path)) {
          const paths = changes.slice(at, at + DIFFS_AT_ONCE).map((next) => next.change.path);
          const answer = await translating(jobs.run("diffChanges", { ...spec, paths, patch }, { signal }));
          diffs.clear();
          for (const diff of answer.diffs) diffs.set(diff.path, diff);
        }
        const raw = isShown ? diffs.get(path) : undefined;
        diffs.delete(path);
        const shown = shownChange(change);
        const binary = raw?.shows === "binary" || raw?.shows === "too-large";
        const text = kind === "renamed" ? renamed(change, patch) : isOnlyDirectory(raw) ? "" : (raw?.text ?? "");
        yield { change: shown, binary, unified: text, more: raw?.content !== undefined };
        if (raw?.content === undefined) continue;
        const pieces = literals(raw.content, (file, offset) =>
          translating(jobs.run("deflatePiece", { ...spec, file, offset }, { signal })),
        );
        for await (const piece of pieces) yield { change: shown, binary, unified: piece, more: true };
        yield { change: shown, binary, unified: "", more: false };
      }
    },

    /** Settles the delta of a sandbox that does not run; one that does settles and discards itself. */
    async settle(
      { delta, lower }: Pick<DeltaPlace, "delta" | "lower">,
      entries: readonly SettledEntry[],
    ): Promise<void> {
      await translating(jobs.run("settleChanges", { delta, lowers: [lower], entries }));
    },

    async discard(delta: string, paths: readonly string[] | undefined): Promise<readonly string[]> {
      const { failed } = await translating(
        jobs.run("discardChanges", { delta, ...(paths === undefined ? {} : { paths }) }),
      );
      return failed.map(({ path }) => path);
    },

    /** Nothing was changed, seen at a glance; false when it takes more than that. */
    isEmpty: async (delta: string) => (await empty.has(delta)) && (await layersBeneath(delta)).length === 0,

    /** Nothing came since it was laid on what is beneath it, in the home neither. */
    hasNothing: async (delta: string) => (await empty.has(delta)) && (await isEmptyHome(delta)),

    /** Of a sandbox that does not run; one that does freezes itself. */
    freeze: (spec: JobInput<"freezeIdle">) => translating(jobs.run("freezeIdle", spec)),

    measureLayer: (delta: string) => jobs.run("measureLayer", { delta }),

    /** Bytes in it. */
    measure: (delta: string) => jobs.run("measureDelta", { delta }),
    // Most sandboxes change nothing: what they leave is not worth a way to another thread.
    async remove(delta: string): Promise<void> {
      const isEmpty = await empty.has(delta);
      empty.forget(delta);
      if (isEmpty) await removeTree(delta);
      else await jobs.run("removeDelta", { delta });
    },
  };
}

async function isEmptyHome(delta: string): Promise<boolean> {
  const names = await readdir(homeIn(delta)).catch(() => []);
  return names.every((name) => name === WORK_OF_HOME);
}

function collectedChange({ change, ready, entry, reason }: RawCollectedChange): CollectedChange {
  return {
    change: shownChange(change),
    reason,
    ...(ready && entry !== undefined ? { staged: { ...entry, path: change.path.slice(1) } } : {}),
  };
}

/** Whether there is nothing to compare: so it is with a directory, unless it was something else. */
function isOnlyDirectory(diff: RawDiff | undefined): boolean {
  return diff?.type === "directory" && diff.oldType === undefined;
}

function renamed({ path, oldPath = "", modes = [0, 0] }: Change, patch: boolean): string {
  const isRefused = patch && [path, oldPath].some((each) => isRefusedByGit(namesOf(each) ?? [], false));
  return isRefused ? "" : renameText(path, oldPath, modes);
}

/** Names compare as bytes, directory by directory: what separates them comes before any other byte. */
function walkOrder(path: string): Buffer {
  return encodeText(path.replaceAll("/", "\0"));
}

function shownChange({ kind, path, oldPath = "", type, size, sensitive, folded }: ListedChange): SandboxChange {
  return { kind, path, oldPath, type, size, sensitive, ...(folded && { folded }) };
}

/** A path that the rules hide has no change as far as the caller can tell. */
function requireAll(paths: readonly string[] | undefined, changes: readonly Change[]): void {
  if (paths === undefined) return;
  const met = new Set<string>(changes.length === 0 ? [] : ["/"]);
  for (const { path, oldPath = "" } of changes) {
    for (let at = path; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) met.add(at);
    for (let at = oldPath; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) met.add(at);
  }
  const unmet = paths.find((path) => !met.has(path));
  if (unmet !== undefined) throw new RuntimeError("FILE_NOT_FOUND", `the sandbox changes nothing at ${unmet}`);
}
