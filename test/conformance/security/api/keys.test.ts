import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Belongings, makeBelongings, makeCodebase, makeSandbox } from "../../../support/belongings.ts";
import { aWhile } from "../../../support/eventually.ts";
import { CONTRACT, callByGrpc, callByRest, requestsOf, restRequestOf } from "../../../support/every-method.ts";
import { GrpcClient, type Message } from "../../../support/grpc-client.ts";
import { GuardedServer, type Party } from "../../../support/owners.ts";
import { grpcFrame, http2Post, rawExchange, rawRequest, statusOf } from "../../../support/raw-http.ts";
import { RestClient } from "../../../support/rest-client.ts";

const UNAUTHENTICATED = 16;
const PERMISSION_DENIED = 7;
/** Never end by themselves, so that a deadline has to. */
const ENDLESS = ["WatchEvents", "WatchFiles"];
/** Looks only, but at what is the administrator's. */
const ADMINISTRATORS = ["CreateKey", "ListKeys", "RevokeKey"];

let guarded: GuardedServer;
let alices: Belongings;
let ids: Message;

beforeAll(async () => {
  guarded = await GuardedServer.start();
  alices = await makeBelongings(guarded.alice.grpc);
  ids = { ...alices, key_id: guarded.alice.keyId };
});
afterAll(() => guarded?.[Symbol.asyncDispose]());

/** How much has happened so far: nothing may happen for somebody without a key. */
async function happened(): Promise<number> {
  const { events } = await guarded.admin.grpc.call("EventService", "ListEvents", { page_size: 1000 });
  return (events as Message[]).length;
}

describe("API-01 without a key", () => {
  test("API-01 every method is UNAUTHENTICATED over gRPC, at both ports", async () => {
    const before = await happened();
    for (const address of [guarded.server.grpc, guarded.server.http.replace("http://", "")]) {
      using nobody = new GrpcClient(address);
      for (const method of CONTRACT) {
        const { code, messages, trailers } = await callByGrpc(nobody, method, ids);
        expect({ method: method.name, code, messages }).toEqual({
          method: method.name,
          code: UNAUTHENTICATED,
          messages: [],
        });
        expect(JSON.stringify(trailers)).not.toContain(alices.sandbox_id);
      }
    }
    expect(await happened()).toBe(before);
  });

  test("API-01 every method is 401 over REST, whatever its body", async () => {
    const before = await happened();
    const nobody = new RestClient(guarded.server.http);
    for (const method of CONTRACT) {
      const request = restRequestOf(method, ids);
      if (request === undefined) continue;
      for (const body of request.body === undefined ? [undefined] : [request.body, "{broken", ""]) {
        const answer = await nobody.request(request.verb, request.target, body);
        expect({ method: method.name, status: answer.status, code: answer.json.code }).toEqual({
          method: method.name,
          status: 401,
          code: UNAUTHENTICATED,
        });
      }
    }
    for (const path of ["/v1/", "/v1/nothing/of/the/kind", "/v1/keys/", "/v1/codebases/%2e%2e/x"]) {
      expect([path, (await nobody.get(path)).status]).toEqual([path, 401]);
    }
    expect(await happened()).toBe(before);
  });

  test("API-01 every method is refused over gRPC-Web and Connect, at both ports", async () => {
    const before = await happened();
    for (const base of [`http://${guarded.server.grpc}`, guarded.server.http]) {
      for (const { path, name, requestStream, responseStream } of CONTRACT) {
        if (requestStream && responseStream) continue; // over HTTP/2 only
        const web = await post(`${base}${path}`, "application/grpc-web+proto", grpcFrame(new Uint8Array()));
        expect([name, web.grpcStatus]).toEqual([name, UNAUTHENTICATED]);
        const streams = requestStream || responseStream;
        const connect = streams
          ? await post(`${base}${path}`, "application/connect+json", grpcFrame(Buffer.from("{}")))
          : await post(`${base}${path}`, "application/json", Buffer.from("{}"));
        expect([name, connect.text]).toEqual([name, expect.stringContaining('"unauthenticated"')]);
      }
    }
    expect(await happened()).toBe(before);
  });

  test("API-01 the reflection service asks for a key too", async () => {
    for (const version of ["v1", "v1alpha"]) {
      const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
      const answer = await http2Post(guarded.server.grpc, path, grpcFrame(Buffer.from([0x3a, 0x01, 0x2a])));
      expect(answer.headers["grpc-status"]).toBe(String(UNAUTHENTICATED));
    }
  });
});

async function post(
  url: string,
  type: string,
  body: Uint8Array,
): Promise<{ readonly text: string; readonly grpcStatus: number }> {
  const response = await fetch(url, { method: "POST", headers: { "content-type": type }, body: Buffer.from(body) });
  const text = await response.text();
  const status = response.headers.get("grpc-status") ?? /grpc-status: *(\d+)/i.exec(text)?.[1];
  return { text, grpcStatus: Number(status) };
}

test("API-01 nothing but the whole secret of a key in force is one, and nowhere but in the two headers", async () => {
  const { alice, mallory, server } = guarded;
  const revoked = await guarded.party("alice");
  await guarded.revoke(revoked);
  const other = (character: string): string => (character === "A" ? "B" : "A");
  const secrets = {
    empty: "",
    word: "secret",
    "its id": alice.keyId,
    "its id as a secret": `af_${alice.keyId}_`,
    "one character wrong": alice.key.slice(0, -1) + other(alice.key.at(-1)!),
    "one character less": alice.key.slice(0, -1),
    "one character more": `${alice.key}A`,
    "another key's secret with its id": alice.key.slice(0, 40) + mallory.key.slice(40),
    "in upper case": alice.key.toUpperCase(),
    twice: `${alice.key} ${alice.key}`,
    "with a comma": `${alice.key},${alice.key}`,
    "a codebase's id": alices.codebase_id,
    "a wildcard": "%",
    revoked: revoked.key,
    "very long": "a".repeat(8000),
  };
  for (const [what, secret] of Object.entries(secrets)) {
    using client = new GrpcClient(server.grpc, { key: secret });
    expect([what, await client.failure("SystemService", "GetServerInfo")]).toMatchObject([
      what,
      { code: UNAUTHENTICATED },
    ]);
    const rest = new RestClient(server.http, { key: secret });
    expect([what, (await rest.get("/v1/server")).status]).toEqual([what, 401]);
  }
  const host = { Host: "localhost" };
  const places: Record<string, string> = {
    "basic authentication": rawRequest("GET /v1/server", {
      ...host,
      Authorization: `Basic ${Buffer.from(`alice:${alice.key}`).toString("base64")}`,
    }),
    "a naked header": rawRequest("GET /v1/server", { ...host, Authorization: alice.key }),
    "a cookie": rawRequest("GET /v1/server", {
      ...host,
      Cookie: `authorization=Bearer ${alice.key}; key=${alice.key}`,
    }),
    "the query": rawRequest(`GET /v1/server?key=${alice.key}&access_token=${alice.key}&x-api-key=${alice.key}`, host),
    "the user part of the target": rawRequest(`GET http://${alice.key}@localhost/v1/server`, host),
    "a proxy's header": rawRequest("GET /v1/server", { ...host, "Proxy-Authorization": `Bearer ${alice.key}` }),
    "a claim to be somebody": rawRequest("GET /v1/server", {
      ...host,
      "X-Owner-Id": "alice",
      "X-Forwarded-User": "alice",
    }),
  };
  for (const [what, request] of Object.entries(places)) {
    // Absolute targets are a proxy's business, and lead nowhere here.
    const status = request.startsWith("GET http:") ? 404 : 401;
    expect([what, statusOf(await rawExchange(server.http, request))]).toEqual([what, status]);
  }
  const valid = rawRequest("GET /v1/server", { ...host, "X-Api-Key": alice.key });
  expect(statusOf(await rawExchange(server.http, valid))).toBe(200);
  // Every refusal says the same, but for the two cases that the caller knows anyway: a key was sent, or none.
  const messages = new Set<string>();
  for (const secret of [secrets.word, secrets["one character wrong"], secrets.revoked]) {
    using client = new GrpcClient(server.grpc, { key: secret });
    messages.add((await client.failure("SystemService", "GetServerInfo")).message);
  }
  expect(messages.size).toBe(1);
});

test("API-01 an upload without a key is refused before its content is taken", async () => {
  using nobody = new GrpcClient(guarded.server.grpc);
  const metadata = { codebase_id: alices.codebase_id, file_path: "planted.txt" };
  const outcome = await nobody.outcome("CodebaseService", "UploadFiles", [
    { metadata },
    ...Array.from({ length: 64 }, () => ({ data: Buffer.alloc(65_536) })),
  ]);
  expect(outcome.code).toBe(UNAUTHENTICATED);
  const { files } = await guarded.alice.grpc.call("CodebaseService", "ListFiles", { codebase_id: alices.codebase_id });
  expect((files as Message[]).map(({ path }) => path)).toEqual(["a.txt"]);
});

test("API-01 a revoked key is refused at once, and what runs with it ends", async () => {
  const party = await guarded.party("carol");
  const codebase = await makeCodebase(party.grpc, { "a.txt": "a" });
  const sandbox = await makeSandbox(party.grpc, codebase);
  const running = {
    watch: ended(party, "EventService", "WatchEvents", {}),
    exec: ended(party, "SandboxService", "ExecStream", { sandbox_id: sandbox, command: "echo ready; sleep 300" }),
    terminal: terminalEnd(party, sandbox),
    upload: uploadEnd(party, codebase),
    sse: sseEnd(party),
  };
  await Promise.all(Object.values(running).map(({ begun }) => begun));
  await guarded.revoke(party);
  expect(await party.grpc.failure("SystemService", "GetServerInfo")).toMatchObject({ code: UNAUTHENTICATED });
  expect((await party.rest.get("/v1/server")).status).toBe(401);
  expect(await running.watch.code).toBe(UNAUTHENTICATED);
  expect(await running.exec.code).toBe(UNAUTHENTICATED);
  expect(await running.terminal.code).toBe(UNAUTHENTICATED);
  expect(await running.upload.code).toBe(UNAUTHENTICATED);
  await running.sse.code;
  // Another key of the same owner finds everything, and no process of the command.
  const successor = await guarded.party("carol");
  const { stdout } = await successor.grpc.call("SandboxService", "Exec", {
    sandbox_id: sandbox,
    command: "grep -lz '^sleep' /proc/[0-9]*/cmdline 2>/dev/null | wc -l",
  });
  expect(stdout).toBe("0\n");
  const { files } = await successor.grpc.call("CodebaseService", "ListFiles", { codebase_id: codebase });
  expect((files as Message[]).map(({ path }) => path)).toEqual(["a.txt"]);
});

interface Running {
  readonly begun: Promise<unknown>;
  readonly code: Promise<unknown>;
}

function ended(party: Party, service: "EventService" | "SandboxService", method: string, request: Message): Running {
  const stream = party.grpc.stream(service, method, request);
  const begun =
    service === "EventService" ? new Promise((resolve) => stream.once("metadata", resolve)) : firstOf(stream);
  return { begun: Promise.race([begun, aWhile(500)]), code: codeOf(stream.resume()) };
}

function terminalEnd(party: Party, sandbox: string): Running {
  const call = party.grpc.duplex("SandboxService", "OpenTerminal");
  call.write({ open: { sandbox_id: sandbox } });
  return { begun: firstOf(call), code: codeOf(call.resume()) };
}

function uploadEnd(party: Party, codebase: string): Running {
  const call = party.grpc.sending("CodebaseService", "UploadFiles");
  call.write({ metadata: { codebase_id: codebase, file_path: "half.txt" } });
  call.write({ data: Buffer.from("half") });
  return { begun: aWhile(500), code: codeOf(call) };
}

function sseEnd(party: Party): Running {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  const code = (async () => {
    const response = await fetch(`${guarded.server.http}/v1/events/watch`, {
      headers: { authorization: `Bearer ${party.key}` },
    });
    resolve();
    return await response.text().catch(() => "cut");
  })();
  return { begun, code };
}

interface StatusSource {
  once(event: string, listener: (value: { code: number }) => void): unknown;
  on(event: "error", listener: () => void): unknown;
}

function codeOf(call: StatusSource): Promise<number> {
  call.on("error", () => {});
  return new Promise((resolve) => call.once("status", ({ code }) => resolve(code)));
}

function firstOf(call: { once(event: "data", listener: (value: unknown) => void): unknown }): Promise<unknown> {
  return new Promise((resolve) => call.once("data", resolve));
}

describe("API-01 a read-only key", () => {
  const changing = CONTRACT.filter(({ changes }) => changes);
  const looking = CONTRACT.filter(({ changes, name }) => !changes && !ADMINISTRATORS.includes(name));

  test("API-01 may call no method that changes something, on any door", async () => {
    const { reader } = guarded;
    const before = await happened();
    expect(changing.length).toBeGreaterThan(20);
    for (const method of changing) {
      const { code, messages } = await callByGrpc(reader.grpc, method, ids);
      expect([method.name, code, messages]).toEqual([method.name, PERMISSION_DENIED, []]);
      const rest = await callByRest(reader.rest, method, ids);
      if (rest !== undefined) expect([method.name, rest.status]).toEqual([method.name, 403]);
      if (method.requestStream && method.responseStream) continue; // over HTTP/2 only
      const web = await fetch(`${guarded.server.http}${method.path}`, {
        method: "POST",
        headers: { "content-type": "application/grpc-web+proto", authorization: `Bearer ${reader.key}` },
        body: grpcFrame(new Uint8Array()),
      });
      const status = web.headers.get("grpc-status") ?? /grpc-status: *(\d+)/i.exec(await web.text())?.[1];
      expect([method.name, Number(status)]).toEqual([method.name, PERMISSION_DENIED]);
    }
    expect(await happened()).toBe(before);
  });

  test("API-01 may call every method that only looks", async () => {
    const { reader } = guarded;
    expect(looking.length).toBeGreaterThan(15);
    for (const method of looking) {
      const endless = ENDLESS.includes(method.name);
      const { code, message } = await callByGrpc(reader.grpc, method, ids, endless ? { deadlineMs: 500 } : {});
      expect([method.name, code, message]).toEqual([method.name, endless ? 4 : 0, expect.any(String)]);
      if (endless) continue;
      const rest = await callByRest(reader.rest, method, ids);
      if (rest !== undefined)
        expect([method.name, rest.status, rest.text]).toEqual([method.name, 200, expect.anything()]);
    }
  });

  test("API-01 manages no keys, and neither does a user's", async () => {
    for (const party of [guarded.reader, guarded.alice]) {
      for (const method of CONTRACT.filter(({ name }) => ADMINISTRATORS.includes(name))) {
        const { code } = await party.grpc.outcome(
          method.service,
          method.name,
          requestsOf(method, { ...ids, owner_id: "alice" }),
        );
        expect([method.name, code]).toEqual([method.name, PERMISSION_DENIED]);
      }
    }
    expect((await guarded.alice.rest.get("/v1/server")).status).toBe(200);
  });
});
