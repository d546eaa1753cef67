import { setImmediate as turn } from "node:timers/promises";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aWhile, eventually, HANG_MS, withoutHanging } from "../../../../../test/support/eventually.ts";
import { ADMIN, bearer, grpcClient, openTestService, READER, type TestService, USER, unary } from "./fixture.ts";

let open: TestService;
beforeEach(async () => {
  open = await openTestService({ keys: "required" });
});
afterEach(async () => {
  await open[Symbol.asyncDispose]();
});

const PROTOCOLS: Record<string, (address: string) => Transport> = {
  gRPC: (address) => createGrpcTransport({ baseUrl: `http://${address}` }),
  "gRPC-Web": (address) => createGrpcWebTransport({ baseUrl: `http://${address}`, httpVersion: "1.1" }),
  Connect: (address) => createConnectTransport({ baseUrl: `http://${address}`, httpVersion: "1.1" }),
};

async function codeOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "OK",
    (error: unknown) => Code[ConnectError.from(error).code],
  );
}

async function firstOf<Message>(stream: AsyncIterable<Message>): Promise<Message | undefined> {
  for await (const message of stream) return message;
  return undefined;
}

/** Endless, and it remembers how much of it was asked for. */
function endlessUpload() {
  const taken = { chunks: 0 };
  const chunks = (async function* () {
    for (;;) {
      taken.chunks += 1;
      yield { content: { case: "data" as const, value: new Uint8Array(16_384) } };
    }
  })();
  return { taken, chunks };
}

const WRONG: Record<string, Record<string, string>> = {
  "no key": {},
  "a wrong key": bearer("af_wrong"),
  "an empty key": { authorization: "Bearer " },
  "another scheme": { authorization: `Basic ${Buffer.from(`x:${USER}`).toString("base64")}` },
  "an empty header": { "x-api-key": "" },
};

describe.each(Object.entries(WRONG))("%s", (_what, headers) => {
  test.each(Object.entries(PROTOCOLS))("is UNAUTHENTICATED before any work, over %s", async (_name, transportTo) => {
    const transport = transportTo(open.grpc);
    const { chunks } = endlessUpload();
    const codes = [
      await codeOf(createClient(SystemService, transport).getServerInfo({}, { headers })),
      await codeOf(firstOf(createClient(EventService, transport).watchEvents({}, { headers }))),
      await codeOf(createClient(CodebaseService, transport).uploadFiles(chunks, { headers })),
    ];
    expect(codes).toEqual(["Unauthenticated", "Unauthenticated", "Unauthenticated"]);
    expect(open.journal.calls).toEqual([]);
  });

  test("is UNAUTHENTICATED for a terminal", async () => {
    const client = createClient(SandboxService, PROTOCOLS.gRPC!(open.grpc));
    const inputs = (async function* () {
      yield { input: { case: "data" as const, value: new Uint8Array(1) } };
    })();
    expect(await codeOf(firstOf(client.openTerminal(inputs, { headers })))).toBe("Unauthenticated");
    expect(open.journal.calls).toEqual([]);
  });

  test("is 401 over REST, whatever the body", async () => {
    for (const [method, path, body] of [
      ["GET", "/v1/server", undefined],
      ["GET", "/v1/events/watch", undefined],
      ["POST", "/v1/keys", "{not json"],
      ["PUT", "/v1/codebases/cb_1/files/a", "content"],
      ["DELETE", "/v1/keys/k", undefined],
      ["GET", "/v1/nothing/of/the/kind", undefined],
    ] as const) {
      const response = await fetch(`http://${open.http}${path}`, {
        method,
        headers: { ...headers, "content-type": "application/json" },
        ...(body === undefined ? {} : { body }),
      });
      expect([path, response.status, await response.json()]).toMatchObject([path, 401, { code: 16 }]);
    }
    expect(open.journal.calls).toEqual([]);
  });
});

describe("a valid key", () => {
  test.each([bearer(USER), { authorization: `bearer   ${USER}` }, { "x-api-key": USER }])(
    "%j says who calls",
    async (headers) => {
      using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
      expect(await unary(client, "GetServerInfo", {}, headers)).toMatchObject({ response: { owner_id: "alice" } });
      const rest = await fetch(`http://${open.http}/v1/server`, { headers });
      expect(await rest.json()).toMatchObject({ ownerId: "alice" });
    },
  );

  test("of an administrator stands for no owner", async () => {
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "GetServerInfo", {}, bearer(ADMIN))).toMatchObject({ response: { owner_id: "" } });
  });

  test("does not count once it is revoked", async () => {
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "GetServerInfo", {}, bearer(USER))).toMatchObject({ code: "OK" });
    open.keys.drop(USER);
    expect(await unary(client, "GetServerInfo", {}, bearer(USER))).toMatchObject({ code: "UNAUTHENTICATED" });
    expect((await fetch(`http://${open.http}/v1/server`, { headers: bearer(USER) })).status).toBe(401);
  });
});

describe("a key that is revoked while its calls run", () => {
  test("ends a watch, a terminal, an upload and a command, and no others", async () => {
    const transport = PROTOCOLS.gRPC!(open.grpc);
    const headers = bearer(USER);
    const { chunks } = endlessUpload();
    const slow = (async function* () {
      for await (const chunk of chunks) {
        yield chunk;
        await aWhile(50);
      }
    })();
    const inputs = (async function* () {
      yield { input: { case: "data" as const, value: new Uint8Array(1) } };
      await new Promise(() => {});
    })();
    const others = new AbortController();
    const watchAll = async (stream: AsyncIterable<unknown>) => {
      for await (const _ of stream);
    };
    const running = [
      codeOf(watchAll(createClient(EventService, transport).watchEvents({}, { headers }))),
      codeOf(watchAll(createClient(SandboxService, transport).openTerminal(inputs, { headers }))),
      codeOf(createClient(CodebaseService, transport).uploadFiles(slow, { headers })),
      codeOf(createClient(SandboxService, transport).exec({ command: String(10 * HANG_MS) }, { headers })),
    ];
    const admins = codeOf(
      watchAll(
        createClient(EventService, transport).watchEvents({}, { headers: bearer(ADMIN), signal: others.signal }),
      ),
    );
    await eventually(() => open.journal.calls.length === 5);

    open.keys.drop(USER);
    expect(await withoutHanging(() => Promise.all(running))).toEqual(running.map(() => "Unauthenticated"));
    await eventually(() => open.journal.ended.length === 3);
    expect(open.journal.ended.toSorted()).toEqual(["Exec aborted", "OpenTerminal", "WatchEvents"]);

    others.abort();
    expect(await admins).toBe("Canceled");
  });

  test("ends a watch over REST", async () => {
    const response = await fetch(`http://${open.http}/v1/events/watch`, { headers: bearer(USER) });
    expect(response.status).toBe(200);
    open.keys.drop(USER);
    const body = await withoutHanging(() => response.text().catch(() => "cut"));
    expect(body).toMatch(/the API key was revoked|cut/);
    await eventually(() => open.journal.ended.includes("WatchEvents"));
  });

  test("asks once for all calls of one key", async () => {
    const client = createClient(EventService, PROTOCOLS.gRPC!(open.grpc));
    const end = new AbortController();
    const watches = Array.from({ length: 20 }, () =>
      codeOf(
        (async () => {
          for await (const _ of client.watchEvents({}, { headers: bearer(USER), signal: end.signal }));
        })(),
      ),
    );
    await eventually(() => open.journal.calls.length === 20);
    const before = open.keys.asked;
    // Were each of the calls to ask, they would all ask in the same turns.
    await eventually(() => open.keys.asked > before);
    for (let turns = 0; turns < 20; turns++) await turn();
    expect(open.keys.asked - before).toBeLessThanOrEqual(3);
    end.abort();
    await Promise.all(watches);
  });
});

describe("a read-only key", () => {
  test("may call what has no side effects, over every door", async () => {
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "GetServerInfo", {}, bearer(READER))).toMatchObject({ code: "OK" });
    expect((await fetch(`http://${open.http}/v1/server`, { headers: bearer(READER) })).status).toBe(200);
    const transport = PROTOCOLS.gRPC!(open.grpc);
    const download = createClient(CodebaseService, transport).downloadFile(
      { version: 1n },
      { headers: bearer(READER) },
    );
    expect(await codeOf(firstOf(download))).toBe("OK");
  });

  test("may change nothing", async () => {
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "CreateKey", {}, bearer(READER))).toMatchObject({
      code: "PERMISSION_DENIED",
      message: "a read-only key may not call CreateKey",
    });
    const rest = await fetch(`http://${open.http}/v1/keys`, {
      method: "POST",
      headers: { ...bearer(READER), "content-type": "application/json" },
      body: "{}",
    });
    expect([rest.status, await rest.json()]).toMatchObject([
      403,
      { code: 7, details: [{ reason: "ROLE_FORBIDS", domain: "agentfense" }] },
    ]);
    const transport = PROTOCOLS.gRPC!(open.grpc);
    const { chunks } = endlessUpload();
    const upload = createClient(CodebaseService, transport).uploadFiles(chunks, { headers: bearer(READER) });
    expect(await codeOf(upload)).toBe("PermissionDenied");
    expect(open.journal.calls).toEqual([]);
  });
});

test("health needs no key, metrics and the contract neither", async () => {
  using client = grpcClient("grpc/health/v1/health.proto", "grpc.health.v1.Health", open.grpc);
  expect(await unary(client, "Check")).toMatchObject({ code: "OK", response: { status: "SERVING" } });
  for (const path of ["/healthz", "/readyz", "/metrics", "/openapi.json"]) {
    expect((await fetch(`http://${open.http}${path}`)).status).toBe(200);
  }
});
