import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import type { Change, FileDiff } from "../../src/model/records.ts";
import { codeOf, type Opened, openMock } from "./support.ts";

const FULL = [{ pattern: "**/*", permission: "write" }] as const;

async function changesOf({ client, id }: Opened): Promise<string[]> {
  return (await client.listChanges(id).toArray()).map(shortly);
}

function shortly({ kind, path, oldPath, type, size }: Change): string {
  return `${kind} ${oldPath === "" ? "" : `${oldPath} -> `}${path} ${type} ${size}`;
}

async function diffsOf({ client, id }: Opened, paths?: string[]): Promise<FileDiff[]> {
  const diffs: FileDiff[] = [];
  for await (const diff of client.diffChanges(id, paths === undefined ? {} : { paths })) diffs.push(diff);
  return diffs;
}

test("changes are what differs from the codebase, in path order", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "a.txt": "a\n", "b.txt": "b\n", "d/c.txt": "c\n" } });
  await mock.client.exec(mock.id, "echo A > a.txt; rm -r d; mkdir n; echo x > n/x; touch b.txt; echo b > b.txt");
  expect(await changesOf(mock)).toEqual([
    "modified /a.txt file 2",
    "deleted /d directory 0",
    "added /n directory 0",
    "added /n/x file 2",
  ]);
  expect(mock.engine.filesOf(mock.codebaseId)).toEqual({ "a.txt": "a\n", "b.txt": "b\n", "d/c.txt": "c\n" });
});

test("a directory that was deleted and made again shows nothing of the old one", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "d/a": "a\n", "d/b": "b\n" } });
  const { client, id } = mock;
  await client.exec(id, "rm -r d; mkdir d; echo a > d/a; echo c > d/c");
  expect((await client.listDirectory(id, "d")).map(({ name }) => name)).toEqual(["a", "c"]);
  expect(await changesOf(mock)).toEqual(["deleted /d/b file 2", "added /d/c file 2"]);
});

test("a file that moved is one change", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "old/a.ts": "content\n" } });
  await mock.client.exec(mock.id, "mv old/a.ts b.ts");
  expect(await changesOf(mock)).toEqual(["renamed /old/a.ts -> /b.ts file 8"]);
});

test("diffs are unified, in the form that git takes", async () => {
  const files = { "a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", gone: "x", binary: "text" };
  await using mock = await openMock({ permissions: FULL, files });
  const { client, id } = mock;
  await client.exec(id, "seq 4 > new; rm gone; grep -v 5 a.txt > b; echo eleven >> b; mv b a.txt");
  await client.writeFile(id, "binary", Uint8Array.of(0, 1));
  const diffs = await diffsOf(mock);
  expect(diffs.map(({ unified }) => unified)).toEqual([
    "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -2,9 +2,9 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n 9\n 10\n+eleven\n",
    "diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n",
    "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
    "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,4 @@\n+1\n+2\n+3\n+4\n",
  ]);
  expect(diffs.map(({ binary }) => binary)).toEqual([false, true, false, false]);
  expect((await diffsOf(mock, ["new"])).length).toBe(1);
  expect(await codeOf(diffsOf(mock, ["nothing/here"]))).toBe("FILE_NOT_FOUND");
});

test("applying makes a version of what the rules allow, and the delta lets go of it", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "a.txt": "a\n", "package.json": "{}\n" } });
  const { client, id, engine, codebaseId } = mock;
  await client.exec(id, "echo A > a.txt; echo '{ }' > package.json; mkdir d; echo x > d/x");
  const rehearsal = await client.applyChanges(id, { dryRun: true });
  expect(rehearsal).toMatchObject({ version: 0 });
  expect(engine.filesOf(codebaseId)).toHaveProperty(["a.txt"], "a\n");
  await client.updatePermissions(id, [...FULL, { pattern: "/d/**", permission: "read" }]);
  const { version, outcomes } = await client.applyChanges(id);
  expect(version).toBe(2);
  expect(outcomes.map(({ change, applied, reason, sensitive }) => [change.path, applied, reason, sensitive])).toEqual([
    ["/a.txt", true, "", false],
    ["/d", false, "level read", false],
    ["/d/x", false, "level read", false],
    ["/package.json", true, "", true],
  ]);
  expect(engine.filesOf(codebaseId)).toEqual({ "a.txt": "A\n", "package.json": "{ }\n" });
  expect(await changesOf(mock)).toEqual(["added /d directory 0", "added /d/x file 2"]);
  expect(await client.getVersion(codebaseId, 2)).toMatchObject({ origin: "sync", sandboxId: id, filesChanged: 2 });
});

test("named paths are applied and discarded alone", async () => {
  await using mock = await openMock({ permissions: FULL, files: { a: "a" } });
  const { client, id, engine, codebaseId } = mock;
  await client.exec(id, "echo 1 > a; mkdir d; echo 2 > d/b; echo 3 > c");
  await client.applyChanges(id, { paths: ["d"] });
  expect(Object.keys(engine.filesOf(codebaseId))).toEqual(["a", "d/b"]);
  expect((await client.discardChanges(id, { paths: ["/a"] })).map(shortly)).toEqual(["modified /a file 2"]);
  expect(await changesOf(mock)).toEqual(["added /c file 2"]);
  expect((await client.exec(id, "cat a")).stdout).toBe("a");
  expect(await codeOf(client.discardChanges(id, { paths: ["nope"] }))).toBe("FILE_NOT_FOUND");
  await client.discardChanges(id);
  expect(await changesOf(mock)).toEqual([]);
});

test("a directory that holds what the rules protect is not deleted from the codebase", async () => {
  await using mock = await openMock({
    permissions: [...FULL, { pattern: "**/*.key", permission: "none" }],
    files: { "d/a": "a", "d/b.key": "b" },
  });
  const { client, id, engine, codebaseId } = mock;
  await client.exec(id, "rm -r d");
  const { outcomes } = await client.applyChanges(id);
  expect(outcomes.map(({ applied, reason }) => [applied, reason])).toEqual([
    [false, "the directory holds what the rules protect"],
  ]);
  expect(Object.keys(engine.filesOf(codebaseId))).toEqual(["d/a", "d/b.key"]);
});

test("with sync on-exec each command ends with a version, and others see it at once", async () => {
  await using mock = await openMock({ permissions: FULL, sync: "on-exec", files: { a: "a\n" } });
  const { client, id, codebaseId } = mock;
  const other = await client.createSandbox({ codebaseId, permissions: FULL, sync: "manual" });
  await client.startSandbox(other.id);
  expect(await client.exec(id, "echo b > a")).toMatchObject({ syncedVersion: 2, syncProblems: [] });
  expect(await client.exec(id, "cat a")).toMatchObject({ syncedVersion: 0 });
  expect((await client.exec(other.id, "cat a")).stdout).toBe("b\n");
  expect(await changesOf(mock)).toEqual([]);
});

test("a sandbox with its own version keeps it, and the last writer wins with a conflict on record", async () => {
  await using mock = await openMock({ permissions: FULL, files: { a: "a\n" } });
  const { client, id, codebaseId } = mock;
  await client.exec(id, "echo mine > a");
  await client.uploadFile(codebaseId, "a", "theirs\n");
  expect((await client.exec(id, "cat a")).stdout).toBe("mine\n");
  const { version, outcomes } = await client.applyChanges(id);
  expect(outcomes.map(({ conflict }) => conflict)).toEqual([true]);
  expect((await client.getVersion(codebaseId, version)).conflicts).toEqual([
    { path: "a", replacedVersion: 2, replacedSandboxId: "" },
  ]);
  await client.exec(id, "echo again > a");
  expect((await client.applyChanges(id)).outcomes.map(({ conflict }) => conflict)).toEqual([false]);
});

test("a directory that the codebase loses stays where the sandbox has something in it", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "d/e/old": "o" } });
  const { client, id, codebaseId } = mock;
  await client.exec(id, "echo n > d/e/new");
  await client.deleteFile(codebaseId, "d", { recursive: true });
  expect((await client.exec(id, "ls d/e")).stdout).toBe("new\n");
});

test("sync never, and a pinned version, refuse to apply", async () => {
  await using mock = await openMock({ permissions: FULL, sync: "never", files: { a: "1\n" } });
  const { client, id, codebaseId } = mock;
  await client.exec(id, "echo x > a");
  expect(await codeOf(client.applyChanges(id))).toBe("SYNC_REFUSED");
  await client.uploadFile(codebaseId, "a", "2\n");
  const pinned = await client.createSandbox({ codebaseId, codebaseVersion: 1, permissions: FULL });
  await client.startSandbox(pinned.id);
  expect((await client.exec(pinned.id, "cat a")).stdout).toBe("1\n");
  expect(await codeOf(client.applyChanges(pinned.id))).toBe("SYNC_REFUSED");
  const missing = client.createSandbox({ codebaseId, codebaseVersion: 9, permissions: FULL });
  expect(await codeOf(missing)).toBe("VERSION_NOT_FOUND");
});

test("changes outlive a stop and go with a destroy", async () => {
  await using mock = await openMock({ permissions: FULL, files: {} });
  const { client, id } = mock;
  await client.exec(id, "echo x > a");
  await client.stopSandbox(id);
  expect(await changesOf(mock)).toEqual(["added /a file 2"]);
  await client.destroySandbox(id);
  expect(await codeOf(changesOf(mock))).toBe("SANDBOX_NOT_FOUND");
});

test("a sandbox that is destroyed under a command takes what that wrote along", async () => {
  await using mock = await openMock({ permissions: FULL, sync: "on-exec", files: { a: "a" } });
  const { client, id, engine, codebaseId } = mock;
  const running = client.exec(id, "echo b > a; sleep 100");
  await eventually(async () => expect((await client.readFileBytes(id, "a")).length).toBe(2));
  await client.destroySandbox(id);
  expect(await running).toMatchObject({ exitCode: 137, syncedVersion: 0 });
  expect(engine.filesOf(codebaseId)).toEqual({ a: "a" });
});
