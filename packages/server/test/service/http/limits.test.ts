import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { aWhile, eventually, HANG_MS, withoutHanging } from "../../../../../test/support/eventually.ts";
import { heldBytes } from "../../../../../test/support/garbage.ts";
import { OwnerRates } from "../../../src/service/http/limits.ts";
import { ADMIN, bearer, grpcClient, openTestService, rawHttp, USER, unary } from "./fixture.ts";

async function codeOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "OK",
    (error: unknown) => Code[ConnectError.from(error).code],
  );
}

describe("the rate of an owner", () => {
  test("a burst, then as many as time brings, and owners do not share", () => {
    let nowMs = 0;
    const rates = new OwnerRates({ perSecond: 10, burst: 3, now: () => nowMs });
    const takes = (owner: string): boolean => {
      try {
        rates.take(owner);
        return true;
      } catch {
        return false;
      }
    };
    expect([takes("a"), takes("a"), takes("a"), takes("a"), takes("b")]).toEqual([true, true, true, false, true]);
    nowMs = 99;
    expect(takes("a")).toBe(false);
    nowMs = 100;
    expect([takes("a"), takes("a")]).toEqual([true, false]);
    nowMs = 60_000;
    expect([takes("a"), takes("a"), takes("a"), takes("a")]).toEqual([true, true, true, false]);
  });

  test("tells when to come back", () => {
    const rates = new OwnerRates({ perSecond: 2, burst: 1, now: () => 0 });
    rates.take("a");
    expect(() => rates.take("a")).toThrow(
      expect.objectContaining({ code: "RATE_LIMITED", details: { retry_after_ms: "500" } }),
    );
  });

  test("holds over all doors together, and not for other owners", async () => {
    await using open = await openTestService({ keys: "required", limits: { requestsPerSecond: 0.01, burst: 2 } });
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "GetServerInfo", {}, bearer(USER))).toMatchObject({ code: "OK" });
    expect((await fetch(`http://${open.http}/v1/server`, { headers: bearer(USER) })).status).toBe(200);
    expect(await unary(client, "GetServerInfo", {}, bearer(USER))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    const rest = await fetch(`http://${open.http}/v1/server`, { headers: bearer(USER) });
    expect([rest.status, await rest.json()]).toMatchObject([
      429,
      {
        code: 8,
        details: [{ reason: "RATE_LIMITED", metadata: { retry_after_ms: expect.stringMatching(/^\d+$/) } }, {}],
      },
    ]);
    expect(Number(rest.headers.get("retry-after"))).toBeGreaterThan(1);
    expect(await unary(client, "GetServerInfo", {}, bearer(ADMIN))).toMatchObject({ code: "OK" });
  });
});

describe("calls at once", () => {
  test("are limited for each owner; the place of one that ended is free again", async () => {
    await using open = await openTestService({ keys: "required", limits: { concurrentCalls: 2 } });
    const transport = createGrpcTransport({ baseUrl: `http://${open.grpc}` });
    const sandboxes = createClient(SandboxService, transport);
    const headers = bearer(USER);
    const leave = new AbortController();
    const watch = codeOf(
      (async () => {
        for await (const _ of createClient(EventService, transport).watchEvents({}, { headers, signal: leave.signal }));
      })(),
    );
    const exec = codeOf(sandboxes.exec({ command: "held" }, { headers }));
    await eventually(() => open.journal.calls.length === 2);
    expect(await codeOf(sandboxes.exec({ command: "1" }, { headers }))).toBe("ResourceExhausted");
    expect(await codeOf(sandboxes.exec({ command: "1" }, { headers: bearer(ADMIN) }))).toBe("OK");
    open.journal.held.resolve();
    expect(await exec).toBe("OK");
    expect(await codeOf(sandboxes.exec({ command: "1" }, { headers }))).toBe("OK");
    leave.abort();
    expect(await watch).toBe("Canceled");
    await eventually(() => open.journal.ended.includes("WatchEvents"));
    expect(await Promise.all([1, 2].map(() => codeOf(sandboxes.exec({ command: "1" }, { headers }))))).toEqual([
      "OK",
      "OK",
    ]);
  });

  test("a caller that goes without a word frees its place, over REST too", async () => {
    await using open = await openTestService({ limits: { concurrentCalls: 1 } });
    for (let round = 0; round < 3; round += 1) {
      const leave = new AbortController();
      const response = await fetch(`http://${open.http}/v1/events/watch`, { signal: leave.signal });
      expect(response.status).toBe(200);
      leave.abort();
      await eventually(() => open.journal.ended.length === round + 1);
    }
  });
});

describe("the size of a message", () => {
  const limits = { messageBytes: 64 * 1024, bodyBytes: 32 * 1024 };

  test("is limited over gRPC, Connect and within a stream", async () => {
    await using open = await openTestService({ limits });
    const grpc = createGrpcTransport({ baseUrl: `http://${open.grpc}` });
    const json = createConnectTransport({ baseUrl: `http://${open.http}`, httpVersion: "1.1", useBinaryFormat: false });
    for (const transport of [grpc, json]) {
      const client = createClient(SystemService, transport);
      expect(await codeOf(client.createKey({ name: "x".repeat(60_000) }))).toBe("OK");
      expect(await codeOf(client.createKey({ name: "x".repeat(70_000) }))).toBe("ResourceExhausted");
      const upload = createClient(CodebaseService, transport).uploadFiles(
        (async function* () {
          yield { content: { case: "data" as const, value: new Uint8Array(70_000) } };
        })(),
      );
      expect(await codeOf(upload)).toBe("ResourceExhausted");
    }
    expect(open.journal.uploadedBytes).toBe(0);
  });

  test("a stream of any length passes in small messages", async () => {
    await using open = await openTestService({ limits });
    const client = createClient(CodebaseService, createGrpcTransport({ baseUrl: `http://${open.grpc}` }));
    const { size } = await client.uploadFiles(
      (async function* () {
        for (let count = 0; count < 200; count += 1) {
          yield { content: { case: "data" as const, value: new Uint8Array(60_000) } };
        }
      })(),
    );
    expect(size).toBe(12_000_000n);
  });

  test("counts after decompression", async () => {
    await using open = await openTestService({ limits });
    const bomb = gzipSync(JSON.stringify({ name: "x".repeat(50_000_000) }));
    expect(bomb.byteLength).toBeLessThan(64 * 1024);
    const before = heldBytes();
    const response = await fetch(`http://${open.http}/sandbox.v1.SystemService/CreateKey`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
      body: bomb,
    });
    expect(await response.json()).toMatchObject({ code: "resource_exhausted" });
    expect(heldBytes() - before).toBeLessThan(20_000_000);
    expect(open.journal.calls).toEqual([]);
  });

  test("a JSON document for REST has a limit of its own, announced or not", async () => {
    await using open = await openTestService({ limits });
    const document = JSON.stringify({ name: "x".repeat(40_000) });
    const headers = { "content-type": "application/json" };
    const announced = await fetch(`http://${open.http}/v1/keys`, { method: "POST", headers, body: document });
    expect([announced.status, await announced.json()]).toMatchObject([413, { code: 8 }]);
    const streamed = await fetch(`http://${open.http}/v1/keys`, {
      method: "POST",
      headers,
      body: new Blob([document]).stream(),
      duplex: "half",
    } as RequestInit);
    expect(streamed.status).toBe(413);
    expect(open.journal.calls).toEqual([]);
  });

  test("so do headers", async () => {
    await using open = await openTestService({ limits: { headerBytes: 4096 } });
    const large = "x".repeat(8192);
    expect(await rawHttp(open.http, `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: ${large}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 431/,
    );
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect((await unary(client, "GetServerInfo", {}, { large })).code).not.toBe("OK");
  });
});

describe("slow clients", () => {
  test("a connection that says nothing, or its headers too slowly, is closed", async () => {
    await using open = await openTestService({ limits: { headerTimeoutMs: 300 } });
    for (const port of [open.grpc, open.http]) {
      for (const start of ["", "P", "PR", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "]) {
        await withoutHanging(() => rawHttp(port, start, 10 * HANG_MS));
      }
    }
  });

  test("dripping headers does not help", async () => {
    await using open = await openTestService({ limits: { headerTimeoutMs: 300 } });
    const [host = "", port] = open.http.split(":");
    const socket = connect({ host, port: Number(port) });
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.resume();
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ");
    const drip = setInterval(() => socket.write("x"), 50);
    await withoutHanging(() => closed);
    clearInterval(drip);
  });

  test("idle connections of both kinds are closed, quiet calls are not", async () => {
    await using open = await openTestService({ limits: { idleTimeoutMs: 300 } });
    const session = connectHttp2(`http://${open.grpc}`);
    await withoutHanging(() => new Promise((resolve) => session.once("close", resolve)));

    const client = createClient(EventService, createGrpcTransport({ baseUrl: `http://${open.grpc}` }));
    const stop = new AbortController();
    const iterator = client.watchEvents({}, { signal: stop.signal })[Symbol.asyncIterator]();
    expect(await iterator.next()).toMatchObject({ value: { type: "first" } });
    const next = iterator.next().then(
      () => "ended",
      () => "ended",
    );
    expect(await Promise.race([next, aWhile(1_200).then(() => "still there")])).toBe("still there");
    stop.abort();
    await next;
  });

  test("an upload that stops is given up, one that creeps too", async () => {
    await using open = await openTestService({ limits: { uploadIdleMs: 250, uploadMs: 800 } });
    const transport = createGrpcTransport({ baseUrl: `http://${open.grpc}` });
    const client = createClient(CodebaseService, transport);
    const chunk = { content: { case: "data" as const, value: new Uint8Array(1) } };
    const stalls = client.uploadFiles(
      (async function* () {
        yield chunk;
        await new Promise(() => {}); // never more
      })(),
    );
    const creeps = client.uploadFiles(
      (async function* () {
        for (;;) {
          yield chunk;
          await aWhile(50);
        }
      })(),
    );
    const codes = await withoutHanging(() => Promise.all([codeOf(stalls), codeOf(creeps)]));
    expect(codes).toEqual(["ResourceExhausted", "ResourceExhausted"]);
    // A command takes as long as it takes: the request was complete.
    expect(await codeOf(createClient(SandboxService, transport).exec({ command: "600" }))).toBe("OK");
  });

  test("a single message that never comes is not waited for", async () => {
    await using open = await openTestService({ limits: { uploadIdleMs: 250 } });
    const head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    for (const path of ["/sandbox.v1.SystemService/CreateKey", "/v1/keys"]) {
      await withoutHanging(() => rawHttp(open.http, `POST ${path} HTTP/1.1\r\n${head}`, 10 * HANG_MS));
    }
    expect(open.journal.calls).toEqual([]);
  });

  test("who got an answer and goes on sending is cut off", async () => {
    await using open = await openTestService({ keys: "required" });
    const [host = "", port] = open.http.split(":");
    const socket = connect({ host, port: Number(port) });
    socket.on("error", () => {});
    let answer = "";
    socket.on("data", (data) => {
      answer += data.toString();
    });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write("PUT /v1/codebases/cb_1/files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n");
    const flood = setInterval(() => socket.write(Buffer.alloc(65_536)), 10);
    await withoutHanging(() => closed);
    clearInterval(flood);
    expect(answer).toMatch(/^HTTP\/1.1 401/);
    expect(open.journal.calls).toEqual([]);
  });
});

describe("a client that does not read", () => {
  const GIGABYTE = 16_384n;

  test("does not make the server produce, over gRPC", async () => {
    await using open = await openTestService();
    const session = connectHttp2(`http://${open.grpc}`);
    session.on("error", () => {});
    const request = session.request({
      ":method": "POST",
      ":path": "/sandbox.v1.CodebaseService/DownloadFile",
      "content-type": "application/grpc",
    });
    request.on("error", () => {});
    // DownloadFileRequest { version: 16384 } in a gRPC frame.
    request.end(Buffer.from([0, 0, 0, 0, 4, 0x18, 0x80, 0x80, 0x01]));
    await expectToStall(open);
    session.destroy();
    await eventually(() => open.journal.ended.includes("DownloadFile"));
  });

  test("does not make the server produce, over REST", async () => {
    await using open = await openTestService();
    const [host = "", port] = open.http.split(":");
    const socket = connect({ host, port: Number(port) });
    socket.on("error", () => {});
    socket.write(`GET /v1/codebases/cb_1/files/a?version=${GIGABYTE} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await expectToStall(open);
    socket.destroy();
    await eventually(() => open.journal.ended.includes("DownloadFile"));
  });

  async function expectToStall(open: Awaited<ReturnType<typeof openTestService>>): Promise<void> {
    await eventually(() => open.journal.producedChunks > 0);
    const before = heldBytes();
    await eventually(async () => {
      const produced = open.journal.producedChunks;
      await aWhile(300);
      expect(open.journal.producedChunks).toBe(produced);
    });
    // Buffers of the sockets hold a few megabytes; the rest of the gigabyte waits to be asked for.
    expect(open.journal.producedChunks * 65_536).toBeLessThan(64 * 1024 * 1024);
    expect(heldBytes() - before).toBeLessThan(200 * 1024 * 1024);
  }
});

test("streams of one connection are limited", async () => {
  await using open = await openTestService({ limits: { streamsPerConnection: 5 } });
  const session = connectHttp2(`http://${open.grpc}`);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(5);
  session.destroy();
});

test("connections of one port are limited", async () => {
  await using open = await openTestService({ limits: { connections: 2 } });
  const [host = "", port] = open.grpc.split(":");
  const sockets = [1, 2].map(() => connect({ host, port: Number(port) }));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
  expect(await rawHttp(open.grpc, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1_000)).toBe("");
  for (const socket of sockets) socket.destroy();
});
