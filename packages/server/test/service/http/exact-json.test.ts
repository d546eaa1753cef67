import { gzipSync } from "node:zlib";
import { type CreateSandboxRequest, type ExecRequest, SandboxService } from "@agentfense/protocol/sandbox";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestService, type TestService } from "./fixture.ts";

const asked: (CreateSandboxRequest | ExecRequest | string)[] = [];
let open: TestService;
beforeAll(async () => {
  open = await openTestService({
    register: (router) =>
      router.service(SandboxService, {
        createSandbox: (request) => {
          asked.push(request);
          return {};
        },
        getSandbox: ({ sandboxId }) => {
          asked.push(sandboxId);
          return { id: sandboxId };
        },
        async *execStream(request) {
          asked.push(request);
          yield { type: 1, data: new Uint8Array([0x6f, 0x6b]) };
        },
      }),
  });
});
afterAll(() => open[Symbol.asyncDispose]());
beforeEach(() => asked.splice(0));

const at = (method: string): string => `http://${open.http}/sandbox.v1.SandboxService/${method}`;

/** Through Connect, as one message. */
async function create(body: string | Uint8Array, headers: Record<string, string> = {}): Promise<unknown> {
  const init = { method: "POST", headers: { "content-type": "application/json", ...headers }, body };
  return await (await fetch(at("CreateSandbox"), init as RequestInit)).json();
}

/** Through a protocol of envelopes; gives what came back as text. */
async function execute(
  type: string,
  message: string,
  flags = 0,
  headers: Record<string, string> = {},
): Promise<string> {
  const data = flags === 1 ? gzipSync(message) : Buffer.from(message);
  const prefix = Buffer.alloc(5, flags);
  prefix.writeUInt32BE(data.length, 1);
  const init = { method: "POST", headers: { "content-type": type, ...headers }, body: Buffer.concat([prefix, data]) };
  return await (await fetch(at("ExecStream"), init)).text();
}

test("JSON over Connect is read as REST reads it", async () => {
  const rules = [
    { pattern: "/a", permission: "read", type: "glob" },
    { pattern: "/b", permission: "PERMISSION_WRITE" },
  ];
  const body = {
    codebaseId: "cb_1",
    permissions: rules,
    resources: { memory_bytes: "536870912" },
    unknown: { deep: 1 },
  };
  expect(await create(JSON.stringify(body))).toEqual({});
  expect(await create(gzipSync(JSON.stringify(body)), { "content-encoding": "gzip" })).toEqual({});
  const expected = {
    codebaseId: "cb_1",
    permissions: [
      { pattern: "/a", permission: 3, type: 1 },
      { pattern: "/b", permission: 4 },
    ],
    resources: { memoryBytes: 536870912n },
  };
  expect(asked).toMatchObject([expected, expected]);
});

test.each([
  [
    "a level that nobody knows",
    { permissions: [{ pattern: "/b", permission: "reed" }] },
    "permission must be one of none",
  ],
  ["a number that JSON has rounded", { resources: { memoryBytes: 2 ** 53 } }, "too large to be exact"],
  ["one field in two spellings", { codebaseId: "a", codebase_id: "b" }, "codebase_id is given twice"],
  ["a key that V8 might take for another", { labels: { 'a"': "1" } }, "a key has a quote"],
  ["half a character", { codebaseId: "\ud800" }, "is not valid Unicode"],
])("%s is refused over Connect, and arrives nowhere", async (_title, body, message) => {
  expect(await create(JSON.stringify(body))).toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(message),
    details: [{ type: "google.rpc.ErrorInfo" }],
  });
  expect(asked).toEqual([]);
});

test("so is what is nested too deep, or no JSON", async () => {
  for (const body of [`{"x":${"[".repeat(70)}${"]".repeat(70)}}`, "{", "[]"]) {
    expect(await create(body)).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("the body"),
    });
  }
  expect(asked).toEqual([]);
});

test("a message in the query is read in the same way", async () => {
  const get = async (query: string): Promise<unknown> =>
    (await fetch(`${at("GetSandbox")}?connect=v1&${query}`)).json();
  const message = JSON.stringify({ sandbox_id: "sb_1", more: true });
  expect(await get(`encoding=json&message=${encodeURIComponent(message)}`)).toEqual({ id: "sb_1" });
  const packed = gzipSync(message).toString("base64url");
  expect(await get(`encoding=json&compression=gzip&base64=1&message=${packed}`)).toEqual({ id: "sb_1" });
  expect(await get(`encoding=json&message=${encodeURIComponent('{"sandboxId":"a","sandbox_id":"b"}')}`)).toMatchObject({
    code: "invalid_argument",
    message: "sandbox_id is given twice",
  });
  expect(asked).toEqual(["sb_1", "sb_1"]);
});

test.each([
  ["application/connect+json", "connect-content-encoding"],
  ["application/grpc-web+json", "grpc-encoding"],
])("messages of %s are read in the same way, compressed or not", async (type, encoding) => {
  const message = JSON.stringify({ sandbox_id: "sb_1", command: "ls", env: { A: "1" } });
  expect(await execute(type, message)).toContain('"data":"b2s="');
  expect(await execute(type, message, 1, { [encoding]: "gzip" })).toContain('"data":"b2s="');
  const expected = { sandboxId: "sb_1", command: "ls", env: { A: "1" } };
  expect(asked.splice(0)).toMatchObject([expected, expected]);
  const refusal = await execute(type, JSON.stringify({ timeout: 30 }));
  expect(refusal.replaceAll("%20", " ")).toContain("timeout must be a string of seconds");
  expect(asked).toEqual([]);
});
