import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { chainHash, GENESIS } from "../../../src/runtime/store/event-chain.ts";
import type { EntryRecord, MetadataStore } from "../../../src/runtime/store/store.ts";
import { codebase, directory, event, file, journal, key, sandbox, secret, session } from "./records.ts";

/** What every store promises. `open` gives an empty one. */
export function describeStore(name: string, open: () => Promise<MetadataStore>): void {
  let store: MetadataStore;

  beforeEach(async () => {
    store = await open();
    onTestFinished(() => store[Symbol.asyncDispose]());
  });

  describe(`${name}: codebases`, () => {
    test("a codebase is found by its id as it was inserted, and only once", async () => {
      const record = codebase({ id: "cb_1", name: "übung \u{1f600}", size: 7, fileCount: 2, version: 3 });
      await store.insertCodebase(record);
      expect(await store.codebase("cb_1")).toEqual(record);
      expect(await store.codebase("cb_2")).toBeUndefined();
      await expect(store.insertCodebase(record)).rejects.toThrow();
    });

    test("sizes and times are whole numbers as large as JavaScript has them", async () => {
      const most = Number.MAX_SAFE_INTEGER;
      const record = codebase({ id: "cb_1", size: most, fileCount: most, createdAtMs: most, updatedAtMs: most });
      await store.insertCodebase(record);
      expect(await store.codebase("cb_1")).toEqual(record);
      expect(await store.ownerUsage("ann")).toMatchObject({ bytes: most, files: most });
    });

    test("lists are in the order of age, page by page, for one owner or for all", async () => {
      const records = [
        codebase({ id: "cb_b", createdAtMs: 2000 }),
        codebase({ id: "cb_a", createdAtMs: 2000 }),
        codebase({ id: "cb_z", createdAtMs: 1000, ownerId: "ben" }),
        codebase({ id: "cb_c", createdAtMs: 3000 }),
      ];
      for (const record of records) await store.insertCodebase(record);
      const ids = async (query: Parameters<MetadataStore["listCodebases"]>[0]): Promise<string[]> =>
        (await store.listCodebases(query)).map(({ id }) => id);
      expect(await ids({ limit: 10 })).toEqual(["cb_z", "cb_a", "cb_b", "cb_c"]);
      expect(await ids({ limit: 2 })).toEqual(["cb_z", "cb_a"]);
      expect(await ids({ limit: 2, after: [2000, "cb_a"] })).toEqual(["cb_b", "cb_c"]);
      expect(await ids({ limit: 10, ownerId: "ann", after: [2000, "cb_b"] })).toEqual(["cb_c"]);
      expect(await ids({ limit: 10, ownerId: "ben" })).toEqual(["cb_z"]);
    });

    test("what an owner has is the sum over the codebases", async () => {
      await store.insertCodebase(codebase({ id: "cb_1", size: 5, fileCount: 1 }));
      await store.insertCodebase(codebase({ id: "cb_2", size: 7, fileCount: 2 }));
      await store.insertCodebase(codebase({ id: "cb_3", size: 11, fileCount: 3, ownerId: "ben" }));
      expect(await store.ownerUsage("ann")).toEqual({ codebases: 2, bytes: 12, files: 3, directories: 0 });
      expect(await store.ownerUsage("nobody")).toEqual({ codebases: 0, bytes: 0, files: 0, directories: 0 });
    });

    test("deleting a codebase takes its manifest, versions and journal along, and nothing of others", async () => {
      for (const id of ["cb_1", "cb_2"]) {
        await store.insertCodebase(codebase({ id }));
        await store.beginChange(journal(id, 1, [{ path: "a", before: undefined, after: file("a") }]));
        await store.finishChange(id);
        await store.settleChange(id);
        await store.beginChange(journal(id, 2, []));
      }
      await store.deleteCodebase("cb_1");
      expect(await store.entry("cb_1", "a")).toBeUndefined();
      expect(await store.version("cb_1", 1)).toBeUndefined();
      expect(await store.changesOf("cb_1", 1)).toEqual([]);
      expect((await store.unsettledChanges()).map(({ codebaseId }) => codebaseId)).toEqual(["cb_2"]);
      expect(await store.entry("cb_2", "a")).toEqual(file("a"));
      await store.deleteCodebase("cb_1");
    });
  });

  describe(`${name}: the manifest`, () => {
    const paths = ["a", "a-b", "a.txt", "a/b", "a/b/c", "a/é", "a/\u{1f600}", "a/\uffee", "a0", "é"];

    async function withEntries(entries: readonly EntryRecord[]): Promise<void> {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const changes = entries.map((after) => ({ path: after.path, before: undefined, after }));
      await store.beginChange(journal("cb_1", 1, changes));
      await store.finishChange("cb_1");
      await store.settleChange("cb_1");
    }

    const listed = async (query: Parameters<MetadataStore["listEntries"]>[1]): Promise<string[]> =>
      (await store.listEntries("cb_1", query)).map(({ path }) => path);

    test("children of a directory come in the byte order of UTF-8, without grandchildren and look-alikes", async () => {
      await withEntries(paths.map((path) => file(path)));
      expect(await listed({ directory: "", recursive: false })).toEqual(["a", "a-b", "a.txt", "a0", "é"]);
      expect(await listed({ directory: "a", recursive: false })).toEqual(["a/b", "a/é", "a/\uffee", "a/\u{1f600}"]);
      expect(await listed({ directory: "a", recursive: false, after: "a/b", limit: 2 })).toEqual(["a/é", "a/\uffee"]);
      expect(await listed({ directory: "nowhere", recursive: false })).toEqual([]);
    });

    test("all below a directory come in the byte order of their paths", async () => {
      await withEntries(paths.map((path) => file(path)));
      const sorted = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(await listed({ directory: "", recursive: true })).toEqual(sorted);
      expect(await listed({ directory: "", recursive: true, after: "a/é", limit: 2 })).toEqual([
        "a/\uffee",
        "a/\u{1f600}",
      ]);
      const below = ["a/b", "a/b/c", "a/é", "a/\uffee", "a/\u{1f600}"];
      expect(await listed({ directory: "a", recursive: true })).toEqual(below);
      expect(await listed({ directory: "a", recursive: true, after: "a" })).toEqual(below);
      expect(await listed({ directory: "a", recursive: true, after: "a/b", limit: 1 })).toEqual(["a/b/c"]);
    });

    test("several entries are found in the order asked for", async () => {
      await withEntries([file("a"), directory("d")]);
      expect(await store.entries("cb_1", ["d", "no", "a"])).toEqual([directory("d"), undefined, file("a")]);
      expect(await store.entries("cb_9", ["a"])).toEqual([undefined]);
    });

    test("content is found by its hash, and what has none is not", async () => {
      const hash = "0f".repeat(32);
      await withEntries([file("b", { sha256: hash }), file("c", { sha256: hash }), directory("d")]);
      const found = await store.entriesByHash("cb_1", [hash, "", "ff".repeat(32)]);
      expect([...found]).toEqual([[hash, file("b", { sha256: hash })]]);
    });
  });

  describe(`${name}: changes`, () => {
    test("a change counts when it is finished, and its journal is there until it is settled", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const link = file("l", { kind: "symlink", mode: 0o777, size: 0, target: "a" });
      const first = journal("cb_1", 1, [
        { path: "a", before: undefined, after: file("a", { size: 10 }) },
        { path: "d", before: undefined, after: directory("d") },
        { path: "l", before: undefined, after: link },
      ]);
      await store.beginChange(first);
      expect(await store.entry("cb_1", "a")).toBeUndefined();
      expect(await store.unsettledChanges()).toEqual([first]);
      await expect(store.beginChange(first)).rejects.toThrow("unsettled change");
      await store.settleChange("cb_1");
      expect(await store.unsettledChanges()).toEqual([first]);

      const changed = codebase({ id: "cb_1", size: 10, fileCount: 2, version: 1, updatedAtMs: 1001 });
      expect(await store.finishChange("cb_1")).toEqual(changed);
      expect(await store.codebase("cb_1")).toEqual(changed);
      expect(await store.unsettledChanges()).toEqual([first]);
      await expect(store.finishChange("cb_1")).rejects.toThrow("no unfinished change");
      await expect(store.beginChange(journal("cb_1", 2, []))).rejects.toThrow("unsettled change");
      await store.settleChange("cb_1");
      await store.settleChange("cb_1");
      expect(await store.unsettledChanges()).toEqual([]);
      expect(await store.entry("cb_1", "l")).toEqual(link);
      expect(await store.version("cb_1", 1)).toEqual(first.version);
      expect(await store.changesOf("cb_1", 1)).toEqual(first.changes);
      await expect(store.finishChange("cb_1")).rejects.toThrow("no unfinished change");
    });

    test("replacing and deleting keep the counters right", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const old = { a: file("a", { size: 10 }), b: file("b", { size: 5 }) };
      await store.beginChange(
        journal("cb_1", 1, [
          { path: "a", before: undefined, after: old.a },
          { path: "b", before: undefined, after: old.b },
        ]),
      );
      await store.finishChange("cb_1");
      await store.settleChange("cb_1");
      const bigger = file("a", { size: 17, version: 2 });
      const second = journal("cb_1", 2, [
        { path: "a", before: old.a, after: bigger },
        { path: "b", before: old.b, after: undefined },
      ]);
      await store.beginChange(second);
      expect(await store.finishChange("cb_1")).toMatchObject({ size: 17, fileCount: 1, version: 2 });
      expect(await store.entries("cb_1", ["a", "b"])).toEqual([bigger, undefined]);
      expect(await store.changesOf("cb_1", 2)).toEqual(second.changes);
    });

    test("what cannot be finished changes nothing at all", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const twice = { path: "a", before: undefined, after: file("a") };
      await store.beginChange(journal("cb_1", 1, [twice, twice]));
      await expect(store.finishChange("cb_1")).rejects.toThrow();
      expect(await store.entry("cb_1", "a")).toBeUndefined();
      expect(await store.codebase("cb_1")).toEqual(codebase({ id: "cb_1" }));
      expect(await store.unsettledChanges()).toHaveLength(1);
      await expect(store.beginChange(journal("cb_2", 1, []))).rejects.toThrow("no codebase");
    });

    test("versions are listed from the newest back, with their conflicts", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const conflicts = [{ path: "a", replacedVersion: 2, replacedSandboxId: "sb_2" }];
      for (const version of [1, 2, 3]) {
        const change = journal("cb_1", version, []);
        await store.beginChange({
          ...change,
          version: {
            ...change.version,
            origin: "sync",
            sandboxId: `sb_${version}`,
            conflicts: version === 3 ? conflicts : [],
          },
        });
        await store.finishChange("cb_1");
        await store.settleChange("cb_1");
      }
      const versions = await store.listVersions("cb_1", { limit: 2 });
      expect(versions.map(({ version }) => version)).toEqual([3, 2]);
      expect(versions[0]?.conflicts).toEqual(conflicts);
      expect((await store.listVersions("cb_1", { before: 2, limit: 5 })).map(({ sandboxId }) => sandboxId)).toEqual([
        "sb_1",
      ]);
      expect(await store.version("cb_1", 4)).toBeUndefined();
    });

    test("what a path was at a version is in its first change after it", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const at = (path: string, version: number): EntryRecord => file(path, { version });
      const steps = [
        [{ path: "d/a", before: undefined, after: at("d/a", 1) }],
        [{ path: "d/a", before: at("d/a", 1), after: at("d/a", 2) }],
        [
          { path: "d/a", before: at("d/a", 2), after: undefined },
          { path: "d0", before: undefined, after: at("d0", 3) },
        ],
      ];
      for (const [i, changes] of steps.entries()) {
        await store.beginChange(journal("cb_1", i + 1, changes));
        await store.finishChange("cb_1");
        await store.settleChange("cb_1");
      }
      const all = await store.firstChangesAfter("cb_1", 1, {});
      expect(all.map(({ path, version, before }) => [path, version, before?.version])).toEqual([
        ["d/a", 2, 1],
        ["d0", 3, undefined],
      ]);
      expect(await store.firstChangesAfter("cb_1", 2, { path: "d/a" })).toEqual([
        { version: 3, path: "d/a", before: at("d/a", 2), after: undefined, keptAs: "kept-3" },
      ]);
      expect((await store.firstChangesAfter("cb_1", 0, { directory: "d" })).map(({ path }) => path)).toEqual(["d/a"]);
      expect(await store.firstChangesAfter("cb_1", 0, { directory: "" })).toHaveLength(2);
      expect(await store.firstChangesAfter("cb_1", 3, {})).toEqual([]);
    });
  });

  describe(`${name}: texts`, () => {
    const odd = "\u0000a\u0001\u0000\u0001\u0002 \\ ' \" {,} NULL %_ \u{1f600}\r\n";

    test("every text comes back as it was, also what a database has no character for", async () => {
      const record = codebase({ id: `cb_${odd}`, name: odd, ownerId: odd });
      await store.insertCodebase(record);
      expect(await store.codebase(record.id)).toEqual(record);
      expect(await store.listCodebases({ ownerId: odd, limit: 2 })).toEqual([record]);

      const conflicts = [{ path: odd, replacedVersion: 1, replacedSandboxId: odd }];
      const made = { ...file(odd), target: odd };
      const change = journal(record.id, 1, [{ path: odd, before: undefined, after: made }]);
      const begun = { ...change, version: { ...change.version, message: odd, sandboxId: odd, conflicts }, plan: [odd] };
      await store.beginChange(begun);
      expect(await store.unsettledChanges()).toEqual([begun]);
      await store.finishChange(record.id);
      expect(await store.version(record.id, 1)).toEqual(begun.version);
      expect(await store.changesOf(record.id, 1)).toEqual(begun.changes);
      expect(await store.firstChangesAfter(record.id, 0, { path: odd })).toEqual(begun.changes);
      expect(await store.entries(record.id, [odd])).toEqual([made]);

      const labels = { [odd]: odd, other: "" };
      const box = sandbox({ id: odd, codebaseId: record.id, labels, env: { A: odd }, home: odd, statusReason: odd });
      expect(await store.insertSandbox(box, 1)).toBe(true);
      expect(await store.listSandboxes({ labels: { [odd]: odd } })).toEqual([box]);
      expect(await store.updateSandbox(odd, { statusReason: `${odd}!` })).toEqual({ ...box, statusReason: `${odd}!` });
      const opened = session({ id: "se_1", sandboxId: odd, shell: odd });
      await store.insertSession(opened);
      await store.closeSession("se_1", 5000, odd);
      const closed = { ...opened, status: "CLOSED", closedAtMs: 5000, closeReason: odd };
      expect(await store.listSessions(odd)).toEqual([closed]);

      await store.insertKey(key({ id: "key_1", ownerId: odd, name: odd }));
      expect(await store.listKeys()).toEqual([key({ id: "key_1", ownerId: odd, name: odd })]);
      const kept = secret({ ownerId: odd, name: odd, place: odd, hosts: [odd], sealed: odd });
      expect(await store.putSecret(kept, 1)).toEqual(kept);
      expect(await store.listSecrets(odd)).toEqual([kept]);
      const [stored] = await store.appendEvents([event({ type: odd, ownerId: odd, data: { [odd]: odd } })]);
      expect(await store.listEvents({ types: [odd, "other"], ownerId: odd, limit: 5 })).toEqual([stored]);
    });

    test("texts are in the order of their bytes, whatever is in them", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const paths = [
        "",
        "\u0000",
        "\u0000\u0000",
        "\u0000\u0001",
        "\u0001",
        "\u0001\u0000",
        "\u0002",
        " ",
        "-",
        ".",
        "A",
        "B",
        "a",
        "b",
        "é",
      ];
      const sorted = paths.map((end) => `d/x${end}`);
      const changes = sorted.toReversed().map((path) => ({ path, before: undefined, after: file(path) }));
      await store.beginChange(journal("cb_1", 1, changes));
      await store.finishChange("cb_1");
      const listed = async (query: object) =>
        (await store.listEntries("cb_1", { directory: "d", recursive: false, ...query })).map(({ path }) => path);
      expect(await listed({})).toEqual(sorted);
      expect(await listed({ recursive: true })).toEqual(sorted);
      expect(await listed({ after: "d/x\u0000\u0001", limit: 2 })).toEqual(["d/x\u0001", "d/x\u0001\u0000"]);
      expect((await store.changesOf("cb_1", 1)).map(({ path }) => path)).toEqual(sorted);
    });

    test("half a surrogate pair is kept as the character that stands for it", async () => {
      await store.insertCodebase(codebase({ id: "cb_1", name: "a\ud800b" }));
      expect((await store.codebase("cb_1"))?.name).toBe("a\ufffdb");
    });
  });

  describe(`${name}: several at once`, () => {
    const settled = async (work: readonly Promise<unknown>[]): Promise<readonly string[]> =>
      (await Promise.allSettled(work)).map(({ status }) => status).sort();

    test("of changes that begin together, and of those that finish, one does", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const change = (path: string) => journal("cb_1", 1, [{ path, before: undefined, after: file(path) }]);
      const paths = ["a", "b", "c", "d", "e", "f"];
      const once = ["fulfilled", ...Array.from({ length: 5 }, () => "rejected")];
      expect(await settled(paths.map((path) => store.beginChange(change(path))))).toEqual(once);
      expect(await settled(paths.map(() => store.finishChange("cb_1")))).toEqual(once);
      expect(await store.codebase("cb_1")).toMatchObject({ version: 1, size: 10, fileCount: 1 });
      expect(await store.listEntries("cb_1", { directory: "", recursive: true })).toHaveLength(1);
      expect(await settled(paths.map(() => store.settleChange("cb_1")))).toEqual(paths.map(() => "fulfilled"));
      expect(await store.unsettledChanges()).toEqual([]);
    });

    test("old versions are dropped once, also beside a change", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      for (let version = 1; version <= 5; version++) {
        const before = version === 1 ? undefined : file("a", { version: version - 1 });
        await store.beginChange(journal("cb_1", version, [{ path: "a", before, after: file("a", { version }) }]));
        if (version < 5) await store.finishChange("cb_1");
        if (version < 5) await store.settleChange("cb_1");
      }
      const [, ...dropped] = await Promise.all([
        store.finishChange("cb_1"),
        ...Array.from({ length: 4 }, () => store.dropVersions("cb_1", { versions: 2, bytes: 0 })),
      ]);
      await store.dropVersions("cb_1", { versions: 2, bytes: 0 });
      expect((await store.listVersions("cb_1", { limit: 10 })).map(({ version }) => version)).toEqual([5, 4]);
      const released = dropped.flatMap((each) => each.released);
      expect(new Set(released).size).toBe(released.length);
      const { keptBytes } = await store.dropVersions("cb_1", { versions: 0, bytes: 0 });
      expect(keptBytes).toBe(4096 + 512);
    });

    test("events that are appended together are one chain, without a gap", async () => {
      const appended = await Promise.all(
        Array.from({ length: 12 }, (_, i) => store.appendEvents([event({ data: { i } }), event()])),
      );
      const sequences = appended.flat().map(({ sequence }) => sequence);
      expect(sequences.sort((a, b) => a - b)).toEqual(Array.from({ length: 24 }, (_, i) => i + 1));
      let last = GENESIS;
      for (const record of await store.listEvents({ limit: 100 })) {
        expect(record.hash).toBe(chainHash(last.hash, last.sequence + 1, record));
        last = record;
      }
      expect(await store.chainHead()).toEqual({ sequence: last.sequence, hash: last.hash });
    });
  });

  describe(`${name}: secrets`, () => {
    test("a secret takes the place of the owner's of its name, and keeps the age of that", async () => {
      const first = secret({ name: "B", createdAtMs: 1000 });
      expect(await store.putSecret(first, 0)).toEqual(first);
      const second = secret({ name: "B", sealed: "other", hosts: ["b"], createdAtMs: 2000, updatedAtMs: 2000 });
      expect(await store.putSecret(second, 1)).toEqual({ ...second, createdAtMs: 1000 });
      await store.putSecret(secret({ name: "A" }), 0);
      await store.putSecret(secret({ name: "B", ownerId: "ben" }), 1);
      expect((await store.listSecrets()).map(({ ownerId, name }) => `${ownerId} ${name}`)).toEqual([
        "ann A",
        "ann B",
        "ben B",
      ]);
      expect(await store.secret("ann", "A")).toEqual(secret({ name: "A" }));
      expect(await store.deleteSecret("ann", "A")).toBe(true);
      expect(await store.deleteSecret("ann", "A")).toBe(false);
      expect(await store.listSecrets("ann")).toHaveLength(1);
    });

    test("an owner has no more than the limit, however many come at once", async () => {
      const put = await Promise.all(
        Array.from({ length: 20 }, (_, i) => store.putSecret(secret({ name: `S${i}` }), 5)),
      );
      expect(put.filter((each) => each !== undefined)).toHaveLength(5);
      expect(await store.listSecrets("ann")).toHaveLength(5);
      expect(await store.putSecret(secret({ name: "S", ownerId: "ben" }), 5)).toBeDefined();
    });
  });

  describe(`${name}: retention`, () => {
    const BLOCK = 4096 + 512;

    /** Versions 1 to `newest` of one file, each of which replaces a block. */
    async function withVersions(newest: number, id = "cb_1"): Promise<void> {
      await store.insertCodebase(codebase({ id }));
      for (let version = 1; version <= newest; version++) {
        const before = version === 1 ? undefined : file("a", { version: version - 1, size: 4000 });
        await store.beginChange(
          journal(id, version, [{ path: "a", before, after: file("a", { version, size: 4000 }) }]),
        );
        await store.finishChange(id);
        await store.settleChange(id);
      }
    }

    const left = async (id = "cb_1"): Promise<number[]> =>
      (await store.listVersions(id, { limit: 1000 })).map(({ version }) => version);

    test("as many versions stay as are kept, the newest ones, with their changes", async () => {
      await withVersions(5);
      await withVersions(2, "cb_2");
      expect(await store.dropVersions("cb_1", { versions: 5, bytes: 0 })).toEqual({
        released: [],
        oldest: 1,
        keptBytes: 4 * BLOCK,
        hasMore: false,
      });
      expect(await store.dropVersions("cb_1", { versions: 3, bytes: 0 })).toEqual({
        released: [2, 3],
        oldest: 3,
        keptBytes: 2 * BLOCK,
        hasMore: false,
      });
      expect(await left()).toEqual([5, 4, 3]);
      expect(await store.version("cb_1", 2)).toBeUndefined();
      expect(await store.changesOf("cb_1", 2)).toEqual([]);
      expect(await store.changesOf("cb_1", 3)).toHaveLength(1);
      expect((await store.firstChangesAfter("cb_1", 3, {})).map(({ version }) => version)).toEqual([4]);
      expect(await store.codebase("cb_1")).toMatchObject({ version: 5, size: 4000, fileCount: 1 });
      expect(await left("cb_2")).toEqual([2, 1]);
      expect(await store.dropVersions("cb_1", { versions: 3, bytes: 0 })).toMatchObject({ released: [], oldest: 3 });
      expect(await store.dropVersions("cb_1", { versions: 1, bytes: 0 })).toMatchObject({
        released: [4, 5],
        oldest: 5,
        keptBytes: 0,
      });
      expect(await left()).toEqual([5]);
    });

    test("the oldest go until the rest keeps no more than it may, and the one before the newest stays", async () => {
      await withVersions(6);
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 5 * BLOCK })).toMatchObject({ oldest: 1 });
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 3 * BLOCK })).toEqual({
        released: [2, 3],
        oldest: 3,
        keptBytes: 3 * BLOCK,
        hasMore: false,
      });
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 3 * BLOCK - 1 })).toMatchObject({ oldest: 4 });
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 1 })).toEqual({
        released: [5],
        oldest: 5,
        keptBytes: BLOCK,
        hasMore: false,
      });
      expect(await left()).toEqual([6, 5]);
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 0 })).toMatchObject({ oldest: 5 });
    });

    test("what a version keeps is content in blocks and a record of each path; a rename keeps no content", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const before = {
        big: file("big", { size: 4097 }),
        empty: file("empty", { size: 0 }),
        l: file("l", { kind: "symlink", size: 0, target: "big" }),
        d: directory("d"),
      };
      await store.beginChange(
        journal(
          "cb_1",
          1,
          Object.entries(before).map(([path, after]) => ({ path, before: undefined, after })),
        ),
      );
      await store.finishChange("cb_1");
      await store.settleChange("cb_1");
      expect(await store.ownerUsage("ann")).toMatchObject({ files: 3, directories: 1 });
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 0 })).toMatchObject({ keptBytes: 0 });
      const moved = journal("cb_1", 2, [
        { path: "big", before: before.big, after: undefined },
        { path: "bigger", before: undefined, after: file("bigger", { size: 4097 }) },
      ]);
      await store.beginChange({ ...moved, version: { ...moved.version, origin: "rename" } });
      await store.finishChange("cb_1");
      await store.settleChange("cb_1");
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 0 })).toMatchObject({ keptBytes: 512 });
      const { empty, l, d } = before;
      const gone = journal("cb_1", 3, [
        { path: "bigger", before: file("bigger", { size: 4097 }), after: undefined },
        ...[empty, l, d].map((entry) => ({ path: entry.path, before: entry, after: undefined })),
      ]);
      const changes = gone.changes.map((change) =>
        change.before?.kind === "file" ? change : { ...change, keptAs: "" },
      );
      await store.beginChange({ ...gone, changes });
      await store.finishChange("cb_1");
      await store.settleChange("cb_1");
      const keptBytes = 512 + 4 * 512 + 2 * 4096;
      expect(await store.dropVersions("cb_1", { versions: 0, bytes: 0 })).toMatchObject({ keptBytes });
      expect(await store.ownerUsage("ann")).toMatchObject({ files: 0, directories: 0 });
    });

    test("very many go in several calls, and a codebase that has or is nothing has nothing to drop", async () => {
      await store.insertCodebase(codebase({ id: "cb_1" }));
      const nothing = { released: [], oldest: 0, keptBytes: 0, hasMore: false };
      expect(await store.dropVersions("cb_1", { versions: 1, bytes: 1 })).toEqual(nothing);
      expect(await store.dropVersions("cb_9", { versions: 1, bytes: 1 })).toEqual(nothing);
      for (let version = 1; version <= 600; version++) {
        await store.beginChange(journal("cb_1", version, []));
        await store.finishChange("cb_1");
        await store.settleChange("cb_1");
      }
      let calls = 1;
      while ((await store.dropVersions("cb_1", { versions: 2, bytes: 0 })).hasMore) calls += 1;
      expect(calls).toBeGreaterThan(1);
      expect(await left()).toEqual([600, 599]);
    });
  });

  describe(`${name}: sandboxes`, () => {
    test("a sandbox comes back as it was, and takes changes", async () => {
      const record = sandbox({ id: "sb_1", labels: { team: "a b" }, revocable: true, expiresAtMs: 9000 });
      expect(await store.insertSandbox(record, 0)).toBe(true);
      expect(await store.sandbox("sb_1")).toEqual(record);
      const changes = { status: "ERROR", statusReason: "no fuse", startedAtMs: 1, stoppedAtMs: 2, rules: [] } as const;
      expect(await store.updateSandbox("sb_1", changes)).toEqual({ ...record, ...changes });
      expect(await store.sandbox("sb_1")).toEqual({ ...record, ...changes });
      expect(await store.updateSandbox("sb_2", { status: "STOPPED" })).toBeUndefined();
    });

    test("an owner has no more than the limit, however many ask at once", async () => {
      const inserted = await Promise.all(
        Array.from({ length: 20 }, (_, i) => store.insertSandbox(sandbox({ id: `sb_${i}` }), 5)),
      );
      expect(inserted.filter(Boolean)).toHaveLength(5);
      expect(await store.insertSandbox(sandbox({ id: "sb_x", ownerId: "ben" }), 5)).toBe(true);
      expect(await store.insertSandbox(sandbox({ id: "sb_y" }), 0)).toBe(true);
      await store.deleteSandbox(`sb_${inserted.indexOf(true)}`);
      expect(await store.insertSandbox(sandbox({ id: "sb_z" }), 6)).toBe(true);
    });

    test("lists combine every filter, in the order of age", async () => {
      const records = [
        sandbox({ id: "sb_2", createdAtMs: 2, labels: { a: "1", b: "2" }, status: "RUNNING", expiresAtMs: 50 }),
        sandbox({ id: "sb_1", createdAtMs: 2, labels: { a: "1" }, codebaseId: "cb_2" }),
        sandbox({ id: "sb_3", createdAtMs: 1, labels: { 'odd."key': "1" }, ownerId: "ben" }),
      ];
      for (const record of records) await store.insertSandbox(record, 0);
      const ids = async (query: Parameters<MetadataStore["listSandboxes"]>[0]): Promise<string[]> =>
        (await store.listSandboxes(query)).map(({ id }) => id);
      expect(await ids({})).toEqual(["sb_3", "sb_1", "sb_2"]);
      expect(await ids({ limit: 1, after: [1, "sb_3"] })).toEqual(["sb_1"]);
      expect(await ids({ labels: {} })).toHaveLength(3);
      expect(await ids({ labels: { a: "1" } })).toEqual(["sb_1", "sb_2"]);
      expect(await ids({ labels: { a: "1", b: "2" } })).toEqual(["sb_2"]);
      expect(await ids({ labels: { a: "2" } })).toEqual([]);
      expect(await ids({ labels: { 'odd."key': "1" }, ownerId: "ben" })).toEqual(["sb_3"]);
      expect(await ids({ codebaseId: "cb_2", ownerId: "ann", status: "PENDING" })).toEqual(["sb_1"]);
    });

    test("sessions close once, and go with their sandbox", async () => {
      await store.insertSandbox(sandbox({ id: "sb_1" }), 0);
      const first = session({ id: "se_2", sandboxId: "sb_1" });
      await store.insertSession(first);
      await store.insertSession(session({ id: "se_1", sandboxId: "sb_1", createdAtMs: 2000 }));
      expect(await store.session("se_2")).toEqual(first);
      expect(await store.closeSession("se_2", 7000, "exit")).toBe(true);
      expect(await store.closeSession("se_2", 8000, "again")).toBe(false);
      await store.closeAllSessions(9000, "the server stopped");
      expect(await store.listSessions("sb_1")).toEqual([
        { ...first, status: "CLOSED", closedAtMs: 7000, closeReason: "exit" },
        session({
          id: "se_1",
          sandboxId: "sb_1",
          createdAtMs: 2000,
          status: "CLOSED",
          closedAtMs: 9000,
          closeReason: "the server stopped",
        }),
      ]);
      await store.deleteSandbox("sb_1");
      expect(await store.session("se_1")).toBeUndefined();
    });
  });

  describe(`${name}: events`, () => {
    test("events are numbered without a gap and chained by the described format", async () => {
      expect(await store.chainHead()).toEqual(GENESIS);
      const drafts = [
        event({ data: { z: 1, a: { c: [1, null, true], b: "ü\u0000\n" } } }),
        event({ type: "odd \u0000 \ud800", ownerId: "" }),
      ];
      const [first, second] = await store.appendEvents(drafts);
      if (first === undefined || second === undefined) throw new Error("events are missing");
      expect([first.sequence, second.sequence]).toEqual([1, 2]);
      expect(await store.listEvents({ limit: 10 })).toEqual([first, second]);
      expect(first.hash).toBe(chainHash(GENESIS.hash, 1, first));
      expect(second.hash).toBe(chainHash(first.hash, 2, second));
      expect(await store.chainHead()).toEqual({ sequence: 2, hash: second.hash });
      expect(await store.chainAnchor()).toEqual(GENESIS);
      expect(await store.appendEvents([])).toEqual([]);
    });

    test("queries combine every filter", async () => {
      await store.appendEvents([
        event({ timeMs: 10, type: "a", sandboxId: "sb_1" }),
        event({ timeMs: 20, type: "b", codebaseId: "cb_1" }),
        event({ timeMs: 30, type: "c", ownerId: "ben" }),
        event({ timeMs: 40, type: "a", sandboxId: "sb_1", codebaseId: "cb_1" }),
      ]);
      const found = async (query: Omit<Parameters<MetadataStore["listEvents"]>[0], "limit">): Promise<number[]> =>
        (await store.listEvents({ ...query, limit: 10 })).map(({ sequence }) => sequence);
      expect(await found({})).toEqual([1, 2, 3, 4]);
      expect(await found({ types: ["a"] })).toEqual([1, 4]);
      expect(await found({ types: ["c", "b"] })).toEqual([2, 3]);
      expect(await found({ ownerId: "ann", fromMs: 20, untilMs: 40 })).toEqual([2]);
      expect(await found({ sandboxId: "sb_1", afterSequence: 1 })).toEqual([4]);
      expect(await found({ codebaseId: "cb_1", types: ["a", "b"], ownerId: "ann" })).toEqual([2, 4]);
      expect((await store.listEvents({ limit: 2, afterSequence: 1 })).map(({ sequence }) => sequence)).toEqual([2, 3]);
    });

    test("removing the oldest moves the anchor to the last removed", async () => {
      const events = await store.appendEvents([10, 20, 30, 25, 40].map((timeMs) => event({ timeMs })));
      expect(await store.trimEvents({ beforeMs: 10 })).toBe(0);
      expect(await store.trimEvents({ beforeMs: 26, keep: 100 })).toBe(2);
      expect(await store.chainAnchor()).toEqual({ sequence: 2, hash: events[1]?.hash });
      expect(await store.trimEvents({ keep: 1 })).toBe(2);
      expect(await store.trimEvents({})).toBe(0);
      expect((await store.listEvents({ limit: 9 })).map(({ sequence }) => sequence)).toEqual([5]);
      expect(await store.trimEvents({ beforeMs: 1000 })).toBe(1);
      expect(await store.chainAnchor()).toEqual(await store.chainHead());
      expect((await store.appendEvents([event()]))[0]?.sequence).toBe(6);
    });
  });

  describe(`${name}: keys`, () => {
    test("a key is found, touched and revoked once", async () => {
      const record = key({ id: "key_1" });
      await store.insertKey(record);
      await store.insertKey(key({ id: "key_0", createdAtMs: 2000 }));
      expect(await store.key("key_1")).toEqual(record);
      await store.touchKey("key_1", 5000);
      await store.touchKey("key_1", 4000);
      expect(await store.revokeKey("key_1", 6000)).toBe(true);
      expect(await store.revokeKey("key_1", 7000)).toBe(true);
      expect(await store.revokeKey("key_2", 7000)).toBe(false);
      expect(await store.listKeys()).toEqual([
        { ...record, lastUsedAtMs: 5000, revokedAtMs: 6000 },
        key({ id: "key_0", createdAtMs: 2000 }),
      ]);
    });
  });
}
