import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

/** A codebase with a version of each origin that a client can make. */
async function withHistory(): Promise<string> {
  const id = await api.codebase({ "a.txt": "one", "b.txt": "bbb" });
  await api.grpc.upload(id, "a.txt", "three");
  await api.call("CodebaseService.DeleteFile", { codebase_id: id, file_path: "b.txt" });
  await api.call("CodebaseService.RenameFile", { codebase_id: id, from_path: "a.txt", to_path: "c.txt" });
  return id;
}

test("every change is a version; the list has them newest first, page by page", async () => {
  const id = await withHistory();
  const { versions, next_page_token } = await api.call("CodebaseService.ListVersions", { codebase_id: id });
  const brief = (versions as Message[]).map(({ version, origin, size, file_count }) => [
    version,
    origin,
    size,
    file_count,
  ]);
  expect(brief).toEqual([
    ["5", "VERSION_ORIGIN_RENAME", "5", 1],
    ["4", "VERSION_ORIGIN_DELETE", "5", 1],
    ["3", "VERSION_ORIGIN_UPLOAD", "8", 2],
    ["2", "VERSION_ORIGIN_UPLOAD", "6", 2],
    ["1", "VERSION_ORIGIN_UPLOAD", "3", 1],
  ]);
  expect(next_page_token).toBe("");

  const pages: unknown[][] = [];
  let token = "";
  do {
    const { json } = await api.rest.get(`/v1/codebases/${id}/versions?page_size=2&page_token=${token}`);
    pages.push((json.versions as Message[]).map(({ version }) => version));
    token = json.nextPageToken as string;
  } while (token !== "");
  expect(pages).toEqual([["5", "4"], ["3", "2"], ["1"]]);
});

test("one version has its changes, all fields over REST", async () => {
  const id = await withHistory();
  expect(await api.call("CodebaseService.GetVersion", { codebase_id: id, version: 5 })).toMatchObject({
    codebase_id: id,
    version: "5",
    changes: [
      { kind: "CHANGE_KIND_DELETED", path: "a.txt", size: "5" },
      { kind: "CHANGE_KIND_ADDED", path: "c.txt", size: "5" },
    ],
  });
  expect((await api.rest.get(`/v1/codebases/${id}/versions/3`)).json).toEqual({
    codebaseId: id,
    version: "3",
    origin: "VERSION_ORIGIN_UPLOAD",
    sandboxId: "",
    message: "",
    createdAt: expect.stringMatching(/Z$/),
    filesChanged: 1,
    size: "8",
    fileCount: 2,
    changes: [{ kind: "CHANGE_KIND_MODIFIED", path: "a.txt", size: "5", sensitive: false }],
    conflicts: [],
  });
});

test("a rollback is a new version with an old one's content", async () => {
  const id = await withHistory();
  const back = await api.call("CodebaseService.Rollback", { codebase_id: id, version: 2 });
  expect(back).toMatchObject({
    version: "6",
    origin: "VERSION_ORIGIN_ROLLBACK",
    message: "rollback to version 2",
    size: "6",
    file_count: 2,
  });
  expect((await api.grpc.download(id, "a.txt")).toString()).toBe("one");
  expect((await api.grpc.download(id, "b.txt")).toString()).toBe("bbb");

  const { json } = await api.rest.post(`/v1/codebases/${id}/rollback`, { version: "5" });
  expect(json).toMatchObject({ version: "7", origin: "VERSION_ORIGIN_ROLLBACK" });
  expect((await api.grpc.download(id, "c.txt")).toString()).toBe("three");
  // The past stays as it was.
  expect((await api.grpc.download(id, "a.txt", { version: 6 })).toString()).toBe("one");
});

test("what a sandbox syncs is a version of its own, and a running sandbox sees a rollback", async () => {
  const id = await api.codebase({ "a.txt": "one" });
  const sandbox = await api.sandbox(id);
  const result = await api.exec(sandbox, "echo two > a.txt");
  expect(result).toMatchObject({ exit_code: 0, synced_version: "2", sync_problems: [] });
  expect(await api.call("CodebaseService.GetVersion", { codebase_id: id, version: 2 })).toMatchObject({
    origin: "VERSION_ORIGIN_SYNC",
    sandbox_id: sandbox,
    changes: [{ kind: "CHANGE_KIND_MODIFIED", path: "a.txt", size: "4" }],
    conflicts: [],
  });
  await api.call("CodebaseService.Rollback", { codebase_id: id, version: 1 });
  expect((await api.exec(sandbox, "cat a.txt")).stdout).toBe("one");
});

test("a sandbox can be pinned to a version, and then changes no codebase", async () => {
  const id = await api.codebase({ "a.txt": "old" });
  await api.grpc.upload(id, "a.txt", "new");
  const pinned = await api.sandbox(id, { codebase_version: 1 });
  expect(await api.exec(pinned, "cat a.txt; echo x > b.txt")).toMatchObject({ stdout: "old", synced_version: "0" });
  await api.refused({
    method: "SandboxService.ApplyChanges",
    request: { sandbox_id: pinned },
    rest: `POST /v1/sandboxes/${pinned}/changes/apply`,
    status: "FAILED_PRECONDITION",
    message: "the sandbox is pinned to version 1: its changes cannot be applied",
  });
  await api.refused({
    method: "SandboxService.CreateSandbox",
    request: { codebase_id: id, codebase_version: "9" },
    rest: "POST /v1/sandboxes",
    status: "NOT_FOUND",
    message: /^version 9 not found/,
  });
});

describe("refused", () => {
  const rows: readonly (readonly [string, (id: string) => Refusal])[] = [
    [
      "list: no codebase",
      () => ({
        method: "CodebaseService.ListVersions",
        rest: "GET /v1/codebases//versions",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
    [
      "list: an unknown codebase",
      () => ({
        method: "CodebaseService.ListVersions",
        request: { codebase_id: UNKNOWN.codebase },
        rest: `GET /v1/codebases/${UNKNOWN.codebase}/versions`,
        status: "NOT_FOUND",
        message: "codebase not found",
      }),
    ],
    [
      "list: a bad token",
      (id) => ({
        method: "CodebaseService.ListVersions",
        request: { codebase_id: id, page_token: "?" },
        rest: `GET /v1/codebases/${id}/versions?page_token=%3F`,
        status: "INVALID_ARGUMENT",
        message: "page_token is not one that this server gave out",
      }),
    ],
    [
      "get: an unknown version",
      (id) => ({
        method: "CodebaseService.GetVersion",
        request: { codebase_id: id, version: 9 },
        rest: `GET /v1/codebases/${id}/versions/9`,
        status: "NOT_FOUND",
        message: "version 9 not found: the newest is 1",
      }),
    ],
    [
      "get: a negative version",
      (id) => ({
        method: "CodebaseService.GetVersion",
        request: { codebase_id: id, version: -1 },
        rest: `GET /v1/codebases/${id}/versions/-1`,
        status: "INVALID_ARGUMENT",
        message: "version must not be negative",
      }),
    ],
    [
      "get: a version beyond all numbers",
      (id) => ({
        method: "CodebaseService.GetVersion",
        request: { codebase_id: id, version: "9223372036854775807" },
        rest: `GET /v1/codebases/${id}/versions/9223372036854775807`,
        status: "INVALID_ARGUMENT",
        message: "version is too large",
      }),
    ],
    [
      "roll back: no version",
      (id) => ({
        method: "CodebaseService.Rollback",
        request: { codebase_id: id },
        rest: `POST /v1/codebases/${id}/rollback`,
        status: "INVALID_ARGUMENT",
        message: /^version /,
      }),
    ],
    [
      "roll back: an unknown version",
      (id) => ({
        method: "CodebaseService.Rollback",
        request: { codebase_id: id, version: 9 },
        rest: `POST /v1/codebases/${id}/rollback`,
        status: "NOT_FOUND",
        message: /^version 9 not found/,
      }),
    ],
    [
      "roll back: no codebase",
      () => ({
        method: "CodebaseService.Rollback",
        request: { version: 1 },
        rest: "POST /v1/codebases//rollback",
        status: "INVALID_ARGUMENT",
        message: "codebase_id is required",
      }),
    ],
  ];

  test.each(rows)("%s", async (_title, row) => {
    await api.refused(row(await api.codebase({ "a.txt": "a" })));
  });

  test("a version that is no number is a mistake of the path", async () => {
    const { status, json } = await api.rest.get(`/v1/codebases/${await api.codebase()}/versions/latest`);
    expect({ status, json }).toMatchObject({
      status: 400,
      json: { code: 3, message: "version must be a whole number" },
    });
  });
});

testsCover(api, COVERAGE.versions);
