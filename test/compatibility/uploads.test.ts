import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi({ settings: { storage: { max_file_size: "1MiB" } } });

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");

const listed = async (codebaseId: string): Promise<string[]> => {
  const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: codebaseId, recursive: true });
  return (files as { path: string }[]).map(({ path }) => path);
};

describe("upload", () => {
  test("a file in chunks arrives whole, with the SHA-256 of its content", async () => {
    const id = await api.codebase();
    const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
    expect(await api.grpc.upload(id, "src/data.bin", content)).toEqual({
      codebase_id: id,
      file_path: "src/data.bin",
      size: "300000",
      checksum: sha256(content),
      version: "1",
    });
    expect((await api.grpc.download(id, "src/data.bin")).equals(content)).toBe(true);
  });

  test("over REST the body is the content", async () => {
    const id = await api.codebase();
    const put = await api.rest.request("PUT", `/v1/codebases/${id}/files/docs/a%20b.txt`, "hello");
    expect({ status: put.status, json: put.json }).toEqual({
      status: 200,
      json: { codebaseId: id, filePath: "docs/a b.txt", size: "5", checksum: sha256("hello"), version: "1" },
    });
    const got = await api.rest.get(`/v1/codebases/${id}/files/docs/a%20b.txt`);
    expect({ status: got.status, text: got.text }).toEqual({ status: 200, text: "hello" });
    expect(got.headers.get("content-type")).toBe("application/octet-stream");
    expect(got.headers.get("content-disposition")).toBe("attachment");
  });

  test("an empty file: metadata alone, and an empty body", async () => {
    const id = await api.codebase();
    const empty = { size: "0", checksum: sha256("") };
    expect(await api.grpc.upload(id, "empty", "")).toMatchObject(empty);
    const put = await api.rest.raw("PUT", `/v1/codebases/${id}/files/empty2`, "", { "content-length": "0" });
    expect(put.json).toMatchObject(empty);
    expect(await listed(id)).toEqual(["empty", "empty2"]);
    expect((await api.rest.get(`/v1/codebases/${id}/files/empty`)).text).toBe("");
  });

  test("a mode is kept, an upload without one keeps that of the file it replaces", async () => {
    const id = await api.codebase();
    const modeOf = async (): Promise<unknown> => {
      const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: id });
      return (files as { mode: number }[])[0]?.mode;
    };
    await api.grpc.upload(id, "run.sh", "echo 1", { mode: 0o755 });
    expect(await modeOf()).toBe(0o755);
    await api.grpc.upload(id, "run.sh", "echo 2");
    expect(await modeOf()).toBe(0o755);
    await api.rest.request("PUT", `/v1/codebases/${id}/files/run.sh?mode=0o600`, "echo 3");
    expect(await modeOf()).toBe(0o600);
  });

  test("a symbolic link is kept as one and never followed", async () => {
    const id = await api.codebase();
    const metadata = { codebase_id: id, file_path: "link", symlink_target: "/etc/passwd" };
    await api.grpc.send("CodebaseService", "UploadFiles", [{ metadata }]);
    const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: id });
    expect(files).toMatchObject([{ path: "link", is_dir: false, symlink_target: "/etc/passwd" }]);
    await api.refused({
      method: "CodebaseService.DownloadFile",
      request: { codebase_id: id, file_path: "link" },
      rest: `GET /v1/codebases/${id}/files/link`,
      status: "FAILED_PRECONDITION",
      message: /link/,
    });
  });

  test("a chunk without content is skipped, as it always was", async () => {
    const id = await api.codebase();
    const messages = [{}, { metadata: { codebase_id: id, file_path: "a" } }, {}, { data: Buffer.from("a") }];
    expect(await api.grpc.send("CodebaseService", "UploadFiles", messages)).toMatchObject({ size: "1" });
  });
});

describe("the protocol of UploadFiles", () => {
  const data = { data: Buffer.from("x") };
  const rows: readonly (readonly [string, (id: string) => readonly Message[], string])[] = [
    ["data first", () => [data], "metadata must be sent first"],
    ["nothing at all", () => [], "no metadata received"],
    [
      "metadata twice",
      (id) => [
        { metadata: { codebase_id: id, file_path: "a" } },
        data,
        { metadata: { codebase_id: id, file_path: "b" } },
      ],
      "metadata already received",
    ],
    ["no codebase", () => [{ metadata: { file_path: "a" } }, data], "codebase_id is required in metadata"],
    ["no path", (id) => [{ metadata: { codebase_id: id } }, data], "file_path is required in metadata"],
  ];

  test.each(rows)("%s is refused and nothing is written", async (_title, messages, message) => {
    const id = await api.codebase();
    await api.refused({
      method: "CodebaseService.UploadFiles",
      request: messages(id),
      status: "INVALID_ARGUMENT",
      message,
    });
    expect(await listed(id)).toEqual([]);
  });

  test("over REST an empty path is refused alike", async () => {
    const id = await api.codebase();
    const { status, json } = await api.rest.request("PUT", `/v1/codebases/${id}/files/`, "x");
    expect({ status, json }).toMatchObject({
      status: 400,
      json: { code: 3, message: "file_path is required in metadata" },
    });
  });
});

const metadata = (codebaseId: string, filePath: string, more: Message = {}): Message => ({
  metadata: { codebase_id: codebaseId, file_path: filePath, ...more },
});

describe("refused uploads leave what was there", () => {
  const rows: readonly (readonly [string, (id: string) => Omit<Refusal, "method">])[] = [
    [
      "an unknown codebase",
      () => ({
        request: [metadata(UNKNOWN.codebase, "a"), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${UNKNOWN.codebase}/files/a`,
        body: "x",
        status: "NOT_FOUND",
        message: "codebase not found",
      }),
    ],
    [
      "an id of another shape",
      () => ({
        request: [metadata("cb_../x", "a")],
        rest: "PUT /v1/codebases/cb_..%2Fx/files/a",
        body: "x",
        status: "INVALID_ARGUMENT",
        message: /^codebase_id is not/,
      }),
    ],
    [
      "a path that is a directory",
      (id) => ({
        request: [metadata(id, "dir"), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/dir`,
        body: "x",
        status: "FAILED_PRECONDITION",
        message: '"dir" is a directory',
      }),
    ],
    [
      "a path below a file",
      (id) => ({
        request: [metadata(id, "kept.txt/b"), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt/b`,
        body: "x",
        status: "FAILED_PRECONDITION",
        message: /cannot be below "kept.txt", which is a file/,
      }),
    ],
    [
      "fewer bytes than announced",
      (id) => ({
        request: [metadata(id, "kept.txt", { total_size: "10" }), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt?total_size=10`,
        body: "x",
        status: "DATA_LOSS",
        message: /1 bytes arrived, 10 were announced/,
      }),
    ],
    [
      "more bytes than announced",
      (id) => ({
        request: [metadata(id, "kept.txt", { total_size: "1" }), { data: Buffer.from("xyz") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt?totalSize=1`,
        body: "xyz",
        status: "DATA_LOSS",
        message: /more than the 1 bytes arrived/,
      }),
    ],
    [
      "another checksum than announced",
      (id) => ({
        request: [metadata(id, "kept.txt", { checksum: sha256("y") }), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt?checksum=${sha256("y")}`,
        body: "x",
        status: "DATA_LOSS",
        message: /the checksum is another/,
      }),
    ],
    [
      "a checksum that is none",
      (id) => ({
        request: [metadata(id, "kept.txt", { checksum: "abc" }), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt?checksum=abc`,
        body: "x",
        status: "INVALID_ARGUMENT",
        message: /SHA-256 in hexadecimal is 64 digits/,
      }),
    ],
    [
      "a mode with more than permission bits",
      (id) => ({
        request: [metadata(id, "kept.txt", { mode: 0o100644 }), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt?mode=0o100644`,
        body: "x",
        status: "INVALID_ARGUMENT",
        message: /^mode must be permission bits only/,
      }),
    ],
    [
      "a negative size",
      (id) => ({
        request: [metadata(id, "kept.txt", { total_size: "-1" }), { data: Buffer.from("x") }],
        rest: `PUT /v1/codebases/${id}/files/kept.txt?total_size=-1`,
        body: "x",
        status: "INVALID_ARGUMENT",
        message: "total_size must not be negative",
      }),
    ],
    [
      "more than a file may have",
      (id) => ({
        request: [metadata(id, "kept.txt"), ...Array.from({ length: 17 }, () => ({ data: Buffer.alloc(65_536) }))],
        rest: `PUT /v1/codebases/${id}/files/kept.txt`,
        body: Buffer.alloc(17 * 65_536),
        status: "RESOURCE_EXHAUSTED",
        message: /a file may have 1048576 bytes at most/,
      }),
    ],
  ];

  test.each(rows)("%s", async (_title, row) => {
    const id = await api.codebase({ "kept.txt": "kept", "dir/file": "f" });
    await api.refused({ method: "CodebaseService.UploadFiles", ...row(id) });
    expect(await listed(id)).toEqual(["dir", "dir/file", "kept.txt"]);
    expect((await api.grpc.download(id, "kept.txt")).toString()).toBe("kept");
    expect((await api.rest.get(`/v1/codebases/${id}`)).json).toMatchObject({ size: "5", fileCount: 2, version: "2" });
  });

  const HOSTILE = ["../a", "a/../../b", "..", "a/./b", "a//b", "/../a", "a\\b", "a\nb", "a\0b", "x".repeat(256)];

  test.each(HOSTILE)("API-08 a path that leads elsewhere or is none: %j", async (path) => {
    const id = await api.codebase();
    const status = "INVALID_ARGUMENT";
    const message = /^invalid path/;
    const request = [metadata(id, path), { data: Buffer.from("x") }];
    await api.refused({ method: "CodebaseService.UploadFiles", request, status, message });
    await api.refused({
      method: "CodebaseService.DownloadFile",
      request: { codebase_id: id, file_path: path },
      status,
      message,
    });
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    for (const [verb, body] of [
      ["PUT", "x"],
      ["GET", undefined],
      ["DELETE", undefined],
    ] as const) {
      const headers: Record<string, string> = verb === "PUT" ? { "content-type": "application/octet-stream" } : {};
      const answer = await api.rest.raw(verb, `/v1/codebases/${id}/files/${encoded}`, body, headers);
      expect({ verb, status: answer.status, code: answer.json.code }).toEqual({ verb, status: 400, code: 3 });
      expect(answer.json.message).not.toContain(api.server.directory);
    }
    expect(await listed(id)).toEqual([]);
  });

  test("a stream that is cut leaves nothing", async () => {
    const id = await api.codebase();
    const ended = Promise.withResolvers<{ code: number }>();
    const client = api.grpc.client("CodebaseService") as unknown as {
      UploadFiles(callback: (error: { code: number }) => void): {
        write(message: Message, sent?: () => void): void;
        cancel(): void;
        on(event: "error", listener: () => void): void;
      };
    };
    const stream = client.UploadFiles((error) => ended.resolve(error));
    stream.on("error", () => {});
    stream.write(metadata(id, "half"));
    await new Promise<void>((sent) => stream.write({ data: Buffer.alloc(100_000) }, sent));
    stream.cancel();
    expect((await ended.promise).code).toBe(1);
    expect(await listed(id)).toEqual([]);
    expect((await api.rest.get(`/v1/codebases/${id}`)).json).toMatchObject({ size: "0", version: "0" });
  });
});

describe("download", () => {
  test("a leading slash is taken as the root of the codebase", async () => {
    const id = await api.codebase({ "a.txt": "a" });
    expect((await api.grpc.download(id, "/a.txt")).toString()).toBe("a");
  });

  test("a part of the past is asked for by version", async () => {
    const id = await api.codebase({ "a.txt": "old" });
    await api.grpc.upload(id, "a.txt", "new");
    expect((await api.grpc.download(id, "a.txt", { version: 1 })).toString()).toBe("old");
    expect((await api.rest.get(`/v1/codebases/${id}/files/a.txt?version=1`)).text).toBe("old");
    expect((await api.rest.get(`/v1/codebases/${id}/files/a.txt`)).text).toBe("new");
  });

  const rows: readonly (readonly [string, (id: string) => Omit<Refusal, "method">])[] = [
    [
      "no codebase",
      () => ({
        request: { file_path: "a" },
        rest: "GET /v1/codebases//files/a",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
    [
      "no path",
      (id) => ({
        request: { codebase_id: id },
        rest: `GET /v1/codebases/${id}/files/`,
        status: "INVALID_ARGUMENT",
        message: "file_path is required",
      }),
    ],
    [
      "an unknown codebase",
      () => ({
        request: { codebase_id: UNKNOWN.codebase, file_path: "a" },
        rest: `GET /v1/codebases/${UNKNOWN.codebase}/files/a`,
        status: "NOT_FOUND",
        message: "codebase not found",
      }),
    ],
    [
      "an unknown file",
      (id) => ({
        request: { codebase_id: id, file_path: "none.txt" },
        rest: `GET /v1/codebases/${id}/files/none.txt`,
        status: "NOT_FOUND",
        message: "file not found: none.txt",
      }),
    ],
    [
      "a directory",
      (id) => ({
        request: { codebase_id: id, file_path: "dir" },
        rest: `GET /v1/codebases/${id}/files/dir`,
        status: "FAILED_PRECONDITION",
        message: /^"dir" is a directory/,
      }),
    ],
    [
      "an unknown version",
      (id) => ({
        request: { codebase_id: id, file_path: "dir/a", version: 9 },
        rest: `GET /v1/codebases/${id}/files/dir/a?version=9`,
        status: "NOT_FOUND",
        message: "version 9 not found: the newest is 1",
      }),
    ],
  ];

  test.each(rows)("refused: %s", async (_title, row) => {
    await api.refused({ method: "CodebaseService.DownloadFile", ...row(await api.codebase({ "dir/a": "a" })) });
  });
});

testsCover(api, COVERAGE.uploads);
