import { beforeAll, describe, expect, test } from "vitest";
import { serveApi } from "../support/api.ts";
import type { Message } from "../support/proto.ts";

// What REST makes of JSON and of HTTP, whatever the method.

const api = serveApi({ settings: { limits: { max_body_size: "64KiB" } } });
let codebase: string;
let sandbox: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "a" }, "json");
  sandbox = await api.sandbox(codebase);
});

const post = (path: string, body: string, headers: Record<string, string> = { "content-type": "application/json" }) =>
  api.rest.raw("POST", path, body, headers);

describe("what comes in", () => {
  const accepted: readonly (readonly [string, string])[] = [
    ["snake_case", '{"name":"n","owner_id":"o"}'],
    ["camelCase", '{"name":"n","ownerId":"o"}'],
    ["unknown keys", '{"name":"n","ownerId":"o","future":{"a":[1]},"x":null}'],
    ["output fields of another message", '{"name":"n","ownerId":"o","fileCount":"many"}'],
    ["null for what is not set", '{"name":"n","ownerId":"o","nothing":null}'],
    ["white space and a byte order that JSON allows", ' \n{ "name" : "n" ,\t"owner_id":"o" }\r\n'],
    ["escapes", '{"n\\u0061me":"n","owner_id":"\\u006f"}'],
  ];

  test.each(accepted)("%s", async (_title, body) => {
    const { status, json } = await post("/v1/codebases", body);
    expect({ status, json }).toMatchObject({ status: 200, json: { name: "n", ownerId: "o" } });
  });

  const rule = { pattern: "x", type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ", priority: 3 };
  const enums: readonly (readonly [string, Message])[] = [
    ["full names", { type: "PATTERN_TYPE_GLOB", permission: "PERMISSION_READ" }],
    ["numbers", { type: 1, permission: 3 }],
    ["short names", { type: "glob", permission: "read" }],
    ["short names in capitals", { type: "GLOB", permission: "READ" }],
  ];

  test.each(enums)("enums as %s", async (_title, written) => {
    const permissions = [{ pattern: "x", priority: 3, ...written }];
    const { json } = await api.rest.post("/v1/sandboxes", { codebase_id: codebase, permissions });
    expect(json.permissions).toEqual([rule]);
  });

  test.each([["bwrap"], ["RUNTIME_TYPE_BWRAP"], [1]])("the runtime as %s", async (runtime) => {
    const { json } = await api.rest.post("/v1/sandboxes", { codebase_id: codebase, runtime });
    expect(json.runtime).toBe("RUNTIME_TYPE_BWRAP");
  });

  test.each([["536870912"], [536870912], ["536870912.0"], [5.36870912e8]])("an int64 as %j", async (memoryBytes) => {
    const { json } = await api.rest.post("/v1/sandboxes", { codebase_id: codebase, resources: { memoryBytes } });
    expect(json.resources).toMatchObject({ memoryBytes: "536870912" });
  });

  test.each([["2s"], ["2.000s"], ["2.000000000s"]])("a duration as %s", async (timeout) => {
    const { status, json } = await api.rest.post(`/v1/sandboxes/${sandbox}/exec`, { command: "echo 1", timeout });
    expect({ status, json }).toMatchObject({ status: 200, json: { exitCode: 0 } });
  });

  test("an empty body is an empty message", async () => {
    const { status, json } = await api.rest.raw("POST", "/v1/codebases");
    expect({ status, json }).toMatchObject({ status: 400, json: { code: 3, message: "name is required" } });
    const empty = await post("/v1/codebases", "");
    expect(empty.json).toMatchObject({ code: 3, message: "name is required" });
  });

  test("query parameters in both casings, and unknown ones ignored", async () => {
    for (const query of ["owner_id=json&page_size=5", "ownerId=json&pageSize=5", "owner_id=json&utm=1"]) {
      const { status, json } = await api.rest.get(`/v1/codebases?${query}`);
      expect({ status, json }).toMatchObject({ status: 200, json: { codebases: [{ id: codebase }] } });
    }
  });

  const refused: readonly (readonly [string, string, string | RegExp])[] = [
    ["half an object", '{"name":', /./],
    ["no JSON at all", "name=demo", /./],
    ["a list", '[{"name":"x"}]', "the body must be a JSON object"],
    ["a string", '"name"', "the body must be a JSON object"],
    ["two documents", '{"name":"a"}{"name":"b"}', /./],
    ["a comment", '{"name":"a"/**/}', /./],
    ["a field twice", '{"name":"a","owner_id":"o","ownerId":"o"}', "owner_id is given twice"],
    ["a number for a string", '{"name":7,"owner_id":"o"}', "name must be a string"],
    ["bytes that are no UTF-8", '{"name":"\xff"}', /./],
    ["half a surrogate pair", '{"name":"\\ud800","owner_id":"o"}', "name is not valid Unicode"],
  ];

  test.each(refused)("400 for %s", async (title, body, message) => {
    const bytes = title.startsWith("bytes") ? Buffer.from(body, "latin1") : Buffer.from(body);
    const answer = await api.rest.raw("POST", "/v1/codebases", bytes, { "content-type": "application/json" });
    expect({ status: answer.status, code: answer.json.code }).toEqual({ status: 400, code: 3 });
    expect(answer.json.message).toMatch(message);
  });

  const wrong: readonly (readonly [string, Message, string | RegExp])[] = [
    ["a number for a duration", { timeout: 30 }, /^timeout must be a string of seconds/],
    ["a duration without its unit", { timeout: "30" }, /^timeout must be a string of seconds/],
    ["a duration in another unit", { timeout: "1m" }, /^timeout must be a string of seconds/],
    ["a list for a map", { env: ["A=B"] }, "env must be a JSON object"],
    ["a number for a map's value", { env: { A: 1 } }, 'env["A"] must be a string'],
    ["a string for a list", { argv: "true" }, "argv must be a list"],
    ["what is no base64", { stdin_bytes: "***" }, "stdin_bytes must be a string in base64"],
  ];

  test.each(wrong)("400 for %s", async (_title, body, message) => {
    const { status, json } = await api.rest.post(`/v1/sandboxes/${sandbox}/exec`, { command: "true", ...body });
    expect({ status, code: json.code }).toEqual({ status: 400, code: 3 });
    expect(json.message).toMatch(message);
  });

  const queries: readonly (readonly [string, string])[] = [
    ["/v1/codebases?page_size=many", "page_size must be a whole number"],
    ["/v1/codebases?page_size=99999999999", "page_size must be between -2147483648 and 2147483647"],
    ["/v1/codebases/cb_0123456789abcdef/files?recursive=perhaps", "recursive must be true or false"],
    ["/v1/sandboxes?status=asleep", 'status must be one of pending, running, stopped, error, paused, not "asleep"'],
    ["/v1/codebases/%ff", "codebase_id in the path is not percent-encoded UTF-8"],
  ];

  test.each(queries)("400 for %s", async (target, message) => {
    const { status, json } = await api.rest.raw("GET", target);
    expect({ status, json }).toEqual({ status: 400, json: { code: 3, message, details: expect.any(Array) } });
  });

  test("413 for a body beyond the limit, announced or not", async () => {
    const body = JSON.stringify({ name: "x".repeat(70_000), owner_id: "o" });
    const announced = await post("/v1/codebases", body);
    const chunked = await post("/v1/codebases", body, {
      "content-type": "application/json",
      "transfer-encoding": "chunked",
    });
    for (const { status, json } of [announced, chunked]) {
      expect({ status, json }).toMatchObject({
        status: 413,
        json: { code: 8, message: expect.stringContaining("65536") },
      });
    }
  });

  test("415 for a body of a type that a web page could send", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      const { status, json } = await post("/v1/codebases", '{"name":"a","owner_id":"o"}', { "content-type": type });
      expect({ status, json }).toMatchObject({ status: 415, json: { code: 3, details: [] } });
    }
  });
});

describe("what goes out", () => {
  test("JSON, with the header that clients of the gateway know", async () => {
    const { headers } = await api.rest.get(`/v1/codebases/${codebase}`);
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("grpc-metadata-content-type")).toBe("application/grpc");
  });

  test("an error is a google.rpc.Status", async () => {
    const { status, headers, json } = await api.rest.get("/v1/codebases/cb_0123456789abcdef");
    expect({ status, json }).toEqual({
      status: 404,
      json: {
        code: 5,
        message: "codebase not found",
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "CODEBASE_NOT_FOUND",
            domain: "agentfense",
            metadata: {},
          },
        ],
      },
    });
    expect(headers.get("content-type")).toBe("application/json");
  });

  test("HEAD is GET without its body", async () => {
    const { status, text } = await api.rest.raw("HEAD", `/v1/codebases/${codebase}`);
    expect({ status, text }).toEqual({ status: 200, text: "" });
  });

  const unknown = ["/", "/v1", "/v2/codebases", "/v1/codebases/x/y/z", "/v1/sandboxes/sb_1/none", "/health", "/a%0Ab"];

  test.each(unknown)("404 for %s", async (target) => {
    const { status, json } = await api.rest.raw("GET", target);
    expect({ status, json }).toEqual({ status: 404, json: { code: 5, message: "Not Found", details: [] } });
  });

  const methods: readonly (readonly [string, string])[] = [
    ["PUT", "/v1/codebases"],
    ["PATCH", "/v1/codebases/cb_1"],
    ["POST", "/v1/codebases/cb_1"],
    ["POST", "/v1/codebases/cb_1/files"],
    ["GET", "/v1/sandboxes/sb_1/start"],
    ["DELETE", "/v1/sandboxes/sb_1/exec"],
    ["GET", "/v1/sessions/sess_1/exec"],
  ];

  test.each(methods)("501 for %s %s", async (method, target) => {
    const { status, json, headers } = await api.rest.raw(method, target);
    expect({ status, json }).toEqual({ status: 501, json: { code: 12, message: "Method Not Allowed", details: [] } });
    expect(headers.get("allow")).toMatch(/GET|POST|DELETE/);
  });
});
