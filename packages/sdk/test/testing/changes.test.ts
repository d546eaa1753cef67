import { expect, test } from "vitest";
import type { Change, FileDiff } from "../../src/model/records.ts";
import { begun, codeOf, type Opened, openMock, text } from "./support.ts";

const FULL = [{ pattern: "**/*", permission: "write" }] as const;

async function changesOf({ client, id }: Opened): Promise<string[]> {
  return (await client.listChanges(id).toArray()).map(shortly);
}

async function write({ client, id }: Opened, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) await client.writeFile(id, path, content);
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
  await write(mock, { "a.txt": "A\n", "b.txt": "b\n" });
  await mock.client.removeFile(mock.id, "d", { recursive: true });
  await mock.client.makeDirectory(mock.id, "n");
  await write(mock, { "n/x": "x\n" });
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
  await client.removeFile(id, "d", { recursive: true });
  await client.makeDirectory(id, "d");
  await write(mock, { "d/a": "a\n", "d/c": "c\n" });
  expect((await client.listDirectory(id, "d")).map(({ name }) => name)).toEqual(["a", "c"]);
  expect(await changesOf(mock)).toEqual(["deleted /d/b file 2", "added /d/c file 2"]);
});

test("a file that moved is one change", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "old/a.ts": "content\n" } });
  await mock.client.moveFile(mock.id, "old/a.ts", "b.ts");
  expect(await changesOf(mock)).toEqual(["renamed /old/a.ts -> /b.ts file 8"]);
});

test("diffs are unified, in the form that git takes", async () => {
  const files = { "a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", gone: "x", binary: "text" };
  await using mock = await openMock({ permissions: FULL, files });
  const { client, id } = mock;
  await write(mock, { new: "1\n2\n3\n4\n", "a.txt": "1\n2\n3\n4\n6\n7\n8\n9\n10\neleven\n" });
  await client.removeFile(id, "gone");
  await client.writeFile(id, "binary", Uint8Array.of(0, 1));
  const diffs = await diffsOf(mock);
  expect(diffs.map(({ unified }) => unified)).toEqual([
    "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -2,9 +2,9 @@\n 2\n 3\n 4\n-5\n-6\n-7\n-8\n-9\n-10\n+6\n+7\n+8\n+9\n+10\n+eleven\n",
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
  await write(mock, { "a.txt": "A\n", "package.json": "{ }\n" });
  await client.makeDirectory(id, "d");
  await write(mock, { "d/x": "x\n" });
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
});

test("named paths are applied and discarded alone", async () => {
  await using mock = await openMock({ permissions: FULL, files: { a: "a" } });
  const { client, id, engine, codebaseId } = mock;
  await client.makeDirectory(id, "d");
  await write(mock, { a: "1\n", "d/b": "2\n", c: "3\n" });
  await client.applyChanges(id, { paths: ["d"] });
  expect(Object.keys(engine.filesOf(codebaseId))).toEqual(["a", "d/b"]);
  expect((await client.discardChanges(id, { paths: ["/a"] })).map(shortly)).toEqual(["modified /a file 2"]);
  expect(await changesOf(mock)).toEqual(["added /c file 2"]);
  expect(text(await client.readFileBytes(id, "a"))).toBe("a");
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
  await client.removeFile(id, "d", { recursive: true });
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
  mock.engine.onCommand("build", { files: { a: "b\n" } }).onCommand("true", {});
  expect(await client.exec(id, "build")).toMatchObject({ syncedVersion: 2, syncProblems: [] });
  expect(await client.exec(id, "true")).toMatchObject({ syncedVersion: 0 });
  expect(text(await client.readFileBytes(other.id, "a"))).toBe("b\n");
  expect(await changesOf(mock)).toEqual([]);
});

test("a sandbox with its own version keeps it, and the last writer wins with a conflict on record", async () => {
  await using mock = await openMock({ permissions: FULL, files: { a: "a\n" } });
  const { client, id, codebaseId } = mock;
  await write(mock, { a: "mine\n" });
  await client.uploadFile(codebaseId, "a", "theirs\n");
  expect(text(await client.readFileBytes(id, "a"))).toBe("mine\n");
  const { version, outcomes } = await client.applyChanges(id);
  expect(outcomes.map(({ conflict }) => conflict)).toEqual([true]);
  const [conflict] = await client.listEvents({ sandboxId: id, types: ["sync_conflict"] }).toArray();
  expect(conflict?.data).toEqual({ path: "/workspace/a", version });
  await write(mock, { a: "again\n" });
  expect((await client.applyChanges(id)).outcomes.map(({ conflict }) => conflict)).toEqual([false]);
});

test("a directory that another sandbox deletes stays where this one has something in it", async () => {
  await using mock = await openMock({ permissions: FULL, files: { "d/e/old": "o" } });
  const { client, id, codebaseId } = mock;
  await write(mock, { "d/e/new": "n\n" });
  const other = await client.createSandbox({ codebaseId, permissions: FULL });
  await client.startSandbox(other.id);
  await client.removeFile(other.id, "d", { recursive: true });
  expect((await client.listDirectory(id, "d/e")).map(({ name }) => name)).toEqual(["new"]);
});

test("sync never, and a pinned version, refuse to apply", async () => {
  await using mock = await openMock({ permissions: FULL, sync: "never", files: { a: "1\n" } });
  const { client, id, codebaseId } = mock;
  await write(mock, { a: "x\n" });
  expect(await codeOf(client.applyChanges(id))).toBe("SYNC_REFUSED");
  await client.uploadFile(codebaseId, "a", "2\n");
  const pinned = await client.createSandbox({ codebaseId, codebaseVersion: 1, permissions: FULL });
  await client.startSandbox(pinned.id);
  expect(text(await client.readFileBytes(pinned.id, "a"))).toBe("1\n");
  expect(await codeOf(client.applyChanges(pinned.id))).toBe("SYNC_REFUSED");
  const missing = client.createSandbox({ codebaseId, codebaseVersion: 9, permissions: FULL });
  expect(await codeOf(missing)).toBe("VERSION_NOT_FOUND");
});

test("changes outlive a stop and go with a destroy", async () => {
  await using mock = await openMock({ permissions: FULL, files: {} });
  const { client, id } = mock;
  await write(mock, { a: "x\n" });
  await client.stopSandbox(id);
  expect(await changesOf(mock)).toEqual(["added /a file 2"]);
  await client.destroySandbox(id);
  expect(await codeOf(changesOf(mock))).toBe("SANDBOX_NOT_FOUND");
});

test("a sandbox that is destroyed under a command takes what that wrote along", async () => {
  await using mock = await openMock({ permissions: FULL, sync: "on-exec", files: { a: "a" } });
  const { client, id, engine, codebaseId } = mock;
  engine.onCommand("build", (_, built) => {
    built.write("a", "b\n");
    return new Promise(() => {});
  });
  const running = client.exec(id, "build");
  await begun(mock, 1);
  await client.destroySandbox(id);
  expect(await running).toMatchObject({ exitCode: 137, syncedVersion: 0 });
  expect(engine.filesOf(codebaseId)).toEqual({ a: "a" });
});
