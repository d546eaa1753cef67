import { expect, test } from "vitest";
import type { StagedEntry } from "../../../src/runtime/codebases/api.ts";
import { conflictsOf, foreignWork, supersededPaths } from "../../../src/runtime/codebases/foreign-work.ts";
import type { EntryRecord, VersionChangeRecord, VersionRecord } from "../../../src/runtime/store/store.ts";

const ME = "sb_me";
const OTHER = "sb_other";

/** A history as it is told: one version after the other, each at its number times a thousand. */
function history(...versions: readonly { by?: string; writes: Readonly<Record<string, string | undefined>> }[]) {
  const state = new Map<string, EntryRecord>();
  const records: VersionRecord[] = [];
  const changes: VersionChangeRecord[] = [];
  for (const [index, { by = "", writes }] of versions.entries()) {
    const version = index + 1;
    for (const [path, sha256] of Object.entries(writes)) {
      const before = state.get(path);
      const after = sha256 === undefined ? undefined : entry(path, sha256, version);
      changes.push({ version, path, before, after, keptAs: "" });
      if (after === undefined) state.delete(path);
      else state.set(path, after);
    }
    const createdAtMs = version * 1000;
    const counts = { filesChanged: 0, size: 0, fileCount: 0, conflicts: [] };
    records.push({ codebaseId: "cb", version, origin: "sync", sandboxId: by, message: "", createdAtMs, ...counts });
  }
  return {
    listVersions: async (_id: string, { before = Infinity, limit }: { before?: number; limit: number }) =>
      records
        .filter(({ version }) => version < before)
        .toReversed()
        .slice(0, limit),
    firstChangesAfter: async (_id: string, version: number, { path }: { path?: string }) => {
      const later = changes.filter((change) => change.version > version && (path ?? change.path) === change.path);
      return [...new Map(later.toReversed().map((change) => [change.path, change])).values()];
    },
  };
}

function entry(path: string, sha256: string, version: number): EntryRecord {
  return { path, kind: "file", mode: 0o644, size: 1, sha256, target: "", modifiedAtMs: 0, version };
}

/** What the sandbox has at a path since a time. */
function mine(path: string, sha256: string | undefined, madeAtMs: number): StagedEntry {
  const common = { path, mode: 0o644, target: "", size: 1, staged: "", madeAtMs };
  return sha256 === undefined ? { ...common, kind: "absent", sha256: "" } : { ...common, kind: "file", sha256 };
}

async function outcome(store: ReturnType<typeof history>, entries: readonly StagedEntry[]) {
  const work = await foreignWork(store, "cb", ME, entries);
  const changes = entries.map(({ path, kind, sha256 }) => ({
    path,
    before: undefined,
    after: kind === "absent" ? undefined : entry(path, sha256, 99),
  }));
  return {
    superseded: [...supersededPaths(entries, work)],
    conflicts: conflictsOf(changes, work).map(({ path, replacedVersion }) => `${path} ${replacedVersion}`),
  };
}

test("nobody else was there: nothing to tell", async () => {
  const store = history({ writes: { a: "1" } }, { by: ME, writes: { a: "2" } });
  expect(await outcome(store, [mine("a", "3", 1500), mine("new", "n", 2500)])).toEqual({
    superseded: [],
    conflicts: [],
  });
});

test("work of others after mine was made is replaced, and told", async () => {
  const store = history({ writes: { a: "1", b: "1" } }, { by: OTHER, writes: { a: "2" } }, { writes: { a: "3" } });
  expect(await outcome(store, [mine("a", "mine", 1500), mine("b", "mine", 1500)])).toEqual({
    superseded: [],
    conflicts: ["a 3"],
  });
  expect(await outcome(store, [mine("a", "mine", 3500)])).toEqual({ superseded: [], conflicts: [] });
});

test("what I have as it was before others changed it is nothing of mine", async () => {
  const store = history(
    { writes: { a: "1", gone: "1" } },
    { by: ME, writes: { mine: "m" } },
    { by: OTHER, writes: { a: "2", gone: undefined, mine: "theirs" } },
  );
  const entries = [mine("a", "1", 1500), mine("gone", "1", 1500), mine("mine", "m", 1500)];
  expect((await outcome(store, entries)).superseded).toEqual(["a", "gone", "mine"]);
  // Going back to what it was, after having seen what it is, is a change.
  expect(await outcome(store, [mine("a", "1", 3500)])).toEqual({ superseded: [], conflicts: [] });
});

test("what others put into a directory that I had deleted stays, and the directory with it", async () => {
  const store = history({ writes: { "d/old": "1" } }, { by: OTHER, writes: { "d/new": "2" } });
  const gone = [mine("d/new", undefined, 1500), mine("d/old", undefined, 1500), mine("d", undefined, 1500)];
  expect((await outcome(store, gone)).superseded.sort()).toEqual(["d", "d/new"]);
  const replaced = [...gone.slice(0, 2), mine("d", "file", 1500)];
  expect(await outcome(store, replaced)).toEqual({ superseded: [], conflicts: ["d/new 2"] });
});
