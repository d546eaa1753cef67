import { expect, test } from "vitest";
import { codeOf, openMock, text } from "./support.ts";

test("what is hidden does not exist, and a way to something visible shows that alone", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const entries = await client.listDirectory(id, "/", { recursive: true });
  expect(entries.map(({ path, permission }) => [path, permission])).toEqual([
    ["/docs", "view"],
    ["/docs/plan.md", "view"],
    ["/out", "write"],
    ["/out/old.txt", "write"],
    ["/secrets", "view"],
    ["/secrets/public.key", "read"],
    ["/src", "read"],
    ["/src/a.ts", "read"],
  ]);
  expect(await codeOf(client.statFile(id, "secrets/private.key"))).toBe("FILE_NOT_FOUND");
  expect(await codeOf(client.readFileBytes(id, "secrets/private.key"))).toBe("FILE_NOT_FOUND");
  expect(await codeOf(client.removeFile(id, "secrets/private.key"))).toBe("FILE_NOT_FOUND");
  expect(await codeOf(client.writeFile(id, "secrets/private.key", "x"))).toBe("FILE_PERMISSION_DENIED");
  expect(await codeOf(client.writeFile(id, "secrets/new", "x"))).toBe("FILE_PERMISSION_DENIED");
});

test("view lists and stats, and does not read", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const { kind, size, mode, permission } = await client.statFile(id, "/docs/plan.md");
  expect({ kind, size, mode, permission }).toEqual({ kind: "file", size: 5, mode: 0, permission: "view" });
  expect(await codeOf(client.readFileBytes(id, "docs/plan.md"))).toBe("FILE_PERMISSION_DENIED");
});

test("reading and writing follow the level of the path", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  expect(text(await client.readFileBytes(id, "/workspace/src/a.ts"))).toBe("one\ntwo\nthree\n");
  expect(await codeOf(client.writeFile(id, "src/a.ts", "x"))).toBe("FILE_PERMISSION_DENIED");
  expect(await codeOf(client.makeDirectory(id, "src/new"))).toBe("FILE_PERMISSION_DENIED");
  expect(await codeOf(client.removeFile(id, "src/a.ts"))).toBe("FILE_PERMISSION_DENIED");
  expect(await codeOf(client.moveFile(id, "src/a.ts", "out/a.ts"))).toBe("FILE_PERMISSION_DENIED");
  await client.writeFile(id, "out/new.txt", "new");
  await client.writeFile(id, "out/new.txt", "er", { append: true });
  expect(text(await client.readFileBytes(id, "out/new.txt"))).toBe("newer");
  const written = await client.writeFile(id, "out/run.sh", "#!", { mode: 0o755 });
  expect([written.path, written.mode]).toEqual(["out/run.sh", 0o755]);
});

test("the kinds of entries are told apart as by the kernel", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  expect(await codeOf(client.readFileBytes(id, "src"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.listDirectory(id, "src/a.ts"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.readFileBytes(id, "src/a.ts/b"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.makeDirectory(id, "out"))).toBe("FILE_EXISTS");
  expect(await codeOf(client.makeDirectory(id, "out/a/b"))).toBe("FILE_NOT_FOUND");
  await client.makeDirectory(id, "out/a/b", { recursive: true });
  expect(await codeOf(client.removeFile(id, "out/a"))).toBe("FILE_WRONG_KIND");
  await client.removeFile(id, "out/a", { recursive: true });
  expect(await codeOf(client.statFile(id, "out/a/b"))).toBe("FILE_NOT_FOUND");
  expect(await codeOf(client.statFile(id, "../etc"))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.removeFile(id, "/"))).toBe("INVALID_ARGUMENT");
});

test("directories of the codebase do not move, those of the sandbox do", async () => {
  await using mock = await openMock({ permissions: [{ pattern: "**/*", permission: "write" }] });
  const { client, id } = mock;
  expect(await codeOf(client.moveFile(id, "src", "moved"))).toBe("FILE_WRONG_KIND");
  await client.makeDirectory(id, "new/deep", { recursive: true });
  await client.writeFile(id, "new/deep/f", "x");
  await client.moveFile(id, "new", "moved");
  expect(text(await client.readFileBytes(id, "moved/deep/f"))).toBe("x");
  expect(await codeOf(client.statFile(id, "new"))).toBe("FILE_NOT_FOUND");
  expect(await codeOf(client.moveFile(id, "moved", "moved/deep/in"))).toBe("INVALID_ARGUMENT");
});

test("moving does not launder: what may only be read stays, and nothing lands where it is hidden", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  expect(await codeOf(client.moveFile(id, "out/old.txt", "secrets/x"))).toBe("FILE_PERMISSION_DENIED");
  expect(await codeOf(client.moveFile(id, "secrets/private.key", "out/x"))).toBe("FILE_NOT_FOUND");
});

test("a directory of which only hidden entries are left can be removed, and they stay in the codebase", async () => {
  await using mock = await openMock({
    permissions: [
      { pattern: "**/*", permission: "write" },
      { pattern: "**/*.key", permission: "none" },
    ],
    files: { "d/a.txt": "a", "d/b.key": "b" },
  });
  const { client, id, engine, codebaseId } = mock;
  await client.removeFile(id, "d/a.txt");
  await client.removeFile(id, "d");
  expect(await client.listDirectory(id, "/")).toEqual([]);
  await client.applyChanges(id);
  expect(engine.filesOf(codebaseId)).toHaveProperty(["d/b.key"], "b");
});

test("links are followed within the workspace and never out of it", async () => {
  await using mock = await openMock();
  const { client, id, codebaseId } = mock;
  await client.uploadSymlink(codebaseId, "in", "src/a.ts");
  await client.uploadSymlink(codebaseId, "absolute", "/workspace/src");
  await client.uploadSymlink(codebaseId, "etc", "/etc/passwd");
  await client.uploadSymlink(codebaseId, "up", "../outside");
  await client.uploadSymlink(codebaseId, "loop", "loop");
  await client.uploadSymlink(codebaseId, "hidden", "secrets/private.key");
  expect(text(await client.readFileBytes(id, "in"))).toContain("one");
  expect((await client.listDirectory(id, "absolute")).map(({ path }) => path)).toEqual(["absolute/a.ts"]);
  expect((await client.statFile(id, "etc")).target).toBe("/etc/passwd");
  for (const name of ["etc", "up", "loop"]) {
    expect([name, await codeOf(client.readFileBytes(id, name))]).toEqual([name, "FILE_WRONG_KIND"]);
  }
  expect(await codeOf(client.readFileBytes(id, "hidden"))).toBe("FILE_NOT_FOUND");
});

test("new rules are in force at once", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  await client.updatePermissions(id, [{ pattern: "/secrets/**", permission: "read" }]);
  expect((await client.listDirectory(id, "/")).map(({ name }) => name)).toEqual(["secrets"]);
  expect(text(await client.readFileBytes(id, "secrets/private.key"))).toBe("s3cret\n");
  expect((await client.getSandbox(id)).permissions).toEqual([{ pattern: "/secrets/**", permission: "read" }]);
});

test("a malformed rule is refused by its index", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const rules = [
    { pattern: "**/*", permission: "read" },
    { pattern: "", permission: "read" },
  ] as const;
  await expect(client.updatePermissions(id, rules)).rejects.toThrow(/rule 1/);
});

test("explain names the deciding rule and the losing ones", async () => {
  await using mock = await openMock();
  const { deciding, losing, permission, text: words } = await mock.client.explainPath(mock.id, "secrets/private.key");
  expect({ permission, deciding: deciding?.index, losing: losing.map(({ index }) => index) }).toEqual({
    permission: "none",
    deciding: 3,
    losing: [0],
  });
  expect(words).toBe("/secrets/private.key is none: rule 3 decides: none");
});

test("files need a running sandbox", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  await client.stopSandbox(id);
  expect(await codeOf(client.readFileBytes(id, "src/a.ts"))).toBe("SANDBOX_NOT_RUNNING");
  expect(await codeOf(client.exec(id, "true"))).toBe("SANDBOX_NOT_RUNNING");
  await client.destroySandbox(id);
  expect(await codeOf(client.readFileBytes(id, "src/a.ts"))).toBe("SANDBOX_NOT_FOUND");
});
