import type { CreateSandboxRequest, ExecRequest, ListSandboxesRequest } from "@agentfense/protocol/sandbox";
import type { Message } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { only, restTo } from "./support.ts";

/** Sends to one method and gives what it saw. */
async function seen<T extends Message>(method: string, path: string, init: RequestInit): Promise<T> {
  let input: T | undefined;
  const rest = restTo(
    only(method, (message) => {
      input = message as T;
      return {};
    }),
  );
  const { status, body } = await rest.json(path, init);
  expect({ status, body: status === 200 ? {} : body }).toEqual({ status: 200, body: {} });
  if (input === undefined) {
    throw new Error(`${method} was not called`);
  }
  return input;
}

/** The message of a 400 with code 3, from a call that must not arrive. */
async function refused(path: string, init: RequestInit): Promise<string> {
  const rest = restTo(only("none", () => ({})));
  const { status, body } = await rest.json(path, init);
  const { code, message, details } = body as { code: number; message: string; details: object[] };
  expect({ status, code, details }).toEqual({
    status: 400,
    code: 3,
    details: [
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        reason: "INVALID_ARGUMENT",
        domain: "agentfense",
        metadata: {},
      },
    ],
  });
  return message;
}

const post = (body: unknown): RequestInit => ({
  method: "POST",
  body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
});

describe("JSON of requests", () => {
  test("both casings, unknown keys ignored, int64 as string or number", async () => {
    const input = await seen<CreateSandboxRequest>(
      "CreateSandbox",
      "/v1/sandboxes",
      post({
        codebase_id: "cb_1",
        expiresIn: "1.5s",
        resources: { memoryBytes: "536870912", pids_limit: 10, nonsense: [{}] },
        unknown: { deep: true },
        labels: { snake_case: "stays", __proto__: undefined },
      }),
    );
    expect(input.codebaseId).toBe("cb_1");
    expect(input.expiresIn).toMatchObject({ seconds: 1n, nanos: 500_000_000 });
    expect(input.resources).toMatchObject({ memoryBytes: 536870912n, pidsLimit: 10n });
    expect(input.labels).toEqual({ snake_case: "stays" });
  });

  test("enums by full name, by short name in any case and with either dash, and by number", async () => {
    const input = await seen<CreateSandboxRequest>(
      "CreateSandbox",
      "/v1/sandboxes",
      post({
        permissions: [
          { pattern: "/a", permission: "read", type: "file" },
          { pattern: "/b", permission: "PERMISSION_WRITE", type: "PATTERN_TYPE_GLOB" },
          { pattern: "/c", permission: 1, type: "Directory" },
          { pattern: "/d", permission: "view" },
        ],
        runtime: "docker",
        sync: "on-exec",
        network: "PRIVATE",
      }),
    );
    expect(input.permissions.map((rule) => [rule.permission, rule.type])).toEqual([
      [3, 3],
      [4, 1],
      [1, 2],
      [2, 0],
    ]);
    expect([input.runtime, input.sync, input.network]).toEqual([2, 1, 2]);
    expect((await seen<CreateSandboxRequest>("CreateSandbox", "/v1/sandboxes", post({ sync: "on_exec" }))).sync).toBe(
      1,
    );
  });

  test("an unknown enum name is refused with its place, never dropped", async () => {
    const rules = [
      { pattern: "/a", permission: "read" },
      { pattern: "/b", permission: "reed" },
    ];
    expect(await refused("/v1/sandboxes", post({ permissions: rules }))).toBe(
      'permissions[1].permission must be one of none, view, read, write, not "reed"',
    );
    expect(await refused("/v1/sandboxes", post({ runtime: "vm" }))).toContain("runtime must be one of bwrap, docker");
    expect(await refused("/v1/sandboxes", post({ runtime: ["docker"] }))).toContain("runtime must be one of");
    expect(await refused("/v1/sandboxes", post({ runtime: 1.5 }))).toContain("runtime must be a whole number");
  });

  test.each([
    [{ timeout: 30 }, 'timeout must be a string of seconds such as "30s" or "1.5s"'],
    [{ timeout: "30" }, 'timeout must be a string of seconds such as "30s" or "1.5s"'],
    [{ timeout: "NaNs" }, 'timeout must be a string of seconds such as "30s" or "1.5s"'],
    [{ timeout: "30s; rm" }, 'timeout must be a string of seconds such as "30s" or "1.5s"'],
    [{ timeout: "999999999999s" }, 'timeout must be a string of seconds such as "30s" or "1.5s"'],
    [{ command: 1 }, "command must be a string"],
    [{ command: "\ud800" }, "command is not valid Unicode"],
    [{ argv: "ls" }, "argv must be a list"],
    [{ argv: ["ls", null] }, "argv[1] must be a string"],
    [{ env: { A: 1 } }, 'env["A"] must be a string'],
    [{ env: [] }, "env must be a JSON object"],
    [{ stdinBytes: "***" }, "stdin_bytes must be a string in base64"],
    [{ stdin_bytes: "", stdinBytes: "" }, "stdin_bytes is given twice"],
  ])("%j is refused", async (body, message) => {
    expect(await refused("/v1/sandboxes/sb_1/exec", post(body))).toBe(message);
  });

  test.each([
    [{ resources: { memoryBytes: "9223372036854775808" } }, "resources.memory_bytes must be between"],
    [{ resources: { memoryBytes: 2 ** 53 } }, "resources.memory_bytes is too large to be exact"],
    [{ resources: { memoryBytes: 1.5 } }, "resources.memory_bytes must be a whole number"],
    [{ resources: [] }, "resources must be a JSON object"],
    [{ revocable: "yes" }, "revocable must be true or false"],
    [{ permissions: [{ priority: 2 ** 31 }] }, "permissions[0].priority must be between"],
    [{ permissions: [null] }, "permissions[0] must be a JSON object"],
  ])("%j is refused", async (body, message) => {
    expect(await refused("/v1/sandboxes", post(body))).toContain(message);
  });

  test("null is the same as no value, and an empty body is an empty message", async () => {
    const nulls = { command: null, env: null, timeout: null, argv: null };
    expect(await seen<ExecRequest>("Exec", "/v1/sandboxes/sb_1/exec", post(nulls))).toMatchObject({
      sandboxId: "sb_1",
      command: "",
      argv: [],
    });
    for (const body of ["", "  \n", "{}"]) {
      const input = await seen<ExecRequest>("Exec", "/v1/sandboxes/sb_1/exec", post(body));
      expect(input.sandboxId).toBe("sb_1");
    }
    await seen("Exec", "/v1/sandboxes/sb_1/exec", { method: "POST" });
  });

  test("the path wins over the body", async () => {
    const input = await seen<ExecRequest>(
      "Exec",
      "/v1/sandboxes/sb_1/exec",
      post({ sandboxId: "sb_2", command: "ls" }),
    );
    expect([input.sandboxId, input.command]).toEqual(["sb_1", "ls"]);
  });

  test.each([
    ["not JSON", "{"],
    ["a list", "[]"],
    ["a string", '"x"'],
    ["a number", "1"],
    ["null", "null"],
    ["two values", "{} {}"],
    ["invalid UTF-8", new Uint8Array([0x7b, 0xff, 0x7d])],
    ["nested too deep", `{"x":${"[".repeat(70)}${"]".repeat(70)}}`],
    ["nested far too deep", "[".repeat(50_000)],
    ["not JSON, with an escaped key", '{"a\\"": 1,}'],
  ])("%s is no body", async (_, body) => {
    expect(await refused("/v1/sandboxes/sb_1/exec", post(body))).toContain("the body");
  });

  test("a compressed body is refused", async () => {
    const init = { ...post("{}"), headers: { "Content-Encoding": "gzip" } };
    expect(await refused("/v1/sandboxes/sb_1/exec", init)).toContain("gzip");
  });

  test("keys that look like parts of objects are data, and escaped keys are read as they are written", async () => {
    await seen<CreateSandboxRequest>("CreateSandbox", "/v1/sandboxes", post('{"labels":{"a":"1","\\\\":"2"}}'));
    const input = await seen<CreateSandboxRequest>(
      "CreateSandbox",
      "/v1/sandboxes",
      post('{"labels":{"a":"1","\\"":"2","__proto__":"3","constructor":"4"}}'),
    );
    expect(Object.entries(input.labels)).toEqual([
      ["a", "1"],
      ['"', "2"],
      ["__proto__", "3"],
      ["constructor", "4"],
    ]);
  });

  test("a body beyond the limit is 413, announced or not", async () => {
    const rest = restTo(only("none", () => ({})));
    const large = "x".repeat(70_000);
    const endless = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(10_000));
      },
    });
    for (const init of [
      { method: "POST", body: large, headers: { "Content-Length": "70000" } },
      { method: "POST", body: large },
      { method: "POST", body: endless, duplex: "half" },
    ]) {
      const { status, body } = await rest.json("/v1/sandboxes/sb_1/exec", init as RequestInit);
      expect({ status, code: (body as { code: number }).code }).toEqual({ status: 413, code: 8 });
    }
  });

  test("a method without a body ignores one that comes", async () => {
    const input = await seen("StartSandbox", "/v1/sandboxes/sb_1/start", post("this is { no JSON"));
    expect(input).toMatchObject({ sandboxId: "sb_1" });
  });
});

describe("parameters", () => {
  test("of the query: both casings, lists, maps, nested names, enums; unknown ones are ignored", async () => {
    const query =
      "codebaseId=cb_1&page_size=5&labels[team]=a&labels.app.io/name=b+c&status=running&nonsense=1&labels%5Bx%5D=%26";
    const input = await seen<ListSandboxesRequest>("ListSandboxes", `/v1/sandboxes?${query}`, {});
    expect(input).toMatchObject({ codebaseId: "cb_1", pageSize: 5, status: 2 });
    expect(input.labels).toEqual({ team: "a", "app.io/name": "b c", x: "&" });
    for (const status of ["2", "SANDBOX_STATUS_RUNNING", "Running"]) {
      const again = await seen<ListSandboxesRequest>("ListSandboxes", `/v1/sandboxes?status=${status}`, {});
      expect(again.status).toBe(2);
    }
    const events = "types=a&types=b&after=2026-01-02T03:04:05.5Z&page_token=";
    expect(await seen("ListEvents", `/v1/events?${events}`, {})).toMatchObject({
      types: ["a", "b"],
      after: { nanos: 500_000_000 },
    });
  });

  test("booleans and numbers have several spellings, but no ambiguous one", async () => {
    for (const [text, value] of [
      ["true", true],
      ["1", true],
      ["T", true],
      ["False", false],
      ["0", false],
    ] as const) {
      expect(await seen("ListFiles", `/v1/codebases/c/files?recursive=${text}`, {})).toMatchObject({
        recursive: value,
      });
    }
    expect(await refused("/v1/codebases/c/files?recursive=", {})).toBe("recursive must be true or false");
    expect(await refused("/v1/codebases/c/files?recursive=yes", {})).toBe("recursive must be true or false");
    expect(await refused("/v1/codebases/c/files?page_size=010", {})).toContain("page_size has a leading zero");
    expect(await refused("/v1/codebases/c/files?page_size=1e3", {})).toBe("page_size must be a whole number");
    expect(await refused("/v1/codebases/c/files?page_size=99999999999", {})).toContain("page_size must be between");
    expect(await refused("/v1/codebases/c/files?page_size=1&pageSize=2", {})).toBe("page_size is given twice");
  });

  test("what a query cannot say is refused with its name", async () => {
    expect(await refused("/v1/sandboxes?labels=x", {})).toBe("labels is a map; write labels[key]=value");
    expect(await refused("/v1/sandboxes?status=walking", {})).toContain("status must be one of pending, running");
    expect(await refused("/v1/events?after=yesterday", {})).toContain("after must be a time");
    expect(await refused("/v1/sandboxes?labels[x]=%ff", {})).toBe("the query is not percent-encoded UTF-8");
    expect(await refused(`/v1/sandboxes?${"a=1&".repeat(1001)}`, {})).toContain("more than 1000 parameters");
  });

  test("of the path: decoded by segment, slashes only where the template allows them", async () => {
    expect(
      await seen("DeleteFile", "/v1/codebases/c%20d/files/a%20b/c%2Fd/%C3%BC?codebase_id=other", { method: "DELETE" }),
    ).toMatchObject({ codebaseId: "c d", filePath: "a b/c/d/ü" });
    expect(await seen("GetVersion", "/v1/codebases/c/versions/7", {})).toMatchObject({ version: 7n });
    expect(await seen("GetCodebase", "/v1/codebases/", {})).toMatchObject({ codebaseId: "" });
    expect(await refused("/v1/codebases/c/versions/x", {})).toBe("version must be a whole number");
    expect(await refused("/v1/codebases/%ff", {})).toBe("codebase_id in the path is not percent-encoded UTF-8");
    expect(await refused("/v1/codebases/%zz", {})).toBe("codebase_id in the path is not percent-encoded UTF-8");
  });

  test("dots and backslashes of a raw path reach the method, which refuses them", async () => {
    let input: Message | undefined;
    const rest = restTo(
      only("DeleteFile", (message) => {
        input = message as Message;
        return {};
      }),
    );
    const request = new Request("http://localhost/", { method: "DELETE" });
    await rest.handler(request, "/v1/codebases/c/files/a/../..\\x");
    expect(input).toMatchObject({ filePath: "a/../..\\x" });
  });

  test("a path of nobody is not answered", async () => {
    const rest = restTo(only("none", () => ({})));
    for (const path of ["/", "/v1", "/v1/nothing", "/v1//codebases", "/v2/codebases", "/v1/codebases/a/b", "/%zz"]) {
      expect(await rest.handler(new Request(`http://localhost${path}`), path)).toBeUndefined();
    }
  });
});
