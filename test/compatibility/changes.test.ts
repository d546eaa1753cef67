import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover } from "../support/api.ts";
import type { Message, MethodName } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

const PROJECT = {
  "a.txt": "one\ntwo\n",
  "b.txt": "bbb\n",
  "old.txt": "a text that is long enough to be found again\n",
};

/** A sandbox that changed something of every kind and synced nothing. */
async function changed(request: Message = {}): Promise<{ codebase: string; sandbox: string }> {
  const codebase = await api.codebase(PROJECT);
  const sandbox = await api.sandbox(codebase, { sync: "SYNC_MODE_MANUAL", ...request });
  await api.exec(sandbox, "echo three >> a.txt; rm b.txt; mkdir new; echo n > new/n.txt; mv old.txt moved.txt");
  return { codebase, sandbox };
}

const pathsOf = (list: unknown): unknown[] => (list as Message[]).map(({ path }) => path);

describe("the change set", () => {
  test("what was added, modified, deleted and renamed, in path order", async () => {
    const { sandbox } = await changed();
    const { changes, next_page_token } = await api.call("SandboxService.ListChanges", { sandbox_id: sandbox });
    const file = { type: "ENTRY_KIND_FILE", old_path: "", folded: null, sensitive: false };
    expect(changes).toEqual([
      { kind: "CHANGE_KIND_MODIFIED", path: "/a.txt", size: "14", ...file },
      { kind: "CHANGE_KIND_DELETED", path: "/b.txt", size: expect.any(String), ...file },
      { kind: "CHANGE_KIND_RENAMED", path: "/moved.txt", size: "45", ...file, old_path: "/old.txt" },
      { kind: "CHANGE_KIND_ADDED", path: "/new", size: "0", ...file, type: "ENTRY_KIND_DIRECTORY" },
      { kind: "CHANGE_KIND_ADDED", path: "/new/n.txt", size: "2", ...file },
    ]);
    expect(next_page_token).toBe("");
  });

  test("page by page over REST", async () => {
    const { sandbox } = await changed();
    const pages: unknown[][] = [];
    let token = "";
    do {
      const { json } = await api.rest.get(`/v1/sandboxes/${sandbox}/changes?page_size=2&page_token=${token}`);
      pages.push(pathsOf(json.changes));
      token = json.nextPageToken as string;
    } while (token !== "");
    expect(pages).toEqual([["/a.txt", "/b.txt"], ["/moved.txt", "/new"], ["/new/n.txt"]]);
  });

  test("nothing changed: an empty list, no diffs, nothing to apply or discard", async () => {
    const sandbox = await api.sandbox(await api.codebase(PROJECT), { sync: "SYNC_MODE_MANUAL" });
    const request = { sandbox_id: sandbox };
    expect(await api.call("SandboxService.ListChanges", request)).toEqual({ changes: [], next_page_token: "" });
    expect(await api.grpc.collect("SandboxService", "DiffChanges", request)).toEqual([]);
    expect(await api.call("SandboxService.ApplyChanges", request)).toEqual({ version: "0", outcomes: [] });
    expect((await api.rest.post(`/v1/sandboxes/${sandbox}/changes/discard`)).json).toEqual({ discarded: [] });
  });

  test("it is there for a stopped sandbox too", async () => {
    const { sandbox } = await changed();
    await api.call("SandboxService.StopSandbox", { sandbox_id: sandbox });
    const { changes } = await api.call("SandboxService.ListChanges", { sandbox_id: sandbox });
    expect((changes as unknown[]).length).toBe(5);
  });
});

describe("diff", () => {
  test("unified text, a message a path", async () => {
    const { sandbox } = await changed();
    await api.exec(sandbox, String.raw`printf 'x\0y' > binary`);
    const diffs = await api.grpc.collect("SandboxService", "DiffChanges", { sandbox_id: sandbox });
    expect(diffs.map(({ change }) => (change as Message).path)).toEqual(
      expect.arrayContaining(["/a.txt", "/b.txt", "/binary", "/moved.txt", "/new/n.txt"]),
    );
    const of = (path: string): Message => diffs.find(({ change }) => (change as Message).path === path)!;
    expect(of("/a.txt")).toMatchObject({ binary: false, unified: expect.stringMatching(/^@@ (?:.*\n)+\+three$/m) });
    expect(of("/b.txt").unified).toMatch(/^-bbb$/m);
    expect(of("/binary")).toMatchObject({
      binary: true,
      unified: expect.stringMatching(/^Binary files \/dev\/null and b\/binary differ$/m),
    });
  });

  test("of some paths, with what is below them; over REST as events", async () => {
    const { sandbox } = await changed();
    const diffs = await api.grpc.collect("SandboxService", "DiffChanges", { sandbox_id: sandbox, paths: ["new"] });
    expect(diffs.map(({ change }) => (change as Message).path).filter((path) => path !== "/new")).toEqual([
      "/new/n.txt",
    ]);
    const events: Message[] = [];
    const target = `/v1/sandboxes/${sandbox}/diff?paths=a.txt&paths=/workspace/b.txt`;
    for await (const { event, data } of api.rest.events("GET", target)) if (event === "message") events.push(data);
    expect(events.map(({ change }) => (change as Message).path)).toEqual(["/a.txt", "/b.txt"]);
  });
});

describe("apply", () => {
  test("a rehearsal writes nothing", async () => {
    const { codebase, sandbox } = await changed();
    const { version, outcomes } = await api.call("SandboxService.ApplyChanges", { sandbox_id: sandbox, dry_run: true });
    expect(version).toBe("0");
    expect((outcomes as Message[]).every(({ applied }) => applied)).toBe(true);
    expect(await api.call("CodebaseService.GetCodebase", { codebase_id: codebase })).toMatchObject({ version: "3" });
  });

  test("by path, then the rest; what was applied is no change any more", async () => {
    const { codebase, sandbox } = await changed();
    const first = await api.call("SandboxService.ApplyChanges", { sandbox_id: sandbox, paths: ["a.txt"] });
    expect(first).toEqual({
      version: "4",
      outcomes: [
        {
          change: expect.objectContaining({ kind: "CHANGE_KIND_MODIFIED", path: "/a.txt" }),
          applied: true,
          reason: expect.any(String),
          sensitive: false,
          conflict: false,
        },
      ],
    });
    expect((await api.grpc.download(codebase, "a.txt")).toString()).toBe("one\ntwo\nthree\n");
    expect((await api.grpc.download(codebase, "b.txt")).toString()).toBe("bbb\n");

    const second = await api.rest.post(`/v1/sandboxes/${sandbox}/changes/apply`, {});
    expect(second.json).toMatchObject({ version: "5" });
    const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: codebase, recursive: true });
    expect(pathsOf(files)).toEqual(["a.txt", "moved.txt", "new", "new/n.txt"]);
    expect((await api.rest.get(`/v1/sandboxes/${sandbox}/changes`)).json).toEqual({ changes: [], nextPageToken: "" });
    expect(await api.call("CodebaseService.GetVersion", { codebase_id: codebase, version: 5 })).toMatchObject({
      origin: "VERSION_ORIGIN_SYNC",
      sandbox_id: sandbox,
    });
  });

  test("newer work of somebody else is replaced, and that is said", async () => {
    const { codebase, sandbox } = await changed();
    await api.grpc.upload(codebase, "a.txt", "from elsewhere\n");
    const { version, outcomes } = await api.call("SandboxService.ApplyChanges", {
      sandbox_id: sandbox,
      paths: ["/a.txt"],
    });
    expect({ version, outcomes }).toMatchObject({ version: "5", outcomes: [{ applied: true, conflict: true }] });
    expect(await api.call("CodebaseService.GetVersion", { codebase_id: codebase, version: 5 })).toMatchObject({
      conflicts: [{ path: "a.txt", replaced_version: "4", replaced_sandbox_id: "" }],
    });
  });

  test("a sandbox that never syncs is refused", async () => {
    const { sandbox } = await changed({ sync: "SYNC_MODE_NEVER" });
    await api.refused({
      method: "SandboxService.ApplyChanges",
      request: { sandbox_id: sandbox },
      rest: `POST /v1/sandboxes/${sandbox}/changes/apply`,
      status: "FAILED_PRECONDITION",
      message: "the sandbox was created with sync never: its changes cannot be applied",
    });
  });
});

describe("discard", () => {
  test("by path, then the rest; the codebase shows through again", async () => {
    const { sandbox } = await changed();
    const first = await api.call("SandboxService.DiscardChanges", { sandbox_id: sandbox, paths: ["/b.txt"] });
    expect(first).toMatchObject({ discarded: [{ kind: "CHANGE_KIND_DELETED", path: "/b.txt" }] });
    expect((await api.exec(sandbox, "cat b.txt; ls")).stdout).toBe("bbb\na.txt\nb.txt\nmoved.txt\nnew\n");

    const { json } = await api.rest.post(`/v1/sandboxes/${sandbox}/changes/discard`, {});
    expect(pathsOf(json.discarded)).toEqual(["/a.txt", "/moved.txt", "/new", "/new/n.txt"]);
    expect((await api.exec(sandbox, "cat a.txt; ls")).stdout).toBe("one\ntwo\na.txt\nb.txt\nold.txt\n");
  });
});

describe("refused", () => {
  const METHODS: readonly (readonly [MethodName, (sandbox: string, path: string) => string])[] = [
    [
      "SandboxService.DiffChanges",
      (sandbox, path) => `GET /v1/sandboxes/${sandbox}/diff?paths=${encodeURIComponent(path)}`,
    ],
    ["SandboxService.ApplyChanges", (sandbox) => `POST /v1/sandboxes/${sandbox}/changes/apply`],
    ["SandboxService.DiscardChanges", (sandbox) => `POST /v1/sandboxes/${sandbox}/changes/discard`],
  ];

  test.each(METHODS)("%s: paths that changed nothing, or are none", async (method, rest) => {
    const { sandbox } = await changed();
    const refused = (path: string, expected: Pick<Refusal, "status" | "message">): Promise<void> =>
      api.refused({ method, request: { sandbox_id: sandbox, paths: [path] }, rest: rest(sandbox, path), ...expected });
    await refused("unchanged.txt", { status: "NOT_FOUND", message: /unchanged\.txt/ });
    await refused("../a.txt", {
      status: "INVALID_ARGUMENT",
      message: "paths has a .. in it; name the file from the root of the workspace",
    });
  });

  test("a bad token, a negative page", async () => {
    const { sandbox } = await changed();
    await api.refused({
      method: "SandboxService.ListChanges",
      request: { sandbox_id: sandbox, page_token: "x" },
      rest: `GET /v1/sandboxes/${sandbox}/changes?page_token=x`,
      status: "INVALID_ARGUMENT",
      message: "page_token is not one that this server gave out",
    });
    await api.refused({
      method: "SandboxService.ListChanges",
      request: { sandbox_id: sandbox, page_size: -1 },
      rest: `GET /v1/sandboxes/${sandbox}/changes?page_size=-1`,
      status: "INVALID_ARGUMENT",
      message: "page_size is not negative",
    });
  });
});

testsCover(api, COVERAGE.changes);
