import { createHash } from "node:crypto";
import { chmod, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxClient } from "@agentfense/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../../support/server.ts";
import { makeTree } from "../../support/upload-tree.ts";

let server: TestServer;
let client: SandboxClient;
beforeAll(async () => {
  server = await TestServer.start();
  client = new SandboxClient({ endpoint: server.grpc });
});
afterAll(async () => {
  await client?.close();
  await server?.[Symbol.asyncDispose]();
});

const MOMENT: unknown = expect.any(Date);
const ID: unknown = expect.stringMatching(/^cb_[0-9a-f]+$/);

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function codebase(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const { id } = await client.createCodebase({ name: "project", ownerId: "tester" });
  for (const [path, content] of Object.entries(files)) await client.uploadFile(id, path, content);
  return id;
}

describe("codebases", () => {
  test("are made, found, listed page by page and deleted", async () => {
    const owner = { ownerId: "lister" };
    const made = await client.createCodebase({ name: "first", ...owner });
    expect(made).toEqual({
      id: ID,
      name: "first",
      ownerId: "lister",
      size: 0,
      fileCount: 0,
      version: 0,
      createdAt: MOMENT,
      updatedAt: MOMENT,
    });
    expect(await client.getCodebase(made.id)).toEqual(made);
    const second = await client.createCodebase({ name: "second", ...owner });
    const third = await client.createCodebase({ name: "third", ...owner });
    const listing = client.listCodebases({ ...owner, pageSize: 2 });
    const ids = (await listing.toArray()).map(({ id }) => id).sort();
    expect(ids).toEqual([made.id, second.id, third.id].sort());
    await client.deleteCodebase(third.id);
    // Each iteration begins anew.
    expect(await listing.toArray()).toHaveLength(2);
    await expect(client.getCodebase(third.id)).rejects.toMatchObject({
      name: "CodebaseNotFoundError",
      code: "CODEBASE_NOT_FOUND",
      retryable: false,
    });
  });

  test("are kept while a sandbox uses them, unless forced", async () => {
    const id = await codebase();
    const { id: sandboxId } = await client.createSandbox({ codebaseId: id });
    await expect(client.deleteCodebase(id)).rejects.toMatchObject({ name: "CodebaseError", code: "CODEBASE_IN_USE" });
    await client.deleteCodebase(id, { force: true });
    await expect(client.getSandbox(sandboxId)).rejects.toMatchObject({ name: "SandboxNotFoundError" });
  });
});

describe("files of a codebase", () => {
  test("go up as text, bytes and pieces, and come back the same", async () => {
    const id = await codebase();
    const large = Buffer.alloc(1_000_000, "0123456789");
    const pieces = async function* () {
      yield large.subarray(0, 300_000);
      yield large.subarray(300_000);
    };
    expect(await client.uploadFile(id, "a.txt", "alpha", { mode: 0o755, sha256: sha256("alpha") })).toEqual({
      path: "a.txt",
      size: 5,
      sha256: sha256("alpha"),
      version: 1,
    });
    await client.uploadFile(id, "bytes", large);
    await client.uploadFile(id, "pieces", pieces());
    await client.uploadFile(id, "stream", new Blob([large]).stream());
    await client.uploadFile(id, "empty", "");
    expect(text(await client.downloadFile(id, "a.txt"))).toBe("alpha");
    for (const name of ["bytes", "pieces"]) expect(large.equals(await client.downloadFile(id, name))).toBe(true);
    expect(large.equals(await readAll(client.downloadStream(id, "stream")))).toBe(true);
    expect(await client.downloadFile(id, "empty")).toEqual(new Uint8Array());
    expect(await client.uploadSymlink(id, "link", "/etc/passwd")).toEqual({
      path: "link",
      size: 0,
      sha256: "",
      version: 6,
    });
  });

  test("content that is not what it should be is an UploadError", async () => {
    const id = await codebase();
    await expect(client.uploadFile(id, "a", "alpha", { sha256: sha256("beta") })).rejects.toMatchObject({
      name: "UploadError",
      code: "UPLOAD_MISMATCH",
    });
  });

  test("a stream of a file that is not there fails with its first read", async () => {
    const id = await codebase();
    const stream = client.downloadStream(id, "none");
    await expect(stream.getReader().read()).rejects.toMatchObject({
      name: "FileNotFoundError",
      code: "FILE_NOT_FOUND",
    });
  });

  test("are listed with all there is to know", async () => {
    const id = await codebase({ "src/a.ts": "one", "b.txt": "two" });
    await client.uploadSymlink(id, "link", "b.txt");
    expect(await client.listFiles(id, { pageSize: 1 }).toArray()).toEqual([
      file({ path: "b.txt", name: "b.txt", size: 3, mode: 0o644, sha256: sha256("two") }),
      file({ path: "link", name: "link", kind: "symlink", mode: 0o777, target: "b.txt" }),
      file({ path: "src", name: "src", kind: "directory", mode: 0o755 }),
    ]);
    const below = await client.listFiles(id, { path: "/src", recursive: true, version: 1 }).toArray();
    expect(below).toEqual([file({ path: "/src/a.ts", name: "a.ts", size: 3, mode: 0o644, sha256: sha256("one") })]);
  });

  function file(known: object): object {
    return { kind: "file", size: 0, modifiedAt: MOMENT, target: "", sha256: "", ...known };
  }

  test("are renamed and deleted, each as a version", async () => {
    const id = await codebase({ "src/a": "one", "src/b": "two" });
    expect(await client.renameFile(id, "src", "lib")).toEqual({
      version: 3,
      filesChanged: expect.any(Number),
      bytesReceived: 0,
    });
    expect(await client.deleteFile(id, "lib/a")).toEqual({ version: 4, filesChanged: 1, bytesReceived: 0 });
    await client.deleteFile(id, "lib", { recursive: true });
    expect(await client.listFiles(id, { recursive: true }).toArray()).toEqual([]);
  });
});

describe("versions", () => {
  test("tell what changed, and can be gone back to", async () => {
    const id = await codebase({ a: "one" });
    await client.uploadFile(id, "a", "other");
    const version = {
      codebaseId: id,
      sandboxId: "",
      message: "",
      createdAt: MOMENT,
      filesChanged: 1,
      fileCount: 1,
      conflicts: [],
    };
    expect(await client.getVersion(id, 2)).toEqual({
      ...version,
      version: 2,
      origin: "upload",
      size: 5,
      changes: [{ kind: "modified", path: "a", size: 5, sensitive: false }],
    });
    const back = await client.rollback(id, 1);
    expect(back).toMatchObject({ version: 3, origin: "rollback", size: 3 });
    expect(text(await client.downloadFile(id, "a"))).toBe("one");
    expect(text(await client.downloadFile(id, "a", { version: 2 }))).toBe("other");
    const listed = await client.listVersions(id, { pageSize: 2 }).toArray();
    expect(listed.map(({ version: number, origin }) => [number, origin])).toEqual([
      [3, "rollback"],
      [2, "upload"],
      [1, "upload"],
    ]);
    await expect(client.getVersion(id, 9)).rejects.toMatchObject({ name: "CodebaseError", code: "VERSION_NOT_FOUND" });
  });
});

describe("many files at once", () => {
  test("a batch is one version; what the server has needs no content", async () => {
    const id = await codebase({ old: "old", same: "same" });
    const fileEntry = (path: string, content: string) =>
      ({ kind: "file", path, size: content.length, sha256: sha256(content) }) as const;
    const entries = [fileEntry("a", "new"), fileEntry("b", "same")];
    expect(await client.compareManifest(id, entries)).toEqual(["a"]);
    const counts: number[] = [];
    const result = await client.batchUpload(
      id,
      [
        { ...fileEntry("a", "new"), content: Buffer.from("new") },
        fileEntry("b", "same"),
        { kind: "directory", path: "empty", mode: 0o700 },
        { kind: "symlink", path: "link", target: "a" },
        { kind: "absent", path: "old" },
      ],
      { message: "all of it", baseVersion: 2, onBytes: (count) => counts.push(count) },
    );
    expect(result).toEqual({ version: 3, filesChanged: 4, bytesReceived: 3 });
    expect(counts).toEqual([3]);
    const listed = await client.listFiles(id, { recursive: true }).toArray();
    expect(listed.map(({ kind, path, target }) => `${kind} ${path} ${target}`.trim())).toEqual([
      "file a",
      "file b",
      "directory empty",
      "symlink link a",
      "file same",
    ]);
    expect(await client.getVersion(id, 3)).toMatchObject({ message: "all of it" });
    await expect(client.batchUpload(id, [], { baseVersion: 1 })).rejects.toMatchObject({
      name: "VersionConflictError",
      code: "VERSION_CONFLICT",
    });
  });

  test("an archive goes up and comes down", async () => {
    const from = await codebase({ "src/a": "one", b: "two" });
    const tar = await readAll(client.downloadArchive(from));
    const to = await codebase({ gone: "x" });
    expect(await client.uploadArchive(to, tar, { replaceAll: true, message: "copied" })).toMatchObject({ version: 2 });
    const listed = await client.listFiles(to, { recursive: true }).toArray();
    expect(listed.map(({ path }) => path)).toEqual(["b", "src", "src/a"]);
    const part = await readAll(client.downloadArchive(to, { path: "src" }));
    expect(part.length).toBeGreaterThan(0);
    expect(part.length).toBeLessThan(tar.length);
  });
});

describe("a local directory", () => {
  test("goes up without what is ignored, links as links, and a second time only what is new", async () => {
    const outside = await makeTree({ secret: "not yours" });
    const top = await makeTree({
      "src/a.ts": "one",
      "run.sh": "echo",
      "empty/": "",
      ".git/config": "x",
      ".gitignore": "*.log\n",
      "x.log": "no",
      "notes.txt": "no",
    });
    await chmod(join(top, "run.sh"), 0o755);
    await symlink(outside, join(top, "out"));
    const id = await codebase({ old: "old" });
    const options = { ignore: ["notes.txt"], replaceAll: true };
    expect(await client.uploadDirectory(id, top, options)).toEqual({
      version: 2,
      filesChanged: expect.any(Number),
      bytesReceived: 13,
      files: 4,
      bytes: 13,
      filesSent: 3,
      bytesSent: 13,
      leftOut: [],
    });
    const listed = await client.listFiles(id, { recursive: true }).toArray();
    expect(listed.map(({ kind, path, mode, target }) => [kind, path, mode, target])).toEqual([
      ["file", ".gitignore", 0o644, ""],
      ["directory", "empty", 0o755, ""],
      ["symlink", "out", 0o777, outside],
      ["file", "run.sh", 0o755, ""],
      ["directory", "src", 0o755, ""],
      ["file", "src/a.ts", 0o644, ""],
    ]);
    await writeFile(join(top, "src/b.ts"), "two");
    expect(await client.uploadDirectory(id, top, options)).toMatchObject({ version: 3, filesSent: 1, bytesSent: 3 });
  });
});
