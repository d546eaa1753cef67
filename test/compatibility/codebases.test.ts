import { describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { errorDetails } from "../support/error-details.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}){0,3}Z$/;

describe("create and get", () => {
  test("a new codebase over gRPC", async () => {
    const before = Math.floor(Date.now() / 1000) - 1;
    const created = await api.call("CodebaseService.CreateCodebase", { name: "demo", owner_id: "alice" });
    expect(created).toEqual({
      id: expect.stringMatching(/^cb_[0-9a-f]{32}$/),
      name: "demo",
      owner_id: "alice",
      size: "0",
      file_count: 0,
      created_at: { seconds: expect.stringMatching(/^\d+$/), nanos: expect.any(Number) },
      updated_at: created.created_at,
      version: "0",
    });
    const { seconds } = created.created_at as { seconds: string };
    expect(Number(seconds)).toBeGreaterThanOrEqual(before);
    expect(await api.call("CodebaseService.GetCodebase", { codebase_id: created.id })).toEqual(created);
  });

  test("a new codebase over REST, every field present", async () => {
    const { status, json } = await api.rest.post("/v1/codebases", { name: "demo", owner_id: "alice" });
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        id: expect.stringMatching(/^cb_[0-9a-f]{32}$/),
        name: "demo",
        ownerId: "alice",
        size: "0",
        fileCount: 0,
        createdAt: expect.stringMatching(RFC3339),
        updatedAt: expect.stringMatching(RFC3339),
        version: "0",
      },
    });
    expect((await api.rest.get(`/v1/codebases/${json.id}`)).json).toEqual(json);
  });

  test("size and count follow the uploads", async () => {
    const id = await api.codebase({ "a.txt": "12345", "dir/b.txt": "1234567" });
    expect(await api.call("CodebaseService.GetCodebase", { codebase_id: id })).toMatchObject({
      size: "12",
      file_count: 2,
      version: "2",
    });
    await api.grpc.upload(id, "a.txt", "1");
    expect((await api.rest.get(`/v1/codebases/${id}`)).json).toMatchObject({ size: "8", fileCount: 2, version: "3" });
  });
});

const REFUSED: readonly (readonly [string, Refusal])[] = [
  [
    "create without a name",
    {
      method: "CodebaseService.CreateCodebase",
      request: { owner_id: "alice" },
      rest: "POST /v1/codebases",
      status: "INVALID_ARGUMENT",
      message: "name is required",
    },
  ],
  [
    "create without an owner",
    {
      method: "CodebaseService.CreateCodebase",
      request: { name: "demo" },
      rest: "POST /v1/codebases",
      status: "INVALID_ARGUMENT",
      message: "owner_id is required",
    },
  ],
  [
    "create with a name of control characters",
    {
      method: "CodebaseService.CreateCodebase",
      request: { name: "a\nb", owner_id: "alice" },
      rest: "POST /v1/codebases",
      status: "INVALID_ARGUMENT",
      message: /^name has control characters/,
    },
  ],
  [
    "get without an id",
    {
      method: "CodebaseService.GetCodebase",
      rest: "GET /v1/codebases/",
      status: "INVALID_ARGUMENT",
      message: "codebase_id is required",
    },
  ],
  [
    "get of an unknown codebase",
    {
      method: "CodebaseService.GetCodebase",
      request: { codebase_id: UNKNOWN.codebase },
      rest: `GET /v1/codebases/${UNKNOWN.codebase}`,
      status: "NOT_FOUND",
      message: "codebase not found",
    },
  ],
  [
    "get of an id that the earlier server could have made",
    {
      method: "CodebaseService.GetCodebase",
      request: { codebase_id: "cb_0123456789abcdef" },
      rest: "GET /v1/codebases/cb_0123456789abcdef",
      status: "NOT_FOUND",
      message: "codebase not found",
    },
  ],
  [
    "get of an id of another shape",
    {
      method: "CodebaseService.GetCodebase",
      request: { codebase_id: "../../etc" },
      rest: "GET /v1/codebases/..%2F..%2Fetc",
      status: "INVALID_ARGUMENT",
      message: /^codebase_id is not/,
    },
  ],
  [
    "delete without an id",
    {
      method: "CodebaseService.DeleteCodebase",
      rest: "DELETE /v1/codebases/",
      status: "INVALID_ARGUMENT",
      message: "codebase_id is required",
    },
  ],
  [
    "delete of an unknown codebase",
    {
      method: "CodebaseService.DeleteCodebase",
      request: { codebase_id: UNKNOWN.codebase },
      rest: `DELETE /v1/codebases/${UNKNOWN.codebase}`,
      status: "NOT_FOUND",
      message: "codebase not found",
    },
  ],
  [
    "a list with a token that nobody gave out",
    {
      method: "CodebaseService.ListCodebases",
      request: { page_token: "nonsense" },
      rest: "GET /v1/codebases?page_token=nonsense",
      status: "INVALID_ARGUMENT",
      message: "page_token is not one that this server gave out",
    },
  ],
];

test.each(REFUSED)("refused: %s", async (_title, refusal) => {
  await api.refused(refusal);
});

describe("list", () => {
  test("pages show every codebase once, in the order of creation, and the last one has no token", async () => {
    const made: string[] = [];
    for (let index = 0; index < 7; index++) made.push(await api.codebase({}, "pages"));

    const overGrpc: string[][] = [];
    let token = "";
    do {
      const answer = await api.call("CodebaseService.ListCodebases", {
        owner_id: "pages",
        page_size: 3,
        page_token: token,
      });
      overGrpc.push((answer.codebases as { id: string }[]).map(({ id }) => id));
      token = answer.next_page_token as string;
    } while (token !== "");
    expect(overGrpc.map((page) => page.length)).toEqual([3, 3, 1]);
    expect(overGrpc.flat().sort()).toEqual(made.toSorted());

    const overRest: string[] = [];
    do {
      const query = new URLSearchParams({ ownerId: "pages", pageSize: "2", page_token: token });
      const { json } = await api.rest.get(`/v1/codebases?${query}`);
      overRest.push(...(json.codebases as { id: string }[]).map(({ id }) => id));
      token = json.nextPageToken as string;
    } while (token !== "");
    expect(overRest).toEqual(overGrpc.flat());
  });

  test("a page of exactly all has no token, and one that was made meanwhile comes last", async () => {
    for (let index = 0; index < 2; index++) await api.codebase({}, "exact");
    const all = await api.call("CodebaseService.ListCodebases", { owner_id: "exact", page_size: 2 });
    expect(all).toMatchObject({ codebases: [{}, {}], next_page_token: "" });

    const first = await api.call("CodebaseService.ListCodebases", { owner_id: "exact", page_size: 1 });
    const late = await api.codebase({}, "exact");
    const rest = await api.call("CodebaseService.ListCodebases", {
      owner_id: "exact",
      page_token: first.next_page_token,
    });
    expect((rest.codebases as { id: string }[]).map(({ id }) => id)).toEqual([expect.any(String), late]);
  });

  test("without anything to show: an empty list, over REST too", async () => {
    expect(await api.call("CodebaseService.ListCodebases", { owner_id: "nobody" })).toEqual({
      codebases: [],
      next_page_token: "",
    });
    expect((await api.rest.get("/v1/codebases?owner_id=nobody")).json).toEqual({ codebases: [], nextPageToken: "" });
  });

  test("100 unless asked, a negative size too", async () => {
    await Promise.all(Array.from({ length: 101 }, () => api.codebase({}, "hundred")));
    const first = await api.call("CodebaseService.ListCodebases", { owner_id: "hundred" });
    expect((first.codebases as unknown[]).length).toBe(100);
    const { json } = await api.rest.get("/v1/codebases?owner_id=hundred&page_size=-3");
    expect(json).toMatchObject({ nextPageToken: first.next_page_token });
    const rest = await api.rest.get(`/v1/codebases?owner_id=hundred&page_token=${first.next_page_token}`);
    expect(rest.json).toMatchObject({ codebases: [{}], nextPageToken: "" });
  });

  test("without an owner: those of all owners", async () => {
    const { codebases } = await api.call("CodebaseService.ListCodebases", { page_size: 1000 });
    const owners = new Set((codebases as { owner_id: string }[]).map(({ owner_id }) => owner_id));
    expect([...owners]).toEqual(expect.arrayContaining(["alice", "pages", "exact"]));
  });
});

describe("delete", () => {
  test("answers with an empty message, and it is gone", async () => {
    const first = await api.codebase({ "a.txt": "a" });
    expect(await api.call("CodebaseService.DeleteCodebase", { codebase_id: first })).toEqual({});
    const second = await api.codebase();
    const answer = await api.rest.delete(`/v1/codebases/${second}`);
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 200, text: "{}" });
    for (const id of [first, second]) {
      await api.refused({
        method: "CodebaseService.GetCodebase",
        request: { codebase_id: id },
        rest: `GET /v1/codebases/${id}`,
        status: "NOT_FOUND",
        message: "codebase not found",
      });
    }
  });

  test("one that sandboxes use is refused, with their names and what to do", async () => {
    const id = await api.codebase({ "a.txt": "a" });
    const users = [await api.sandbox(id), await api.sandbox(id)];
    const named = (message: string): void => {
      for (const user of users) expect(message).toContain(user);
    };

    const error = await api.call("CodebaseService.DeleteCodebase", { codebase_id: id }).catch((reason) => reason);
    expect(error.code).toBe(9);
    named(error.details);
    expect(errorDetails(error)).toEqual([
      {
        "@type": "google.rpc.ErrorInfo",
        reason: "CODEBASE_IN_USE",
        domain: "agentfense",
        metadata: expect.objectContaining({ count: "2", hint: expect.stringContaining("force") }),
      },
    ]);

    const answer = await api.rest.delete(`/v1/codebases/${id}`);
    expect({ status: answer.status, code: answer.json.code }).toEqual({ status: 400, code: 9 });
    named(answer.json.message as string);

    expect((await api.exec(users[0]!, "cat a.txt")).stdout).toBe("a");
    expect((await api.rest.delete(`/v1/codebases/${id}?force=true`)).json).toEqual({});
    for (const user of users) {
      await api.refused({
        method: "SandboxService.GetSandbox",
        request: { sandbox_id: user },
        rest: `GET /v1/sandboxes/${user}`,
        status: "NOT_FOUND",
        message: "sandbox not found",
      });
    }
  });
});

testsCover(api, COVERAGE.codebases);
