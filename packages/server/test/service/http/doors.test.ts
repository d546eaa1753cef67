import { connect } from "node:net";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aWhile } from "../../../../../test/support/eventually.ts";
import { grpcClient, openTestService, rawHttp, type TestService, unary } from "./fixture.ts";

let open: TestService;
beforeAll(async () => {
  open = await openTestService();
});
afterAll(async () => {
  await open[Symbol.asyncDispose]();
});

const PROTOCOLS: Record<string, (baseUrl: string) => Transport> = {
  "gRPC over HTTP/2": (baseUrl) => createGrpcTransport({ baseUrl }),
  "gRPC-Web over HTTP/1.1": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web over HTTP/2": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  "Connect with JSON over HTTP/1.1": (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  "Connect with binary messages over HTTP/2": (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
};

describe.each(Object.entries(PROTOCOLS))("%s", (_name, transportTo) => {
  test.each(["grpc", "http"] as const)("is spoken on the %s port", async (port) => {
    const transport = transportTo(`http://${open[port]}`);
    expect(await createClient(SystemService, transport).getServerInfo({})).toMatchObject({ version: "test" });
    let bytes = 0;
    for await (const { data } of createClient(CodebaseService, transport).downloadFile({ version: 3n })) {
      bytes += data.byteLength;
    }
    expect(bytes).toBe(3 * 64 * 1024);
    const upload = createClient(CodebaseService, transport).uploadFiles(
      (async function* () {
        yield { content: { case: "data" as const, value: new Uint8Array(10) } };
      })(),
    );
    expect((await upload).size).toBeGreaterThan(0n);
  });
});

test("streams of both directions run over HTTP/2", async () => {
  const client = createClient(SandboxService, createGrpcTransport({ baseUrl: `http://${open.grpc}` }));
  const received: number[] = [];
  const inputs = (async function* () {
    for (let index = 0; index < 3; index += 1) yield { input: { case: "data" as const, value: new Uint8Array(1) } };
  })();
  for await (const { data } of client.openTerminal(inputs)) received.push(data.byteLength);
  expect(received).toEqual([1, 1, 1]);
});

test("a client that is not ours gets answers and errors in gRPC's terms", async () => {
  using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
  expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK", response: { version: "test" } });
  expect(await unary(client, "RevokeKey", { key_id: "x" })).toMatchObject({ code: "UNIMPLEMENTED" });
  const unknown = client.makeUnaryRequest.bind(client);
  const code = await new Promise((resolve) =>
    unknown(
      "/sandbox.v1.Nothing/Nothing",
      () => Buffer.alloc(0),
      (bytes) => bytes,
      {},
      (error) => resolve(error?.code),
    ),
  );
  expect(code).toBe(12);
});

test("an error of ours is told without what it was about; the log has it", async () => {
  using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
  const answer = await unary(client, "CreateKey", { name: "defect" });
  expect(answer.code).toBe("INTERNAL");
  expect(answer.message).not.toMatch(/shadow|secret/);
  expect(open.log.join()).toContain("/etc/shadow");
});

test("REST answers on the HTTP port", async () => {
  const response = await fetch(`http://${open.http}/v1/server`);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ version: "test" });
});

test("REST sees a path as the client wrote it", async () => {
  const head = "Host: localhost\r\nConnection: close\r\n\r\n";
  const found = await rawHttp(open.http, `GET /v1/codebases/../server HTTP/1.1\r\n${head}`);
  expect(found).not.toContain('"version":"test"');
});

test.each(["/", "/v2/server", "/v1", "/sandbox.v1.SystemService", "/sandbox.v1.SystemService/Nothing"])(
  "%s is found nowhere",
  async (path) => {
    for (const port of [open.http, open.grpc]) {
      const response = await fetch(`http://${port}${path}`);
      expect([response.status, await response.json()]).toEqual([404, { code: 5, message: "Not Found", details: [] }]);
    }
  },
);

test("health, readiness and the contract are on the HTTP port", async () => {
  expect(await (await fetch(`http://${open.http}/healthz`)).text()).toBe("ok\n");
  expect(await (await fetch(`http://${open.http}/readyz`)).text()).toBe("ready\n");
  expect(await (await fetch(`http://${open.http}/openapi.json`)).json()).toMatchObject({ info: { version: "1.2.3" } });
});

test("a server that is not ready says so, and nothing more", async () => {
  await using starting = await openTestService({ ready: () => false });
  const response = await fetch(`http://${starting.http}/readyz`);
  expect([response.status, await response.text()]).toEqual([503, "not ready\n"]);
  expect((await fetch(`http://${starting.http}/healthz`)).status).toBe(200);
});

test("a request cut into single bytes is understood", async () => {
  const [host = "", port] = open.http.split(":");
  const socket = connect({ host, port: Number(port) }).setNoDelay(true);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString();
  });
  for (const byte of "PUT /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") {
    socket.write(byte);
    await aWhile(2);
  }
  await closed;
  expect(answer).toMatch(/^HTTP\/1.1 404/);
});

test("what is no HTTP at all ends the connection and nothing else", async () => {
  for (const bytes of [
    "\x16\x03\x01\x02\x00\x01",
    "PRI nonsense\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "GET\r\n\r\n",
  ]) {
    await rawHttp(open.grpc, bytes, 200);
    await rawHttp(open.http, bytes, 200);
  }
  await rawHttp(open.http, "GET /sandbox.v1.SystemService/GetServerInfo HTTP/1.0\r\n\r\n", 200);
  await rawHttp(open.grpc, "POST /sandbox.v1.SystemService/GetServerInfo HTTP/1.1\r\nHost: [::\r\n\r\n", 200);
  expect((await fetch(`http://${open.http}/v1/server`)).status).toBe(200);
});
