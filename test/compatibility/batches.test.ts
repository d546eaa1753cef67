import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Refusal, STATUSES, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

const sha256 = (content: string): string => createHash("sha256").update(content).digest("hex");
const fileEntry = (path: string, content: string): Message => ({
  path,
  size: String(content.length),
  checksum: sha256(content),
});
const item = (path: string, content: string): Message => ({
  entry: fileEntry(path, content),
  data: Buffer.from(content),
});
const batch = (...chunks: Message[]): Promise<Message> => api.grpc.send("CodebaseService", "BatchUpload", chunks);
/** A chunk a line, bytes in base64. */
const lines = (...chunks: unknown[]): string => chunks.map((chunk) => JSON.stringify(chunk)).join("\n");
const NDJSON = { headers: { "content-type": "application/x-ndjson" } };

async function filesOf(codebaseId: string): Promise<Message[]> {
  const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: codebaseId, recursive: true });
  return files as Message[];
}

async function pathsOf(codebaseId: string): Promise<unknown[]> {
  return (await filesOf(codebaseId)).map(({ path }) => path);
}

describe("batch upload", () => {
  test("many files, directories, links and modes are one version", async () => {
    const id = await api.codebase();
    const result = await batch(
      {
        begin: { codebase_id: id, message: "first" },
        items: [
          { entry: { ...fileEntry("run.sh", "echo"), mode: 0o755 }, data: Buffer.from("ec") },
          { data: Buffer.from("ho") },
        ],
      },
      { items: [{ entry: { path: "empty", kind: "ENTRY_KIND_DIRECTORY" } }, item("src/a.ts", "a")] },
      { items: [{ entry: { path: "link", kind: "ENTRY_KIND_SYMLINK", symlink_target: "src/a.ts" } }] },
    );
    expect(result).toEqual({ codebase_id: id, version: "1", files_changed: 3, bytes_received: "5" });
    expect(await filesOf(id)).toMatchObject([
      { path: "empty", is_dir: true, mode: 0o755 },
      { path: "link", symlink_target: "src/a.ts" },
      { path: "run.sh", mode: 0o755, size: "4", checksum: sha256("echo") },
      { path: "src", is_dir: true },
      { path: "src/a.ts", mode: 0o644, size: "1" },
    ]);
  });

  test("a second upload sends only what changed", async () => {
    const id = await api.codebase();
    const project = { "a.txt": "aaaa", "b.txt": "bbbb", "c.txt": "cccc" };
    await batch({ begin: { codebase_id: id }, items: Object.entries(project).map(([path, text]) => item(path, text)) });

    const changed = { ...project, "b.txt": "new", "d.txt": "aaaa" };
    const entries = Object.entries(changed).map(([path, text]) => fileEntry(path, text));
    const missing = ["b.txt"]; // d.txt has the content of a.txt
    expect(await api.call("CodebaseService.CompareManifest", { codebase_id: id, entries })).toEqual({ missing });
    const overRest = await api.rest.post(`/v1/codebases/${id}/manifest`, { entries });
    expect(overRest.json).toEqual({ missing });

    const items = entries.map((entry) => (entry.path === "b.txt" ? item("b.txt", "new") : { entry }));
    expect(await batch({ begin: { codebase_id: id, base_version: 1 }, items })).toMatchObject({
      version: "2",
      files_changed: 2,
      bytes_received: "3",
    });
    expect((await api.grpc.download(id, "d.txt")).toString()).toBe("aaaa");
  });

  test("replace_all removes what no entry names, ABSENT what it names", async () => {
    const id = await api.codebase({ "old/a.txt": "a", "b.txt": "b", "c.txt": "c" });
    const absent = { entry: { path: "c.txt", kind: "ENTRY_KIND_ABSENT" } };
    await batch({ begin: { codebase_id: id }, items: [absent] });
    expect(await pathsOf(id)).toEqual(["b.txt", "old", "old/a.txt"]);
    await batch({ begin: { codebase_id: id, replace_all: true }, items: [item("only.txt", "x")] });
    expect(await pathsOf(id)).toEqual(["only.txt"]);
  });

  test("a batch that changes nothing makes no version", async () => {
    const id = await api.codebase({ "a.txt": "a" });
    const same = { begin: { codebase_id: id }, items: [{ entry: fileEntry("a.txt", "a") }] };
    expect(await batch(same)).toMatchObject({ version: "1", files_changed: 0, bytes_received: "0" });
  });

  test("over REST it is lines of JSON", async () => {
    const id = await api.codebase();
    const body = lines(
      {
        begin: { message: "lines" },
        items: [{ entry: { path: "a.txt" }, data: Buffer.from("he").toString("base64") }],
      },
      { items: [{ data: Buffer.from("llo").toString("base64") }] },
      { items: [{ entry: { path: "dir", kind: "directory", mode: 0o700 } }] },
    );
    const { status, json } = await api.rest.request("POST", `/v1/codebases/${id}/batch`, body, NDJSON);
    expect({ status, json }).toEqual({
      status: 200,
      json: { codebaseId: id, version: "1", filesChanged: 1, bytesReceived: "5" },
    });
    expect((await api.grpc.download(id, "a.txt")).toString()).toBe("hello");
  });

  interface Row extends Omit<Refusal, "method" | "request" | "body"> {
    /** Over gRPC. */
    readonly chunks: readonly Message[];
    /** Over REST, when it can be said there. */
    readonly lines?: string;
  }
  const x = { entry: { path: "x" }, data: Buffer.from("x") };
  const xLine = { entry: { path: "x" }, data: "eA==" };
  const rows: readonly (readonly [string, (id: string) => Row])[] = [
    ["no begin", () => ({ chunks: [{ items: [x] }], status: "INVALID_ARGUMENT", message: "begin must be sent first" })],
    ["nothing at all", () => ({ chunks: [], status: "INVALID_ARGUMENT", message: "no begin received" })],
    [
      "begin twice",
      (id) => ({
        chunks: [{ begin: { codebase_id: id } }, { begin: { codebase_id: id }, items: [x] }],
        lines: lines({ items: [xLine] }, { begin: {} }),
        status: "INVALID_ARGUMENT",
        message: "begin already received",
      }),
    ],
    [
      "no codebase",
      () => ({ chunks: [{ begin: {} }], status: "INVALID_ARGUMENT", message: "codebase_id is required in begin" }),
    ],
    [
      "data before the first entry",
      (id) => ({
        chunks: [{ begin: { codebase_id: id }, items: [{ data: Buffer.from("x") }] }],
        lines: lines({ items: [{ data: "eA==" }] }),
        status: "INVALID_ARGUMENT",
        message: /^items\[0\]: entry is required/,
      }),
    ],
    [
      "content that the server does not have",
      (id) => ({
        chunks: [{ begin: { codebase_id: id }, items: [x, { entry: fileEntry("y", "unknown") }] }],
        lines: lines({ items: [xLine, { entry: fileEntry("y", "unknown") }] }),
        status: "FAILED_PRECONDITION",
        message: /y/,
      }),
    ],
    [
      "another content than announced",
      (id) => ({
        chunks: [{ begin: { codebase_id: id }, items: [{ entry: fileEntry("y", "abc"), data: Buffer.from("xyz") }] }],
        lines: lines({ items: [{ entry: fileEntry("y", "abc"), data: "eHl6" }] }),
        status: "DATA_LOSS",
        message: '"y" did not arrive as announced: the checksum is another',
      }),
    ],
    [
      "another version than it builds on",
      (id) => ({
        chunks: [{ begin: { codebase_id: id, base_version: 9 }, items: [x] }],
        lines: lines({ begin: { baseVersion: "9" }, items: [xLine] }),
        status: "ABORTED",
        message: "the codebase is at version 1, not 9",
      }),
    ],
    [
      "a path twice",
      (id) => ({
        chunks: [{ begin: { codebase_id: id }, items: [x, x] }],
        lines: lines({ items: [xLine, xLine] }),
        status: "INVALID_ARGUMENT",
        message: '"x" is named twice',
      }),
    ],
    [
      "a path that leads elsewhere",
      (id) => ({
        chunks: [{ begin: { codebase_id: id }, items: [x, item("../y", "y")] }],
        lines: lines({ items: [xLine, { entry: { path: "../y" } }] }),
        status: "INVALID_ARGUMENT",
        message: /^invalid path "\.\.\/y"/,
      }),
    ],
    [
      "a path below a link of the same batch",
      (id) => ({
        chunks: [
          {
            begin: { codebase_id: id },
            items: [
              { entry: { path: "link", kind: "ENTRY_KIND_SYMLINK", symlink_target: "/etc" } },
              item("link/passwd", "x"),
            ],
          },
        ],
        lines: lines({
          items: [
            { entry: { path: "link", kind: "symlink", symlink_target: "/etc" } },
            { entry: { path: "link/passwd" }, data: "eA==" },
          ],
        }),
        status: "INVALID_ARGUMENT",
        message: /cannot be below "link"/,
      }),
    ],
  ];

  test.each(rows)("all or nothing: %s", async (_title, row) => {
    const id = await api.codebase({ "kept.txt": "kept" });
    const { chunks, lines: body, ...refusal } = row(id);
    await api.refused({ method: "CodebaseService.BatchUpload", request: chunks, ...refusal });
    if (body !== undefined) {
      const { status, json } = await api.rest.request("POST", `/v1/codebases/${id}/batch`, body, NDJSON);
      const [number, httpStatus] = STATUSES[refusal.status];
      expect({ status, json }).toMatchObject({ status: httpStatus, json: { code: number } });
      expect(json.message).toMatch(refusal.message);
    }
    expect(await pathsOf(id)).toEqual(["kept.txt"]);
    expect((await api.rest.get(`/v1/codebases/${id}`)).json).toMatchObject({ version: "1", size: "4" });
  });

  test("a line that is no JSON is refused with its number", async () => {
    const id = await api.codebase();
    const body = `${JSON.stringify({ items: [xLine] })}\n{"items": [\n`;
    const { status, json } = await api.rest.request("POST", `/v1/codebases/${id}/batch`, body, NDJSON);
    expect({ status, json }).toMatchObject({
      status: 400,
      json: { code: 3, message: expect.stringMatching(/^line 2: /) },
    });
    expect(await pathsOf(id)).toEqual([]);
  });
});

describe("compare manifest", () => {
  const rows: readonly (readonly [string, (id: string) => Omit<Refusal, "method">])[] = [
    [
      "no codebase",
      () => ({
        rest: "POST /v1/codebases//manifest",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
    [
      "an unknown codebase",
      () => ({
        request: { codebase_id: UNKNOWN.codebase },
        rest: `POST /v1/codebases/${UNKNOWN.codebase}/manifest`,
        status: "NOT_FOUND",
        message: "codebase not found",
      }),
    ],
    [
      "an entry without a path",
      (id) => ({
        request: { codebase_id: id, entries: [{ path: "a" }, {}] },
        rest: `POST /v1/codebases/${id}/manifest`,
        status: "INVALID_ARGUMENT",
        message: "entries[1]: path is required",
      }),
    ],
    [
      "a negative size",
      (id) => ({
        request: { codebase_id: id, entries: [{ path: "a", size: "-1" }] },
        rest: `POST /v1/codebases/${id}/manifest`,
        status: "INVALID_ARGUMENT",
        message: "entries[0]: size must not be negative",
      }),
    ],
  ];

  test.each(rows)("refused: %s", async (_title, row) => {
    await api.refused({ method: "CodebaseService.CompareManifest", ...row(await api.codebase()) });
  });
});

describe("archives", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "agentfense-archives-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const tar = (...args: string[]): Buffer => execFileSync("tar", ["-C", folder, ...args], { maxBuffer: 1 << 26 });
  const names = (archive: Uint8Array): string[] =>
    execFileSync("tar", ["-t"], { input: archive, encoding: "utf8" }).trim().split("\n");
  const sendArchive = (metadata: Message, archive: Buffer): Promise<Message> =>
    api.grpc.send("CodebaseService", "UploadArchive", [
      { metadata },
      { data: archive.subarray(0, 700) },
      { data: archive.subarray(700) },
    ]);

  test("a tar goes in as one version and comes out again, whole and in part", async () => {
    mkdirSync(join(folder, "p/sub/empty"), { recursive: true });
    writeFileSync(join(folder, "p/a.sh"), "echo a");
    chmodSync(join(folder, "p/a.sh"), 0o755);
    writeFileSync(join(folder, "p/sub/b"), "b");
    symlinkSync("../a.sh", join(folder, "p/sub/link"));
    const archive = tar("-C", "p", "-c", ".");

    const id = await api.codebase({ "stale.txt": "s" });
    expect(await sendArchive({ codebase_id: id, replace_all: true, message: "tar" }, archive)).toMatchObject({
      codebase_id: id,
      version: "2",
      bytes_received: "7",
    });
    const expected = [
      { path: "a.sh", mode: 0o755 },
      { path: "sub", is_dir: true },
      { path: "sub/b", size: "1" },
      { path: "sub/empty", is_dir: true },
      { path: "sub/link", symlink_target: "../a.sh" },
    ];
    expect(await filesOf(id)).toMatchObject(expected);

    const chunks = await api.grpc.collect("CodebaseService", "DownloadArchive", { codebase_id: id });
    const whole = Buffer.concat(chunks.map(({ data }) => data as Buffer));
    expect(names(whole)).toEqual(["a.sh", "sub", "sub/b", "sub/empty", "sub/link"]);

    const part = await fetch(`${api.server.http}/v1/codebases/${id}/archive?path=sub`);
    expect(part.headers.get("content-type")).toBe("application/x-tar");
    expect(names(new Uint8Array(await part.arrayBuffer()))).toEqual(["b", "empty", "link"]);

    const copy = await api.codebase();
    const put = await api.rest.request("PUT", `/v1/codebases/${copy}/archive?message=again`, whole, {
      headers: { "content-type": "application/x-tar" },
    });
    expect({ status: put.status, json: put.json }).toMatchObject({ status: 200, json: { version: "1" } });
    expect(await filesOf(copy)).toMatchObject(expected);
    expect((await api.rest.get(`/v1/codebases/${copy}/archive`)).status).toBe(200);
  });

  test("API-11 an entry that leads elsewhere, or is no file, spoils the whole archive", async () => {
    writeFileSync(join(folder, "ok"), "ok");
    execFileSync("mkfifo", [join(folder, "fifo")]);
    writeFileSync(join(folder, "one"), "1");
    execFileSync("ln", [join(folder, "one"), join(folder, "two")]);
    const hostile: readonly (readonly [Buffer, RegExp])[] = [
      [tar("-c", "ok", "--transform=s,^ok,../ok,", "-P"), /\.\./],
      [tar("-c", "ok", "--transform=s,^ok,/etc/ok,", "-P"), /its name is absolute/],
      [tar("-c", "ok", "fifo"), /"fifo" is refused/],
      [tar("-c", "one", "two"), /"two" is refused: it is a hard link/],
      [tar("-cz", "ok"), /the archive is compressed/],
      [Buffer.from("this is no tar archive at all".repeat(50)), /archive/],
    ];
    for (const [archive, message] of hostile) {
      const id = await api.codebase({ "kept.txt": "kept" });
      await api.refused({
        method: "CodebaseService.UploadArchive",
        request: [{ metadata: { codebase_id: id } }, { data: archive }],
        rest: `PUT /v1/codebases/${id}/archive`,
        body: archive,
        status: "INVALID_ARGUMENT",
        message,
      });
      expect(await pathsOf(id)).toEqual(["kept.txt"]);
    }
  });

  const rows: readonly (readonly [string, Refusal])[] = [
    [
      "upload: data first",
      {
        method: "CodebaseService.UploadArchive",
        request: [{ data: Buffer.from("x") }],
        status: "INVALID_ARGUMENT",
        message: "metadata must be sent first",
      },
    ],
    [
      "upload: no codebase",
      {
        method: "CodebaseService.UploadArchive",
        request: [{ metadata: {} }],
        rest: "PUT /v1/codebases//archive",
        body: "x",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required in metadata",
      },
    ],
    [
      "upload: an unknown codebase",
      {
        method: "CodebaseService.UploadArchive",
        request: [{ metadata: { codebase_id: UNKNOWN.codebase } }],
        rest: `PUT /v1/codebases/${UNKNOWN.codebase}/archive`,
        body: "x",
        status: "NOT_FOUND",
        message: "codebase not found",
      },
    ],
    [
      "download: no codebase",
      {
        method: "CodebaseService.DownloadArchive",
        rest: "GET /v1/codebases//archive",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      },
    ],
    [
      "download: an unknown codebase",
      {
        method: "CodebaseService.DownloadArchive",
        request: { codebase_id: UNKNOWN.codebase },
        rest: `GET /v1/codebases/${UNKNOWN.codebase}/archive`,
        status: "NOT_FOUND",
        message: "codebase not found",
      },
    ],
  ];

  test.each(rows)("refused: %s", async (_title, refusal) => {
    await api.refused(refusal);
  });

  test("refused: a download of what is not there, or no directory", async () => {
    const id = await api.codebase({ "a.txt": "a" });
    const refused = (path: string, rest: Pick<Refusal, "status" | "message">): Promise<void> =>
      api.refused({
        method: "CodebaseService.DownloadArchive",
        request: { codebase_id: id, path },
        rest: `GET /v1/codebases/${id}/archive?path=${encodeURIComponent(path)}`,
        ...rest,
      });
    await refused("none", { status: "NOT_FOUND", message: "file not found: none" });
    await refused("a.txt", { status: "FAILED_PRECONDITION", message: '"a.txt" is a file, not a directory' });
    await refused("../x", { status: "INVALID_ARGUMENT", message: /^invalid path/ });
  });
});

testsCover(api, COVERAGE.batches);
