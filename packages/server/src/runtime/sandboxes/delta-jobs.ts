import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { compileRules, LEVEL, type Policy } from "@agentfense/permission";
import type { CollectedChange as RawCollectedChange } from "../../isolation/changes/collect.ts";
import type { Change } from "../../isolation/changes/list.ts";
import { removeTree } from "../../isolation/filesystem/remove-tree.ts";
import type { Jobs } from "../../isolation/jobs/thread.ts";
import { RuntimeError } from "../errors.ts";
import type { FileDiff, SandboxChange } from "./api.ts";
import type { CollectedChange, DeltaWork } from "./delta-work.ts";
import { translating } from "./errors.ts";

/** Files that are compared in one go. */
const DIFFS_AT_ONCE = 32;

/** The work on deltas, done by the job threads. */
export function deltaWork(jobs: Jobs): DeltaWork {
  const list: DeltaWork["list"] = async (place, signal) => {
    const { delta, lower, rules, paths } = place;
    const changes = await translating(
      jobs.run("listChanges", { delta, lowers: [lower], rules, paths, renames: true }, signalled(signal)),
    );
    const shown = changes.map(shownChange).sort((a, b) => (a.path < b.path ? -1 : 1));
    requireAll(paths, shown);
    return shown;
  };

  return {
    list,

    async collect({ staging, ...place }, signal) {
      if (place.paths !== undefined) await list(place, signal);
      const { changes, settled } = await translating(
        jobs.run("collectChanges", { ...place, staging }, signalled(signal)),
      );
      const isReady = new Set(changes.filter(({ ready }) => ready).map(({ change }) => change.path));
      return {
        changes: changes.map(collectedChange),
        settled: staging === undefined ? settled.filter(({ path }) => !isReady.has(path)) : settled,
      };
    },

    async write(place) {
      if (place.paths !== undefined) await list(place);
      const { changes, settled, overwritten } = await translating(jobs.run("writeChanges", place));
      return { changes: changes.map(collectedChange), settled, overwritten };
    },

    async *diff(place, signal) {
      const { delta, lower } = place;
      const changes = await list(place, signal);
      const policy = compileRules(place.rules);
      for (let at = 0; at < changes.length; at += DIFFS_AT_ONCE) {
        const slice = changes.slice(at, at + DIFFS_AT_ONCE);
        const paths = slice
          .filter(isCompared)
          .flatMap(({ path, oldPath }) => (oldPath === "" ? [path] : [path, oldPath]));
        const diffs = await translating(
          paths.length === 0
            ? Promise.resolve([])
            : jobs.run("diffChanges", { delta, lowers: [lower], paths }, signalled(signal)),
        );
        const byPath = new Map(diffs.map((diff) => [diff.path, diff]));
        for (const change of slice) yield diffOf(change, byPath, policy);
      }
    },

    async settle({ delta, lower }, entries) {
      await translating(jobs.run("settleChanges", { delta, lowers: [lower], entries }));
    },

    async discard(delta, paths) {
      const { failed } = await translating(
        jobs.run("discardChanges", { delta, ...(paths === undefined ? {} : { paths }) }),
      );
      return failed.map(({ path }) => path);
    },

    isEmpty,

    measure: (delta) => jobs.run("measureDelta", { delta }),
    // Most sandboxes change nothing: what they leave is not worth a way to another thread.
    remove: async (delta) =>
      (await isEmpty(delta)) ? await removeTree(delta) : await jobs.run("removeDelta", { delta }),
  };
}

async function isEmpty(delta: string): Promise<boolean> {
  try {
    // Not `await using`: a directory of Node 24.0 cannot be disposed of.
    const directory = await opendir(join(delta, "tree"), { bufferSize: 1 });
    try {
      return (await directory.read()) === null;
    } finally {
      await directory.close();
    }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

function collectedChange({ change, ready, entry, reason, sensitive }: RawCollectedChange): CollectedChange {
  return {
    change: shownChange(change),
    reason,
    sensitive,
    ...(ready && entry !== undefined ? { staged: { ...entry, path: change.path.slice(1) } } : {}),
  };
}

/** A file or a link: everything else has no text to compare. */
function isCompared({ type }: SandboxChange): boolean {
  return type === "file" || type === "symlink";
}

type RawDiff = { readonly kind: string; readonly text: string; readonly shows: string };

/** The two halves of a rename are shown one after the other. */
function diffOf(change: SandboxChange, byPath: ReadonlyMap<string, RawDiff>, policy: Policy): FileDiff {
  const halves = [change.oldPath, change.path].flatMap((path) => (path === "" ? [] : (byPath.get(path) ?? [])));
  // The content of what is only listed is nobody's to see; a change there was made under other rules.
  const readable = policy.decide(change.path).level >= LEVEL.read;
  const binary = halves.some(({ shows }) => shows === "binary" || shows === "too-large");
  return { change, binary, unified: binary || !readable ? "" : halves.map(({ text }) => text).join("") };
}

function shownChange({ kind, path, oldPath = "", type, size }: Change): SandboxChange {
  return { kind, path, oldPath, type, size };
}

/** A path that the rules hide has no change as far as the caller can tell. */
function requireAll(paths: readonly string[] | undefined, changes: readonly SandboxChange[]): void {
  if (paths === undefined) return;
  const met = new Set<string>(changes.length === 0 ? [] : ["/"]);
  for (const { path, oldPath } of changes) {
    for (let at = path; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) met.add(at);
    for (let at = oldPath; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) met.add(at);
  }
  const unmet = paths.find((path) => !met.has(path));
  if (unmet !== undefined) throw new RuntimeError("FILE_NOT_FOUND", `the sandbox changes nothing at ${unmet}`);
}

function signalled(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
