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

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
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
  expect(await codeOf(client.getCodebase("x"))).toBe("INVALID_ARGUMENT");
});

test("a codebase in use is deleted by force only, with its sandboxes", async () => {
  await using mock = await openMock();
  const { client, codebaseId, id } = mock;
  expect(await codeOf(client.deleteCodebase(codebaseId))).toBe("CODEBASE_IN_USE");
  await client.deleteCodebase(codebaseId, { force: true });
  expect(await codeOf(client.getSandbox(id))).toBe("SANDBOX_NOT_FOUND");
});

test("each change is a version that can be read and gone back to", async () => {
  const { client, engine } = open();
  const { id } = await client.createCodebase({ name: "x", ownerId: "me" });
  expect(await client.uploadFile(id, "a/b.txt", "one")).toEqual({
    path: "a/b.txt",
    size: 3,
    sha256: sha256("one"),
    version: 1,
  });
  expect(await client.uploadFile(id, "a/b.txt", "one")).toMatchObject({ version: 1 });
  await client.uploadFile(id, "a/b.txt", "two", { mode: 0o755 });
  await client.renameFile(id, "a", "c/d");
  await client.deleteFile(id, "c", { recursive: true });
  const versions = await client.listVersions(id, { pageSize: 2 }).toArray();
  expect(
    versions.map(({ version, origin, filesChanged, fileCount, size }) => [
      version,
      origin,
      filesChanged,
      fileCount,
      size,
    ]),
  ).toEqual([
    [4, "delete", 1, 0, 0],
    [3, "rename", 1, 1, 3],
    [2, "upload", 1, 1, 3],
    [1, "upload", 1, 1, 3],
  ]);
  expect((await client.getVersion(id, 3)).changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "deleted a",
    "deleted a/b.txt",
    "added c",
    "added c/d",
    "added c/d/b.txt",
  ]);
  expect(text(await client.downloadFile(id, "a/b.txt", { version: 1 }))).toBe("one");
  expect((await client.listFiles(id, { recursive: true, version: 3 }).toArray()).map(({ path }) => path)).toEqual([
    "c",
    "c/d",
    "c/d/b.txt",
  ]);
  expect(await client.rollback(id, 2)).toMatchObject({ version: 5, origin: "rollback" });
  expect(engine.filesOf(id)).toEqual({ "a/b.txt": "two" });
  expect((await client.listFiles(id, { path: "/a" }).toArray()).map(({ path, mode }) => [path, mode])).toEqual([
    ["/a/b.txt", 0o755],
  ]);
  expect(await codeOf(client.getVersion(id, 9))).toBe("VERSION_NOT_FOUND");
});

test("what arrives otherwise than announced, or cannot be there, is refused and leaves nothing", async () => {
  const { client, engine } = open();
  const { id } = await client.createCodebase({ name: "x", ownerId: "me" });
  await client.uploadFile(id, "file", "f");
  expect(await codeOf(client.uploadFile(id, "a", "one", { sha256: sha256("two") }))).toBe("UPLOAD_MISMATCH");
  expect(await codeOf(client.uploadFile(id, "file/below", "x"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.uploadFile(id, "a/../b", "x"))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.downloadFile(id, "nope"))).toBe("FILE_NOT_FOUND");
  await client.uploadFile(id, "d/x", "x");
  expect(await codeOf(client.uploadFile(id, "d", "x"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.downloadFile(id, "d"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.deleteFile(id, "d"))).toBe("FILE_WRONG_KIND");
  expect(await codeOf(client.renameFile(id, "file", "d/x"))).toBe("FILE_EXISTS");
  expect(await codeOf(client.renameFile(id, "d", "d/e"))).toBe("INVALID_ARGUMENT");
  expect(engine.filesOf(id)).toEqual({ "d/x": "x", file: "f" });
});

test("a batch is one version, and content that is there need not be sent", async () => {
  const { client, engine } = open();
  const { id } = await client.createCodebase({ name: "x", ownerId: "me" });
  await client.uploadFile(id, "old", "known");
  const entry = (path: string, content: string) =>
    ({ kind: "file", path, mode: 0o644, size: content.length, sha256: sha256(content) }) as const;
  const entries = [entry("a", "known"), entry("b", "new"), entry("empty", "")];
  expect(await client.compareManifest(id, entries)).toEqual(["b"]);
  const batch = [
    entries[0]!,
    { ...entries[1]!, content: Buffer.from("new") },
    entries[2]!,
    { kind: "symlink", path: "link", target: "a" } as const,
    { kind: "directory", path: "d", mode: 0o700 } as const,
  ];
  expect(await client.batchUpload(id, batch, { replaceAll: true, message: "all" })).toEqual({
    version: 2,
    filesChanged: 5,
    bytesReceived: 3,
  });
  expect(engine.filesOf(id)).toEqual({ a: "known", b: "new", empty: "" });
  expect((await client.getVersion(id, 2)).message).toBe("all");
  expect(await codeOf(client.batchUpload(id, [entry("c", "unknown")]))).toBe("CONTENT_MISSING");
  expect(await codeOf(client.batchUpload(id, [], { baseVersion: 1 }))).toBe("VERSION_CONFLICT");
  expect(await codeOf(client.batchUpload(id, [entry("a/x", "known")]))).toBe("FILE_WRONG_KIND");
});

test("an archive comes out as it went in", async () => {
  const { client, engine } = open();
  const long = `${"deep/".repeat(30)}${"n".repeat(120)}.txt`;
  const id = engine.addCodebase({ "a.txt": "a", "d/ü.bin": Uint8Array.of(0, 255), [long]: "far" });
  await client.uploadSymlink(id, "link", `../${"t".repeat(150)}`);
  const tar = await bytesOf(client.downloadArchive(id));
  const { id: copy } = await client.createCodebase({ name: "copy", ownerId: "me" });
  await client.uploadArchive(copy, tar, { message: "copied" });
  const shape = async (codebaseId: string) =>
    (await client.listFiles(codebaseId, { recursive: true }).toArray()).map(({ modifiedAt: _, ...rest }) => rest);
  expect(await shape(copy)).toEqual(await shape(id));
  const part = await bytesOf(client.downloadArchive(id, { path: "d" }));
  await client.uploadArchive(copy, part, { replaceAll: true });
  expect(Object.keys(engine.filesOf(copy))).toEqual(["ü.bin"]);
  expect(await codeOf(client.uploadArchive(copy, tar.subarray(0, 700)))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.uploadArchive(copy, Uint8Array.of(0x1f, 0x8b)))).toBe("INVALID_ARGUMENT");
});
