import { beforeAll, describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover } from "../support/api.ts";
import type { Message, MethodName } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

const RULES = [
  { pattern: "**", permission: "PERMISSION_READ" },
  { pattern: "/work/**", permission: "PERMISSION_WRITE" },
  { pattern: "/listed/**", permission: "PERMISSION_VIEW" },
  { pattern: "/secret/**", permission: "PERMISSION_NONE" },
];
const FILES = { "readme.md": "read me", "work/a.txt": "alpha", "listed/l.txt": "list", "secret/key": "hush" };

/** A sandbox whose codebase has a directory of each level. */
async function openView(): Promise<string> {
  return await api.sandbox(await api.codebase(FILES), { permissions: RULES, sync: "SYNC_MODE_MANUAL" });
}

const read = async (sandbox: string, path: string): Promise<string> => {
  const chunks = await api.grpc.collect("SandboxService", "ReadFile", { sandbox_id: sandbox, path });
  return Buffer.concat(chunks.map(({ data }) => data as Buffer)).toString();
};
const write = (sandbox: string, path: string, content: string, more: Message = {}): Promise<Message> =>
  api.grpc.send("SandboxService", "WriteFile", [
    { metadata: { sandbox_id: sandbox, path, ...more } },
    { data: Buffer.from(content) },
  ]);

describe("read and write", () => {
  test("what the sandbox sees, its own changes included", async () => {
    const id = await openView();
    expect(await read(id, "readme.md")).toBe("read me");
    await api.exec(id, "echo more >> work/a.txt");
    expect(await read(id, "/workspace/work/a.txt")).toBe("alphamore\n");
    const overRest = await api.rest.get(`/v1/sandboxes/${id}/files/work/a.txt`);
    expect({ status: overRest.status, text: overRest.text }).toEqual({ status: 200, text: "alphamore\n" });
    expect(overRest.headers.get("content-type")).toBe("application/octet-stream");
  });

  test("a new file, its facts as the answer", async () => {
    const id = await openView();
    expect(await write(id, "work/new.sh", "echo", { mode: 0o755 })).toEqual({
      path: "work/new.sh",
      name: "new.sh",
      is_dir: false,
      size: "4",
      modified_at: { seconds: expect.any(String), nanos: expect.any(Number) },
      mode: 0o755,
      symlink_target: "",
      checksum: "",
      permission: "PERMISSION_WRITE",
      attributes: {},
    });
    expect((await api.exec(id, "cat work/new.sh; stat -c ' %a' work/new.sh")).stdout).toBe("echo 755\n");

    const put = await api.rest.request("PUT", `/v1/sandboxes/${id}/files/work/rest.txt`, "rest");
    expect({ status: put.status, json: put.json }).toMatchObject({
      status: 200,
      json: { path: "work/rest.txt", size: "4", mode: 0o644, permission: "PERMISSION_WRITE" },
    });
    await api.rest.request("PUT", `/v1/sandboxes/${id}/files/work/rest.txt?append=true`, "ful");
    await write(id, "work/rest.txt", "!", { append: true });
    expect(await read(id, "work/rest.txt")).toBe("restful!");
    await write(id, "work/rest.txt", "x");
    expect(await read(id, "work/rest.txt")).toBe("x");
  });

  test("a large file passes in pieces", async () => {
    const id = await openView();
    const content = "0123456789abcdef".repeat(60_000);
    await api.rest.request("PUT", `/v1/sandboxes/${id}/files/work/large`, content);
    expect(await read(id, "work/large")).toBe(content);
  });
});

describe("look around", () => {
  test("a directory with the level of each entry; what is hidden is not there", async () => {
    const id = await openView();
    const { files } = await api.call("SandboxService.ListDirectory", { sandbox_id: id, recursive: true });
    const brief = (files as Message[]).map(({ path, is_dir, permission }) => [path, is_dir, permission]);
    expect(brief.toSorted()).toEqual([
      ["listed", true, expect.any(String)],
      ["listed/l.txt", false, "PERMISSION_VIEW"],
      ["readme.md", false, "PERMISSION_READ"],
      ["work", true, expect.any(String)],
      ["work/a.txt", false, "PERMISSION_WRITE"],
    ]);
    const { json } = await api.rest.get(`/v1/sandboxes/${id}/files?path=/work`);
    expect(json).toMatchObject({
      files: [{ path: "/work/a.txt", name: "a.txt", isDir: false, size: "5", permission: "PERMISSION_WRITE" }],
      nextPageToken: "",
    });
  });

  test("one entry, one that may only be listed, the workspace itself", async () => {
    const id = await openView();
    expect(await api.call("SandboxService.StatFile", { sandbox_id: id, path: "/work/a.txt" })).toMatchObject({
      path: "/work/a.txt",
      size: "5",
      mode: 0o644,
    });
    expect((await api.rest.get(`/v1/sandboxes/${id}/stat/listed/l.txt`)).json).toMatchObject({
      path: "listed/l.txt",
      permission: "PERMISSION_VIEW",
    });
    expect((await api.rest.get(`/v1/sandboxes/${id}/stat/`)).json).toMatchObject({ isDir: true });
  });
});

describe("make, move, remove", () => {
  test("over gRPC", async () => {
    const id = await openView();
    expect(
      await api.call("SandboxService.MakeDirectory", { sandbox_id: id, path: "work/x/y", recursive: true }),
    ).toMatchObject({ path: "work/x/y", is_dir: true });
    await write(id, "work/x/y/f", "f");
    const moved = { sandbox_id: id, from_path: "work/x", to_path: "work/z" };
    expect(await api.call("SandboxService.MoveFile", moved)).toMatchObject({ path: "work/z", is_dir: true });
    expect(await read(id, "work/z/y/f")).toBe("f");
    expect(await api.call("SandboxService.RemoveFile", { sandbox_id: id, path: "work/z", recursive: true })).toEqual(
      {},
    );
    expect((await api.exec(id, "ls work")).stdout).toBe("a.txt\n");
  });

  test("over REST", async () => {
    const id = await openView();
    const made = await api.rest.post(`/v1/sandboxes/${id}/directories`, { path: "/work/d" });
    expect({ status: made.status, json: made.json }).toMatchObject({
      status: 200,
      json: { path: "/work/d", isDir: true },
    });
    const move = { fromPath: "work/a.txt", toPath: "work/d/b.txt" };
    expect((await api.rest.post(`/v1/sandboxes/${id}/move`, move)).json).toMatchObject({ path: "work/d/b.txt" });
    const removed = await api.rest.delete(`/v1/sandboxes/${id}/files/work/d?recursive=true`);
    expect({ status: removed.status, text: removed.text }).toEqual({ status: 200, text: "{}" });
    expect((await api.exec(id, "ls work")).stdout).toBe("");
  });
});

describe("refused as a process inside would be", () => {
  let id: string;
  beforeAll(async () => {
    id = await openView();
    await api.exec(id, "ln -s /etc work/out; ln -s a.txt work/in; mkdir work/full; touch work/full/x");
  });

  const READ: MethodName = "SandboxService.ReadFile";
  const WRITE: MethodName = "SandboxService.WriteFile";
  const STAT: MethodName = "SandboxService.StatFile";
  const LIST: MethodName = "SandboxService.ListDirectory";
  const MAKE: MethodName = "SandboxService.MakeDirectory";
  const REMOVE: MethodName = "SandboxService.RemoveFile";
  const MOVE: MethodName = "SandboxService.MoveFile";

  /** The forms of a call about one path. */
  function forms(
    method: MethodName,
    path: string,
    more: Message,
  ): Pick<Refusal, "method" | "request" | "rest" | "body"> {
    const at = path.split("/").map(encodeURIComponent).join("/");
    const request: Message = { sandbox_id: id, path, ...more };
    const base = `/v1/sandboxes/${id}`;
    switch (method) {
      case READ:
        return { method, request, rest: `GET ${base}/files/${at}` };
      case WRITE: {
        const metadata = { sandbox_id: id, path, ...more };
        return {
          method,
          request: [{ metadata }, { data: Buffer.from("x") }],
          rest: `PUT ${base}/files/${at}`,
          body: "x",
        };
      }
      case STAT:
        return { method, request, rest: `GET ${base}/stat/${at}` };
      case LIST:
        return { method, request, rest: `GET ${base}/files?path=${encodeURIComponent(path)}` };
      case MAKE:
        return { method, request, rest: `POST ${base}/directories` };
      case REMOVE:
        return { method, request, rest: `DELETE ${base}/files/${at}` };
      default:
        return { method, request: { sandbox_id: id, from_path: path, ...more }, rest: `POST ${base}/move` };
    }
  }

  const NOT_THERE = { status: "NOT_FOUND" } as const;
  const DENIED = { status: "PERMISSION_DENIED" } as const;
  const WRONG = { status: "FAILED_PRECONDITION" } as const;
  const rows: readonly (readonly [string, MethodName, string, Message, Pick<Refusal, "status">])[] = [
    ["read a hidden file", READ, "secret/key", {}, NOT_THERE],
    ["read a file that is not there", READ, "none", {}, NOT_THERE],
    ["read a file that may only be listed", READ, "listed/l.txt", {}, DENIED],
    ["read a directory", READ, "work", {}, WRONG],
    ["write where it may only read", WRITE, "readme.md", {}, DENIED],
    ["write a new file where it may only read", WRITE, "new.md", {}, DENIED],
    ["write to a directory", WRITE, "work/full", {}, WRONG],
    ["write into a directory that is not there", WRITE, "work/none/a", {}, NOT_THERE],
    ["look at a hidden file", STAT, "secret/key", {}, NOT_THERE],
    ["look at a hidden directory", STAT, "secret", {}, NOT_THERE],
    ["list a hidden directory", LIST, "secret", {}, NOT_THERE],
    ["list a file", LIST, "readme.md", {}, WRONG],
    ["make a directory where it may only read", MAKE, "docs", {}, DENIED],
    ["make a directory that is there", MAKE, "work/full", {}, { status: "ALREADY_EXISTS" }],
    ["remove what it may only read", REMOVE, "readme.md", {}, DENIED],
    ["remove what is hidden", REMOVE, "secret/key", {}, NOT_THERE],
    ["remove a directory that is not empty", REMOVE, "work/full", {}, WRONG],
    ["move what it may only read", MOVE, "readme.md", { to_path: "work/r" }, DENIED],
    ["move to where it may only read", MOVE, "work/a.txt", { to_path: "a.txt" }, DENIED],
    ["move what is hidden", MOVE, "secret/key", { to_path: "work/k" }, NOT_THERE],
    ["follow a link out of the workspace", READ, "work/out/passwd", {}, WRONG],
    ["write through a link out of the workspace", WRITE, "work/out/evil", {}, WRONG],
    ["list through a link out of the workspace", LIST, "work/out", {}, WRONG],
  ];

  test.each(rows)("%s", async (_title, method, path, more, { status }) => {
    await api.refused({ ...forms(method, path, more), status, message: /./ });
  });

  test("what is hidden is refused in the words for what is not there", async () => {
    const [hidden, absent] = await Promise.all(
      ["secret/key", "secret/nothing"].map(async (path) => {
        const outcome = await api.grpc.outcome("SandboxService", "ReadFile", [{ sandbox_id: id, path }]);
        return { code: outcome.code, message: outcome.message.replace(path, "PATH") };
      }),
    );
    expect(hidden).toEqual(absent);
  });

  const paths: readonly (readonly [string, string, string])[] = [
    ["no path", "", "path is required"],
    ["a path that climbs", "work/../../etc", "path has a .. in it; name the file from the root of the workspace"],
    ["a path with a NUL", "work/a\0b", "path contains a NUL character"],
    ["a path beyond all lengths", `${"x/".repeat(3000)}x`, "path is longer than 4095 bytes"],
  ];

  test.each(paths)("API-08 %s", async (_title, path, message) => {
    const status = "INVALID_ARGUMENT";
    for (const method of [READ, MAKE, REMOVE]) {
      await api.refused({ method, request: { sandbox_id: id, path }, status, message });
    }
    const inMetadata = path === "" ? "path is required in metadata" : message;
    await api.refused({
      method: WRITE,
      request: [{ metadata: { sandbox_id: id, path } }],
      status,
      message: inMetadata,
    });
    const encoded = path.split("/").map(encodeURIComponent).join("/");
    const answer = await api.rest.raw("GET", `/v1/sandboxes/${id}/files/${encoded}`);
    expect({ status: answer.status, code: answer.json.code, message: answer.json.message }).toEqual({
      status: 400,
      code: 3,
      message,
    });
  });

  test("the workspace itself is neither written nor removed", async () => {
    const message = "path is the workspace itself";
    await api.refused({
      ...forms(REMOVE, "/workspace", {}),
      rest: `DELETE /v1/sandboxes/${id}/files/%2Fworkspace`,
      status: "INVALID_ARGUMENT",
      message,
    });
    await api.refused({ ...forms(MAKE, "/", {}), status: "INVALID_ARGUMENT", message });
  });

  const streams: readonly (readonly [string, readonly Message[], string])[] = [
    ["data first", [{ data: Buffer.from("x") }], "metadata must be sent first"],
    ["nothing at all", [], "no metadata received"],
    ["no sandbox", [{ metadata: { path: "a" } }], "sandbox_id is required in metadata"],
  ];

  test.each(streams)("the protocol of WriteFile: %s", async (_title, request, message) => {
    await api.refused({ method: WRITE, request, status: "INVALID_ARGUMENT", message });
  });

  test("nothing of all this changed anything", async () => {
    expect((await api.exec(id, "cat readme.md work/a.txt; ls work; ls")).stdout).toBe(
      "read mealphaa.txt\nfull\nin\nout\nlisted\nreadme.md\nwork\n",
    );
  });
});

testsCover(api, COVERAGE.view);
