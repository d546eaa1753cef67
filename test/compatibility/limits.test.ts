import { describe, expect, test } from "vitest";
import { serveApi } from "../support/api.ts";
import { eventually } from "../support/eventually.ts";
import { GrpcClient } from "../support/grpc-client.ts";
import type { Message } from "../support/proto.ts";
import { TestServer } from "../support/server.ts";

// What the earlier server had settings for and did not enforce.

const api = serveApi({
  settings: {
    runtime: { default_timeout: "2s", max_timeout: "3s" },
    sandbox: {
      max_per_user: 2,
      default_expiration: "1h",
      max_expiration: "2h",
      cleanup_interval: "1s",
      max_resources: { memory_bytes: "1GiB", pids_limit: 100 },
    },
    limits: { max_message_size: "256KiB" },
  },
});

const create = (codebase: string, request: Message = {}): Promise<Message> =>
  api.call("SandboxService.CreateSandbox", { codebase_id: codebase, ...request });

describe("API-24 timeouts", () => {
  test("API-24 a command that names none gets the default", async () => {
    const sandbox = await api.sandbox(await api.codebase({}, "default-timeout"));
    // The message is the server's: whoever waits for it is more patient.
    await api.refused({
      method: "SandboxService.Exec",
      request: { sandbox_id: sandbox, command: "sleep 600" },
      rest: `POST /v1/sandboxes/${sandbox}/exec`,
      status: "DEADLINE_EXCEEDED",
      message: "command timed out",
    });
  });

  test("API-24 one that asks for more than the maximum is refused with the maximum, and is not run", async () => {
    const sandbox = await api.sandbox(await api.codebase({}, "max-timeout"));
    const most = { status: "INVALID_ARGUMENT", message: "timeout is at most 3 s" } as const;
    await api.refused({
      method: "SandboxService.Exec",
      request: { sandbox_id: sandbox, command: "touch ran", timeout: { seconds: 3600 } },
      rest: `POST /v1/sandboxes/${sandbox}/exec`,
      body: { command: "touch ran", timeout: "3600s" },
      ...most,
    });
    const { id: session } = await api.call("SandboxService.CreateSession", { sandbox_id: sandbox });
    await api.refused({
      method: "SandboxService.SessionExec",
      request: { session_id: session, command: "touch ran", timeout: { seconds: 4 } },
      rest: `POST /v1/sessions/${session}/exec`,
      body: { command: "touch ran", timeout: "4s" },
      ...most,
    });
    // One that asks for more than the default gets it.
    const request = { sandbox_id: sandbox, command: "sleep 2.3; ls", timeout: { seconds: 3 } };
    expect(await api.call("SandboxService.Exec", request)).toMatchObject({ stdout: "" });
  });
});

describe("expiry", () => {
  test("is set, and enforced: the sandbox goes with its processes", async () => {
    const codebase = await api.codebase({}, "expiring");
    const sandbox = await api.sandbox(codebase, { expires_in: { seconds: 3 } });
    const { created_at, expires_at } = (await api.call("SandboxService.GetSandbox", { sandbox_id: sandbox })) as Record<
      string,
      { seconds: string }
    >;
    expect(Number(expires_at?.seconds) - Number(created_at?.seconds)).toBe(3);
    await eventually(async () => expect((await api.rest.get(`/v1/sandboxes/${sandbox}`)).status).toBe(404));
    await eventually(async () => {
      const { json } = await api.rest.get(`/v1/events?sandbox_id=${sandbox}`);
      const types = (json.events as Message[]).map(({ type }) => type);
      expect(types.slice(-2)).toEqual(["sandbox_expired", "sandbox_destroyed"]);
    });
    expect(await api.call("CodebaseService.DeleteCodebase", { codebase_id: codebase })).toEqual({});
  });

  test("beyond the server's maximum is refused with the limit", async () => {
    const codebase = await api.codebase({}, "eternal");
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase, expires_in: { seconds: 7201 } },
      rest: "POST /v1/sandboxes",
      body: { codebase_id: codebase, expires_in: "7201s" },
      status: "INVALID_ARGUMENT",
      message: "expires_in is at most 7200 s",
    });
  });
});

describe("how many and how much", () => {
  test("max_per_user counts an owner's sandboxes, and frees what is destroyed", async () => {
    const codebase = await api.codebase({}, "greedy");
    const { id } = await create(codebase);
    await create(codebase);
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase },
      rest: "POST /v1/sandboxes",
      status: "RESOURCE_EXHAUSTED",
      message: "an owner has at most 2 sandboxes",
    });
    expect(await create(await api.codebase({}, "modest"))).toMatchObject({ status: "SANDBOX_STATUS_PENDING" });
    await api.rest.delete(`/v1/sandboxes/${id}`);
    expect(await create(codebase)).toMatchObject({ status: "SANDBOX_STATUS_PENDING" });
  });

  test("resources beyond the server's maximum are refused with the limit", async () => {
    const codebase = await api.codebase({}, "large");
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase, resources: { memory_bytes: String(2 ** 31) } },
      rest: "POST /v1/sandboxes",
      status: "RESOURCE_EXHAUSTED",
      message: "resources.memory_bytes is at most 1073741824 on this server",
    });
    await api.refused({
      method: "SandboxService.CreateSandbox",
      request: { codebase_id: codebase, resources: { pids_limit: 1000 } },
      rest: "POST /v1/sandboxes",
      status: "RESOURCE_EXHAUSTED",
      message: "resources.pids_limit is at most 100 on this server",
    });
  });
});

describe("API-33 messages", () => {
  test("API-33 one beyond the limit is RESOURCE_EXHAUSTED, and the connection goes on", async () => {
    const sandbox = await api.sandbox(await api.codebase({}, "messages"));
    const stdin = "x".repeat(300_000);
    const large = await api.grpc.outcome("SandboxService", "Exec", [{ sandbox_id: sandbox, command: "wc -c", stdin }]);
    expect(large).toMatchObject({ code: 8, messages: [] });
    const fitting = { sandbox_id: sandbox, command: "wc -c", stdin: "x".repeat(200_000) };
    expect((await api.call("SandboxService.Exec", fitting)).stdout).toBe("200000\n");
  });

  test("API-33 in an upload it ends the upload, and nothing is written", async () => {
    const codebase = await api.codebase();
    const messages = [{ metadata: { codebase_id: codebase, file_path: "a" } }, { data: Buffer.alloc(300_000) }];
    expect(await api.grpc.outcome("CodebaseService", "UploadFiles", messages)).toMatchObject({ code: 8 });
    expect(await api.call("CodebaseService.ListFiles", { codebase_id: codebase })).toMatchObject({ files: [] });
  });

  test("over REST a file is no message: it streams", async () => {
    const codebase = await api.codebase();
    const content = Buffer.alloc(5_000_000, "x");
    const { status, json } = await api.rest.request("PUT", `/v1/codebases/${codebase}/files/large`, content);
    expect({ status, json }).toMatchObject({ status: 200, json: { size: "5000000" } });
  });
});

describe("runtimes", () => {
  test("runtime.fallback takes the place of one that is not there, and says so", async () => {
    await using server = await TestServer.start({ settings: { runtime: { type: "bwrap", fallback: "bwrap" } } });
    using grpc = new GrpcClient(server.grpc);
    const { id } = await grpc.call("CodebaseService", "CreateCodebase", { name: "n", owner_id: "o" });
    const request = { codebase_id: id, runtime: "RUNTIME_TYPE_DOCKER", image: "ubuntu:22.04" };
    expect(await grpc.call("SandboxService", "CreateSandbox", request)).toMatchObject({
      runtime: "RUNTIME_TYPE_BWRAP",
      image: "",
    });
  });
});
