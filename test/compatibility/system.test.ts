import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover } from "../support/api.ts";
import { GrpcClient } from "../support/grpc-client.ts";
import { GuardedServer } from "../support/owners.ts";
import type { Message } from "../support/proto.ts";
import { RestClient } from "../support/rest-client.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

test("the server tells what it is", async () => {
  expect(await api.call("SystemService.GetServerInfo")).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    runtimes: ["RUNTIME_TYPE_BWRAP"],
    degradations: expect.any(Array),
    keys_required: false,
    owner_id: "",
    role: "ROLE_ADMIN",
  });
  expect((await api.rest.get("/v1/server")).json).toMatchObject({
    runtimes: ["RUNTIME_TYPE_BWRAP"],
    keysRequired: false,
    ownerId: "",
    role: "ROLE_ADMIN",
  });
});

describe("keys", () => {
  test("are made, listed without their secret, and revoked", async () => {
    const made = await api.call("SystemService.CreateKey", { owner_id: "alice", name: "laptop" });
    expect(made).toEqual({
      key: {
        id: expect.stringMatching(/^key_[0-9a-f]+$/),
        owner_id: "alice",
        role: "ROLE_USER",
        name: "laptop",
        created_at: { seconds: expect.any(String), nanos: expect.any(Number) },
        revoked_at: null,
        last_used_at: null,
      },
      secret: expect.any(String),
    });
    const over = await api.rest.post("/v1/keys", { ownerId: "bob", role: "read_only" });
    expect({ status: over.status, json: over.json }).toEqual({
      status: 200,
      json: {
        key: {
          id: expect.stringMatching(/^key_/),
          ownerId: "bob",
          role: "ROLE_READ_ONLY",
          name: "",
          createdAt: expect.stringMatching(/Z$/),
          revokedAt: null,
          lastUsedAt: null,
        },
        secret: expect.any(String),
      },
    });
    const [alice, bob] = [(made.key as Message).id as string, (over.json.key as Message).id as string];

    const { keys } = await api.call("SystemService.ListKeys");
    expect(keys).toEqual(expect.arrayContaining([made.key]));
    const listed = await api.rest.get("/v1/keys");
    expect(listed.text).not.toContain(made.secret);
    expect(listed.text).not.toContain(over.json.secret);

    expect(await api.call("SystemService.RevokeKey", { key_id: alice })).toEqual({});
    const revoked = await api.rest.delete(`/v1/keys/${bob}`);
    expect({ status: revoked.status, text: revoked.text }).toEqual({ status: 200, text: "{}" });
    const after = (await api.rest.get("/v1/keys")).json.keys as Message[];
    expect(after.filter(({ id }) => id === alice || id === bob)).toMatchObject([
      { revokedAt: expect.stringMatching(/Z$/) },
      { revokedAt: expect.stringMatching(/Z$/) },
    ]);
  });

  test("refused: no owner, an unknown role, an unknown key, no key", async () => {
    await api.refused({
      method: "SystemService.CreateKey",
      request: { name: "x" },
      rest: "POST /v1/keys",
      status: "INVALID_ARGUMENT",
      message: "owner_id is required",
    });
    await api.refused({
      method: "SystemService.CreateKey",
      request: { owner_id: "x", role: 12 },
      rest: "POST /v1/keys",
      status: "INVALID_ARGUMENT",
      message: "role: 12 is not a known value",
    });
    for (const id of ["key_0000000000000000", "nonsense"]) {
      await api.refused({
        method: "SystemService.RevokeKey",
        request: { key_id: id },
        rest: `DELETE /v1/keys/${id}`,
        status: "NOT_FOUND",
        message: "there is no such API key",
      });
    }
    await api.refused({
      method: "SystemService.RevokeKey",
      rest: "DELETE /v1/keys/",
      status: "INVALID_ARGUMENT",
      message: "key_id is required",
    });
  });
});

describe("with keys required", () => {
  let guarded: GuardedServer;
  beforeAll(async () => {
    guarded = await GuardedServer.start();
  });
  afterAll(() => guarded?.[Symbol.asyncDispose]());

  test("without one, or with a wrong one: UNAUTHENTICATED and 401", async () => {
    for (const key of [undefined, "af_wrong"]) {
      using grpc = new GrpcClient(guarded.server.grpc, key === undefined ? {} : { key });
      expect(await grpc.failure("CodebaseService", "ListCodebases")).toMatchObject({ code: 16 });
      expect(await grpc.outcome("SandboxService", "ExecStream", [{}])).toMatchObject({ code: 16, messages: [] });
      const rest = new RestClient(guarded.server.http, key === undefined ? {} : { key });
      const { status, json, headers } = await rest.get("/v1/codebases");
      expect({ status, json }).toMatchObject({ status: 401, json: { code: 16, details: expect.any(Array) } });
      expect(headers.get("www-authenticate")).toBe("Bearer");
    }
  });

  test("the owner is the key's", async () => {
    const { alice, mallory } = guarded;
    const made = await alice.rest.post("/v1/codebases", { name: "mine" });
    expect(made.json).toMatchObject({ ownerId: "alice" });
    expect(await alice.grpc.call("SystemService", "GetServerInfo")).toMatchObject({
      keys_required: true,
      owner_id: "alice",
      role: "ROLE_USER",
    });
    expect(await mallory.grpc.failure("CodebaseService", "GetCodebase", { codebase_id: made.json.id })).toEqual({
      code: 5,
      message: "codebase not found",
    });
    const foreign = await mallory.rest.post("/v1/codebases", { name: "theirs", owner_id: "alice" });
    expect({ status: foreign.status, json: foreign.json }).toMatchObject({
      status: 400,
      json: { code: 3, message: "owner_id is not the owner of the key" },
    });
  });

  test("keys are for administrators, changes not for who may only read", async () => {
    const denied = await guarded.alice.rest.get("/v1/keys");
    expect({ status: denied.status, json: denied.json }).toMatchObject({
      status: 403,
      json: { code: 7, message: "only an administrator may manage keys" },
    });
    expect(await guarded.reader.grpc.failure("CodebaseService", "CreateCodebase", { name: "x" })).toMatchObject({
      code: 7,
    });
    expect((await guarded.reader.rest.get("/v1/codebases")).status).toBe(200);
  });
});

describe("beside the contract", () => {
  /** A client of a service that others define. */
  const foreign = (file: string, service: string): grpc.Client & Record<string, (...args: unknown[]) => unknown> => {
    const root = join(import.meta.dirname, "../../proto");
    const loaded = loadSync(join(root, file), { includeDirs: [root], keepCase: true, enums: String, oneofs: true });
    const Client = grpc.makeGenericClientConstructor(loaded[service] as grpc.ServiceDefinition, service);
    const made: unknown = new Client(api.server.grpc, grpc.credentials.createInsecure());
    return made as grpc.Client & Record<string, (...args: unknown[]) => unknown>;
  };

  test("gRPC's own health service", async () => {
    const health = foreign("grpc/health/v1/health.proto", "grpc.health.v1.Health");
    const check = (service: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        health.Check?.({ service }, (error: unknown, answer: unknown) => (error ? reject(error) : resolve(answer)));
      });
    expect(await check("")).toEqual({ status: "SERVING" });
    expect(await check("sandbox.v1.SandboxService")).toEqual({ status: "SERVING" });
    await expect(check("sandbox.v1.None")).rejects.toMatchObject({ code: 5 });
    health.close();
  });

  test.each(["v1", "v1alpha"])("gRPC's own reflection, %s", async (version) => {
    const name = `grpc.reflection.${version}.ServerReflection`;
    const reflection = foreign(`grpc/reflection/${version}/reflection.proto`, name);
    const call = reflection.ServerReflectionInfo?.() as grpc.ClientDuplexStream<Message, Message>;
    const answer = new Promise<Message>((resolve, reject) => call.once("data", resolve).once("error", reject));
    call.write({ list_services: "*" });
    const { service } = (await answer).list_services_response as { service: { name: string }[] };
    call.end();
    reflection.close();
    expect(service.map((each) => each.name)).toEqual(
      expect.arrayContaining(["CodebaseService", "SandboxService"].map((each) => `sandbox.v1.${each}`)),
    );
  });

  test("a method that is not there is UNIMPLEMENTED", async () => {
    const client = new grpc.Client(api.server.grpc, grpc.credentials.createInsecure());
    const failed = new Promise((resolve) => {
      const bytes = (value: Buffer): Buffer => value;
      client.makeUnaryRequest("/sandbox.v1.SandboxService/None", bytes, bytes, Buffer.alloc(0), resolve);
    });
    expect(await failed).toMatchObject({ code: 12, details: "unknown service or method" });
    client.close();
  });

  test("health, readiness, metrics and the contract", async () => {
    expect((await api.rest.get("/healthz")).text).toBe("ok\n");
    expect((await api.rest.get("/readyz")).text).toBe("ready\n");
    expect((await api.rest.get("/metrics")).text).toMatch(/^# HELP /m);
    const openApi = (await api.rest.get("/openapi.json")).json;
    expect(openApi).toMatchObject({ openapi: expect.stringMatching(/^3\./) });
    expect(Object.keys(openApi.paths as object)).toContain("/v1/sandboxes/{sandbox_id}/exec");
  });
});

testsCover(api, COVERAGE.system);
