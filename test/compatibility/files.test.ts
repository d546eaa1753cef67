import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import type { Message, MethodName } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
const PROJECT = { "README.md": "read", "src/a.ts": "a", "src/lib/b.ts": "bb", "z.txt": "z" };

async function paths(request: Message): Promise<unknown[]> {
  const { files } = await api.call("CodebaseService.ListFiles", request);
  return (files as Message[]).map(({ path }) => path);
}

describe("list", () => {
  test("a directory, every field over gRPC and over REST", async () => {
    const id = await api.codebase({ "src/a.ts": "abc" });
    const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: id, recursive: true });
    const time = { seconds: expect.stringMatching(/^\d+$/), nanos: expect.any(Number) };
    const common = { modified_at: time, symlink_target: "", permission: "PERMISSION_UNSPECIFIED", attributes: {} };
    expect(files).toEqual([
      { path: "src", name: "src", is_dir: true, size: "0", mode: 0o755, checksum: "", ...common },
      {
        path: "src/a.ts",
        name: "a.ts",
        is_dir: false,
        size: "3",
        mode: 0o644,
        checksum: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ...common,
      },
    ]);
    expect((await api.rest.get(`/v1/codebases/${id}/files?path=src`)).json).toEqual({
      files: [
        {
          path: "src/a.ts",
          name: "a.ts",
          isDir: false,
          size: "3",
          modifiedAt: expect.stringMatching(/^\d{4}-.*Z$/),
          mode: 0o644,
          symlinkTarget: "",
          checksum: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
          permission: "PERMISSION_UNSPECIFIED",
          attributes: {},
        },
      ],
      nextPageToken: "",
    });
  });

  test("one level or all of them, and paths that begin as the request's did", async () => {
    const id = await api.codebase(PROJECT);
    const of = (request: Message): Promise<unknown[]> => paths({ codebase_id: id, ...request });
    expect(await of({})).toEqual(["README.md", "src", "z.txt"]);
    expect(await of({ recursive: true })).toEqual(["README.md", "src", "src/a.ts", "src/lib", "src/lib/b.ts", "z.txt"]);
    expect(await of({ path: "src" })).toEqual(["src/a.ts", "src/lib"]);
    expect(await of({ path: "src/" })).toEqual(["src/a.ts", "src/lib"]);
    expect(await of({ path: "/src", recursive: true })).toEqual(["/src/a.ts", "/src/lib", "/src/lib/b.ts"]);
    expect(await of({ path: "/" })).toEqual(["/README.md", "/src", "/z.txt"]);
    const overRest = await api.rest.get(`/v1/codebases/${id}/files?path=src&recursive=true`);
    expect((overRest.json.files as Message[]).map(({ path }) => path)).toEqual(["src/a.ts", "src/lib", "src/lib/b.ts"]);
  });

  test("an empty codebase, and a missing path without recursion: an empty list", async () => {
    const id = await api.codebase();
    expect(await paths({ codebase_id: id, recursive: true })).toEqual([]);
    expect(await paths({ codebase_id: id, path: "none" })).toEqual([]);
    expect((await api.rest.get(`/v1/codebases/${id}/files?path=none`)).json).toEqual({ files: [], nextPageToken: "" });
  });

  test("pages are of one version, whatever is changed between them", async () => {
    const id = await api.codebase(Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`f${index}`, "x"])));
    const first = await api.call("CodebaseService.ListFiles", { codebase_id: id, page_size: 3 });
    await api.grpc.upload(id, "f0a", "late");
    await api.call("CodebaseService.DeleteFile", { codebase_id: id, file_path: "f5" });

    const seen = (first.files as Message[]).map(({ path }) => path);
    let token = first.next_page_token as string;
    while (token !== "") {
      const { json } = await api.rest.get(`/v1/codebases/${id}/files?page_size=3&page_token=${token}`);
      seen.push(...(json.files as Message[]).map(({ path }) => path));
      token = json.nextPageToken as string;
    }
    expect(seen).toEqual(["f0", "f1", "f2", "f3", "f4", "f5", "f6"]);
    expect(await paths({ codebase_id: id })).toEqual(["f0", "f0a", "f1", "f2", "f3", "f4", "f6"]);
  });
});

describe("delete and rename", () => {
  test("a file goes, as a version", async () => {
    const id = await api.codebase(PROJECT);
    const deleted = await api.call("CodebaseService.DeleteFile", { codebase_id: id, file_path: "z.txt" });
    expect(deleted).toEqual({ codebase_id: id, version: "5", files_changed: 1, bytes_received: "0" });
    const answer = await api.rest.delete(`/v1/codebases/${id}/files/README.md`);
    expect({ status: answer.status, json: answer.json }).toEqual({
      status: 200,
      json: { codebaseId: id, version: "6", filesChanged: 1, bytesReceived: "0" },
    });
    expect(await paths({ codebase_id: id })).toEqual(["src"]);
  });

  test("a directory goes with all below it when that is asked for", async () => {
    const id = await api.codebase(PROJECT);
    await api.refused({
      method: "CodebaseService.DeleteFile",
      request: { codebase_id: id, file_path: "src" },
      rest: `DELETE /v1/codebases/${id}/files/src`,
      status: "FAILED_PRECONDITION",
      message: '"src" is a directory that is not empty',
    });
    await api.rest.delete(`/v1/codebases/${id}/files/src?recursive=true`);
    expect(await paths({ codebase_id: id, recursive: true })).toEqual(["README.md", "z.txt"]);
  });

  test("a file and a directory move, over gRPC and over REST", async () => {
    const id = await api.codebase(PROJECT);
    const renamed = await api.call("CodebaseService.RenameFile", {
      codebase_id: id,
      from_path: "z.txt",
      to_path: "deep/er/y.txt",
    });
    expect(renamed).toMatchObject({ codebase_id: id, version: "5" });
    await api.rest.post(`/v1/codebases/${id}/rename`, { fromPath: "src", toPath: "lib" });
    expect(await paths({ codebase_id: id, recursive: true })).toEqual([
      "README.md",
      "deep",
      "deep/er",
      "deep/er/y.txt",
      "lib",
      "lib/a.ts",
      "lib/lib",
      "lib/lib/b.ts",
    ]);
    expect((await api.grpc.download(id, "lib/lib/b.ts")).toString()).toBe("bb");
  });
});

describe("refused", () => {
  const LIST: MethodName = "CodebaseService.ListFiles";
  const DELETE: MethodName = "CodebaseService.DeleteFile";
  const RENAME: MethodName = "CodebaseService.RenameFile";
  const rows: readonly (readonly [string, (id: string) => Refusal])[] = [
    [
      "list: no codebase",
      () => ({
        method: LIST,
        rest: "GET /v1/codebases//files",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
    [
      "list: an unknown codebase",
      () => ({
        method: LIST,
        request: { codebase_id: UNKNOWN.codebase },
        rest: `GET /v1/codebases/${UNKNOWN.codebase}/files`,
        status: "NOT_FOUND",
        message: "codebase not found",
      }),
    ],
    [
      "list: a missing path, recursively",
      (id) => ({
        method: LIST,
        request: { codebase_id: id, path: "none", recursive: true },
        rest: `GET /v1/codebases/${id}/files?path=none&recursive=true`,
        status: "NOT_FOUND",
        message: "file not found: none",
      }),
    ],
    [
      "list: a file",
      (id) => ({
        method: LIST,
        request: { codebase_id: id, path: "z.txt" },
        rest: `GET /v1/codebases/${id}/files?path=z.txt`,
        status: "FAILED_PRECONDITION",
        message: '"z.txt" is a file, not a directory',
      }),
    ],
    [
      "list: a path that leads elsewhere",
      (id) => ({
        method: LIST,
        request: { codebase_id: id, path: "../.." },
        rest: `GET /v1/codebases/${id}/files?path=..%2F..`,
        status: "INVALID_ARGUMENT",
        message: 'invalid path "../..": it has .. for a name',
      }),
    ],
    [
      "list: an unknown version",
      (id) => ({
        method: LIST,
        request: { codebase_id: id, version: 99 },
        rest: `GET /v1/codebases/${id}/files?version=99`,
        status: "NOT_FOUND",
        message: "version 99 not found: the newest is 4",
      }),
    ],
    [
      "list: a bad token",
      (id) => ({
        method: LIST,
        request: { codebase_id: id, page_size: 1, page_token: "WzFd" },
        rest: `GET /v1/codebases/${id}/files?page_size=1&page_token=WzFd`,
        status: "INVALID_ARGUMENT",
        message: "page_token is not one that this server gave out",
      }),
    ],
    [
      "delete: no codebase",
      () => ({
        method: DELETE,
        request: { file_path: "a" },
        rest: "DELETE /v1/codebases//files/a",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
    [
      "delete: no path",
      (id) => ({
        method: DELETE,
        request: { codebase_id: id },
        rest: `DELETE /v1/codebases/${id}/files/`,
        status: "INVALID_ARGUMENT",
        message: "file_path is required",
      }),
    ],
    [
      "delete: an unknown file",
      (id) => ({
        method: DELETE,
        request: { codebase_id: id, file_path: "none" },
        rest: `DELETE /v1/codebases/${id}/files/none`,
        status: "NOT_FOUND",
        message: "file not found: none",
      }),
    ],
    [
      "delete: an unknown codebase",
      () => ({
        method: DELETE,
        request: { codebase_id: UNKNOWN.codebase, file_path: "a" },
        rest: `DELETE /v1/codebases/${UNKNOWN.codebase}/files/a`,
        status: "NOT_FOUND",
        message: "codebase not found",
      }),
    ],
    [
      "rename: no codebase",
      () => ({
        method: RENAME,
        request: { from_path: "a", to_path: "b" },
        rest: "POST /v1/codebases//rename",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
    [
      "rename: no new path",
      (id) => ({
        method: RENAME,
        request: { codebase_id: id, from_path: "z.txt" },
        rest: `POST /v1/codebases/${id}/rename`,
        status: "INVALID_ARGUMENT",
        message: "to_path is required",
      }),
    ],
    [
      "rename: an unknown file",
      (id) => ({
        method: RENAME,
        request: { codebase_id: id, from_path: "none", to_path: "b" },
        rest: `POST /v1/codebases/${id}/rename`,
        status: "NOT_FOUND",
        message: "file not found: none",
      }),
    ],
    [
      "rename: to something that is there",
      (id) => ({
        method: RENAME,
        request: { codebase_id: id, from_path: "z.txt", to_path: "README.md" },
        rest: `POST /v1/codebases/${id}/rename`,
        status: "ALREADY_EXISTS",
        message: '"README.md" exists already',
      }),
    ],
    [
      "rename: of a directory into itself",
      (id) => ({
        method: RENAME,
        request: { codebase_id: id, from_path: "src", to_path: "src/lib/src" },
        rest: `POST /v1/codebases/${id}/rename`,
        status: "INVALID_ARGUMENT",
        message: '"src" cannot be moved into itself',
      }),
    ],
    [
      "rename: to a path that leads elsewhere",
      (id) => ({
        method: RENAME,
        request: { codebase_id: id, from_path: "z.txt", to_path: "/../../z" },
        rest: `POST /v1/codebases/${id}/rename`,
        status: "INVALID_ARGUMENT",
        message: /^invalid path/,
      }),
    ],
  ];

  test.each(rows)("%s", async (_title, row) => {
    const id = await api.codebase(PROJECT);
    await api.refused(row(id));
    expect(await paths({ codebase_id: id })).toEqual(["README.md", "src", "z.txt"]);
  });
});

testsCover(api, COVERAGE.files);
