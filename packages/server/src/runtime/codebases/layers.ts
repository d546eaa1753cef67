import type { PinnedEntry } from "../../isolation/codebase/copying.ts";
import { RuntimeError } from "../runtime-error.ts";
import { KeyedTurns } from "../waiting.ts";
import type { CodebaseLayers, StagedEntry } from "./api.ts";
import { stepsFor } from "./carrying-out.ts";
import { Staging, stageContent, type Wanted } from "./content.ts";
import { conflictsOf, foreignWork, supersededPaths } from "./foreign-work.ts";
import { codebaseNotFound, type Parts, toRuntimeError } from "./parts.ts";
import { isPath, targetProblem } from "./paths.ts";
import { loadSurroundings, planChanges } from "./planning.ts";
import { resolveVersion } from "./snapshots.ts";

const STAGED_NAME = /^[0-9A-Za-z_-][0-9A-Za-z._-]{0,200}$/;

/** What sandboxes have of codebases: a directory to look at, and a way to write back. */
export function codebaseLayers({ store, disk, changer, snapshots }: Parts): CodebaseLayers {
  const pins = new Map<string, { readonly directory: string; users: number }>();
  const pinning = new KeyedTurns();

  async function pinned(codebaseId: string, version: number): Promise<string> {
    return await changer.turn(codebaseId, async ({ record }) => {
      const resolved = resolveVersion(record, version);
      const { entries, keptAs } = await snapshots.listNow(codebaseId, resolved, { directory: "", recursive: true });
      const laid = entries.map((entry): PinnedEntry => {
        const { kind, path, mode, target } = entry;
        if (kind === "directory") return { kind, path, mode };
        if (kind === "symlink") return { kind, path, target };
        const kept = keptAs.get(path);
        return { kind, path, mode, from: kept === undefined ? { in: "tree", path } : { in: "kept", path: kept } };
      });
      return await disk.pin(codebaseId, resolved, laid);
    });
  }

  async function letGo(key: string, codebaseId: string, version: number): Promise<void> {
    const pin = pins.get(key);
    if (pin === undefined) return;
    pin.users -= 1;
    if (pin.users > 0) return;
    pins.delete(key);
    await disk.unpin(codebaseId, version).catch((error: unknown) => {
      throw toRuntimeError(error);
    });
  }

  return {
    direct: () => undefined,
    onChange: (listener) => changer.onChange(listener),

    async open(codebaseId, version) {
      if ((await store.codebase(codebaseId)) === undefined) throw codebaseNotFound();
      if (version === 0) return { directory: disk.treeDirectory(codebaseId), release: async () => {} };
      const key = `${codebaseId}/${version}`;
      return await pinning.take(key, async () => {
        const pin = pins.get(key) ?? { directory: await pinned(codebaseId, version), users: 0 };
        pins.set(key, pin);
        pin.users += 1;
        let isHeld = true;
        const release = async (): Promise<void> => {
          if (!isHeld) return;
          isHeld = false;
          await pinning.take(key, () => letGo(key, codebaseId, version));
        };
        return { directory: pin.directory, release };
      });
    },

    async sync(codebaseId, sandboxId, collect) {
      let fault: { readonly error: unknown } | undefined;
      try {
        return await changer.turn(codebaseId, async (turn) => {
          await using staging = new Staging(disk, codebaseId);
          const collected = await collect(staging.makeDirectory()).catch((error: unknown) => {
            fault = { error };
            throw error;
          });
          if (collected.length === 0) return undefined;
          const entries = collected.map((entry) => ({ ...entry, path: entry.path.replace(/^\//, "") }));
          await checkStaged(staging, entries);
          const storable = entries.filter(isStorable);
          const unstorable = entries.filter((entry) => !isStorable(entry)).map(({ path }) => path);
          const work = await foreignWork(store, codebaseId, sandboxId, storable);
          const superseded = supersededPaths(storable, work);
          const wanted = storable.filter(({ path }) => !superseded.has(path)).map(wantedOf);
          const surroundings = await loadSurroundings(store, codebaseId, wanted, { everything: false });
          const plan = await planChanges(wanted, surroundings, turn.stamp, { replaceAll: false, onProblem: "skip" });
          const { changes } = plan;
          const skipped = [...unstorable, ...plan.skipped];
          const left = { skipped, superseded: [...superseded] };
          if (changes.length === 0) {
            return skipped.length + superseded.size === 0 ? undefined : { version: 0, conflicts: [], ...left };
          }
          const staged = await stageContent(store, codebaseId, staging, changes);
          const conflicts = conflictsOf(changes, work);
          const carried = stepsFor(changes, turn.stamp.version, staged);
          const origin = { origin: "sync", message: "", sandboxId } as const;
          const { version } = await turn.commit(staging, carried, origin, conflicts);
          return { version, conflicts, ...left };
        });
      } catch (error) {
        throw fault === undefined ? error : fault.error;
      }
    },
  };
}

/** A name or target that the manifest has no text for stays in the sandbox. */
function isStorable({ path, kind, target }: StagedEntry): boolean {
  return isPath(path) && (kind !== "symlink" || targetProblem(target) === undefined);
}

function wantedOf(entry: StagedEntry): Wanted {
  const { path, kind, target, size, sha256, staged } = entry;
  const mode = entry.mode & 0o777;
  if (kind === "absent") return { kind, path };
  if (kind === "symlink") return { kind, path, target };
  if (kind === "directory") return { kind, path, mode };
  return { kind, path, mode, size, sha256, content: { at: "staged", name: staged } };
}

async function checkStaged(staging: Staging, entries: readonly StagedEntry[]): Promise<void> {
  const files = entries.filter(({ kind }) => kind === "file").map(({ staged: name, size }) => ({ name, size }));
  const isWrong =
    files.some(({ name }) => !STAGED_NAME.test(name)) ||
    new Set(files.map(({ name }) => name)).size !== files.length ||
    (files.length > 0 && (await staging.inspect(files)).length > 0);
  if (isWrong) throw new RuntimeError("INTERNAL", "what was collected for the sync is not what was announced");
}
