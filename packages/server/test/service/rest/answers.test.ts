import { CodebaseSchema } from "@agentfense/protocol/codebase";
import { EmptySchema, type PatternType } from "@agentfense/protocol/common";
import { ErrorInfoSchema, RetryInfoSchema } from "@agentfense/protocol/error-details";
import { ExecResultSchema, SandboxSchema } from "@agentfense/protocol/sandbox";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { only, restTo } from "./support.ts";

describe("JSON of answers", () => {
  test("every field is there: camelCase, int64 as strings, enums by name, null for what is unset", async () => {
    const rest = restTo(
      only("GetSandbox", () =>
        create(SandboxSchema, {
          id: "sb_1",
          status: 2,
          createdAt: { seconds: 1_700_000_000n, nanos: 120_000_000 },
          permissions: [{ pattern: "/a", permission: 3, type: 99 as PatternType }],
          resources: { memoryBytes: 536870912n },
        }),
      ),
    );
    const { body, headers } = await rest.json("/v1/sandboxes/sb_1");
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("grpc-metadata-content-type")).toBe("application/grpc");
    expect(body).toEqual({
      id: "sb_1",
      codebaseId: "",
      permissions: [{ pattern: "/a", type: 99, permission: "PERMISSION_READ", priority: 0 }],
      status: "SANDBOX_STATUS_RUNNING",
      labels: {},
      createdAt: "2023-11-14T22:13:20.120Z",
      startedAt: null,
      stoppedAt: null,
      expiresAt: null,
      runtime: "RUNTIME_TYPE_UNSPECIFIED",
      image: "",
      resources: {
        memoryBytes: "536870912",
        cpuQuota: "0",
        cpuShares: "0",
        pidsLimit: "0",
        diskBytes: "0",
        diskFiles: "0",
        outputBytes: "0",
      },
      ownerId: "",
      sync: "SYNC_MODE_UNSPECIFIED",
      network: "NETWORK_MODE_UNSPECIFIED",
      networkRules: [],
      secrets: [],
      codebaseVersion: "0",
      statusReason: "",
      idlePause: null,
      revocable: false,
      home: "",
      workspaceHome: "",
      pauseAtExpiry: false,
    });
  });

  test("durations end with s, bytes are base64, DELETE is {}", async () => {
    const exec = restTo(
      only("Exec", () =>
        create(ExecResultSchema, {
          exitCode: 1,
          duration: { seconds: 0n, nanos: 12_000_000 },
          stdoutBytes: Buffer.from("ÿ"),
        }),
      ),
    );
    const { body } = await exec.json("/v1/sandboxes/sb_1/exec", { method: "POST", body: "{}" });
    expect(body).toMatchObject({ exitCode: 1, duration: "0.012s", stdoutBytes: "w78=", stderr: "" });
    const remove = restTo(only("DeleteCodebase", () => create(EmptySchema)));
    const response = await remove.fetch("/v1/codebases/cb_1", { method: "DELETE" });
    expect([response.status, await response.text()]).toEqual([200, "{}"]);
  });
});

describe("errors", () => {
  const failing = (error: unknown) =>
    restTo(() => () => {
      throw error;
    });

  test.each([
    [Code.InvalidArgument, 400],
    [Code.FailedPrecondition, 400],
    [Code.OutOfRange, 400],
    [Code.Unauthenticated, 401],
    [Code.PermissionDenied, 403],
    [Code.NotFound, 404],
    [Code.AlreadyExists, 409],
    [Code.Aborted, 409],
    [Code.ResourceExhausted, 429],
    [Code.Canceled, 499],
    [Code.Unknown, 500],
    [Code.Internal, 500],
    [Code.DataLoss, 500],
    [Code.Unimplemented, 501],
    [Code.Unavailable, 503],
    [Code.DeadlineExceeded, 504],
  ])("code %i is HTTP %i", async (code, status) => {
    const answer = await failing(new ConnectError("why", code)).json("/v1/codebases/x");
    expect([answer.status, answer.body]).toEqual([status, { code, message: "why", details: [] }]);
    expect(answer.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  test("details keep their types, with every field; unknown types keep their bytes", async () => {
    const details = [
      { desc: ErrorInfoSchema, value: { reason: "COMMAND_TIMEOUT", domain: "agentfense", metadata: { limit: "1s" } } },
      { desc: ExecResultSchema, value: { stdout: "partial" } },
      { desc: RetryInfoSchema, value: { retryDelay: { seconds: 2n, nanos: 1 } } },
    ];
    const error = new ConnectError("slow", Code.DeadlineExceeded, undefined, details);
    const { body, headers } = await failing(error).json("/v1/codebases/x");
    expect(body).toMatchObject({
      code: 4,
      message: "slow",
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason: "COMMAND_TIMEOUT",
          domain: "agentfense",
          metadata: { limit: "1s" },
        },
        { "@type": "type.googleapis.com/sandbox.v1.ExecResult", stdout: "partial", exitCode: 0, duration: null },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "2.000000001s" },
      ],
    });
    expect(headers.get("retry-after")).toBe("3");
  });

  test("an error of ours tells the client nothing and the log everything", async () => {
    const rest = restTo(only("GetCodebase", () => create(CodebaseSchema, { createdAt: { seconds: 2n ** 60n } })));
    const { status, body } = await rest.json("/v1/codebases/x");
    const [line, ...others] = rest.logged;
    const [, reference] = /^sandbox\.v1\.CodebaseService\.GetCodebase failed \(reference ([0-9a-f]+)\)$/.exec(
      line!.message,
    )!;
    expect(line).toMatchObject({ level: "error", error: expect.stringContaining("cannot encode") });
    expect(others).toEqual([]);
    const info = { reason: "INTERNAL", domain: "agentfense", metadata: { reference } };
    const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", ...info }];
    expect([status, body]).toEqual([500, { code: 13, message: `internal error (reference ${reference})`, details }]);
  });

  test("a known path with another method is 501, with what it allows", async () => {
    const rest = restTo(only("none", () => ({})));
    const { status, body, headers } = await rest.json("/v1/codebases", { method: "PUT" });
    expect([status, body]).toEqual([501, { code: 12, message: "Method Not Allowed", details: [] }]);
    expect(headers.get("allow")).toBe("POST, GET, HEAD, OPTIONS");
    expect((await rest.fetch("/v1/codebases/a/files/x", { method: "POST" })).status).toBe(501);
    const options = await rest.fetch("/v1/codebases/a/files/x", { method: "OPTIONS" });
    expect([options.status, options.headers.get("allow")]).toEqual([204, "PUT, GET, DELETE, HEAD, OPTIONS"]);
  });

  test("HEAD is GET without a body, errors included", async () => {
    const found = restTo(only("GetCodebase", () => create(CodebaseSchema, { id: "x" })));
    const get = await found.fetch("/v1/codebases/x");
    const head = await found.fetch("/v1/codebases/x", { method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, null]);
    expect(head.headers.get("content-length")).toBe(String((await get.bytes()).byteLength));
    const missing = failing(new ConnectError("no", Code.NotFound));
    expect((await missing.fetch("/v1/codebases/x", { method: "HEAD" })).status).toBe(404);
    expect((await found.fetch("/v1/events/watch", { method: "HEAD" })).status).toBe(501);
  });

  test("who asks and the trace go with the call, and nothing else", async () => {
    let passed: string[] = [];
    const rest = restTo(
      only("GetCodebase", (_, context) => {
        passed = [...context.requestHeader.entries()].map(([name, value]) => `${name}: ${value}`);
        return {};
      }),
    );
    const headers = {
      Authorization: "Bearer k",
      "X-Api-Key": "k",
      "User-Agent": "curl/8",
      Traceparent: "00-a-b-01",
      Cookie: "a=b",
      "X-Forwarded-For": "1.2.3.4",
      "Grpc-Timeout": "1S",
    };
    await rest.fetch("/v1/codebases/x", { headers });
    expect(passed).toEqual(
      expect.arrayContaining([
        "authorization: Bearer k",
        "x-api-key: k",
        "user-agent: curl/8",
        "traceparent: 00-a-b-01",
      ]),
    );
    expect(passed.some((line) => /cookie|forwarded|timeout/.test(line))).toBe(false);
  });
});
