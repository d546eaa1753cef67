import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { SandboxClient } from "../../src/client/client.ts";
import { MockEngine } from "../../src/testing/index.ts";
import { codeOf, openMock, text } from "./support.ts";

function open(): { readonly engine: MockEngine; readonly client: SandboxClient } {
  const engine = new MockEngine();
  return { engine, client: new SandboxClient({ engine }) };
}

function sha256(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

test("codebases are made, found, listed and deleted", async () => {
  const { client } = open();
  const one = await client.createCodebase({ name: "one", ownerId: "ann" });
  const two = await client.createCodebase({ name: "two", ownerId: "bob" });
  expect(one).toMatchObject({ name: "one", ownerId: "ann", size: 0, fileCount: 0, version: 0 });
  expect(await client.listCodebases({ pageSize: 1 }).toArray()).toMatchObject([{ id: one.id }, { id: two.id }]);
  expect(await client.listCodebases({ ownerId: "bob" }).toArray()).toMatchObject([{ id: two.id }]);
  await client.deleteCodebase(one.id);
  expect(await codeOf(client.getCodebase(one.id))).toBe("CODEBASE_NOT_FOUND");
});

test("a codebase in use is deleted by force only, with its sandboxes", async () => {
  await using mock = await openMock();
  const { client, codebaseId, id } = mock;
  expect(await codeOf(client.deleteCodebase(codebaseId))).toBe("CODEBASE_IN_USE");
  await client.deleteCodebase(codebaseId, { force: true });
  expect(await codeOf(client.getSandbox(id))).toBe("SANDBOX_NOT_FOUND");
});

test("each upload is a version, and earlier ones can be read", async () => {
  const { client, engine } = open();
  const { id } = await client.createCodebase({ name: "x", ownerId: "me" });
  expect(await client.uploadFile(id, "a/b.txt", "one")).toEqual({
    path: "a/b.txt",
    size: 3,
    sha256: sha256("one"),
    version: 1,
  });
  expect(await client.uploadFile(id, "a/b.txt", "one")).toMatchObject({ version: 1 });
  await client.uploadFile(id, "a/b.txt", "three", { mode: 0o755 });
  expect(await client.getCodebase(id)).toMatchObject({ version: 2, size: 5, fileCount: 1 });
  expect(text(await client.downloadFile(id, "a/b.txt", { version: 1 }))).toBe("one");
  expect(engine.filesOf(id)).toEqual({ "a/b.txt": "three" });
  expect((await client.listFiles(id, { recursive: true }).toArray()).map(({ path }) => path)).toEqual(["a", "a/b.txt"]);
  expect((await client.listFiles(id, { path: "/a" }).toArray()).map(({ path, mode }) => [path, mode])).toEqual([
    ["/a/b.txt", 0o755],
  ]);
  expect(await codeOf(client.downloadFile(id, "a/b.txt", { version: 9 }))).toBe("VERSION_NOT_FOUND");
});

test("what arrives otherwise than announced, or cannot be there, is refused and leaves nothing", async () => {
  const { client, engine } = open();
  const { id } = await client.createCodebase({ name: "x", ownerId: "me" });
  expect(await codeOf(client.uploadFile(id, "a", "one", { sha256: sha256("two") }))).toBe("UPLOAD_MISMATCH");
  expect(await codeOf(client.uploadFile(id, "a/../b", "x"))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.downloadFile(id, "nope"))).toBe("FILE_NOT_FOUND");
  await client.uploadFile(id, "d/x", "x");
  expect(await codeOf(client.uploadFile(id, "d", "x"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.downloadFile(id, "d"))).toBe("FILE_WRONG_KIND");
  expect(engine.filesOf(id)).toEqual({ "d/x": "x" });
});
