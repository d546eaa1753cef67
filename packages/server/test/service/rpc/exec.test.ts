import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { type ExecResult, ExecResultSchema } from "@agentfense/protocol/sandbox";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, type Transport } from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import type { ExecAnswer, ExecPart } from "../../../src/runtime/sandboxes/api.ts";
import { execResultMessage } from "../../../src/service/rpc/messages/exec.ts";
import { registerServices } from "../../../src/service/rpc/register.ts";
import { ALICE, asCaller, bench, call, failureOf, runtimeOf, streamOf } from "./fixture.ts";
import { ANSWER, END } from "./methods.ts";

const REQUEST = { sandboxId: "sb_1", sessionId: "sess_1", command: "x" };

function answering(answer: Partial<ExecAnswer>, maxMessageBytes?: number): Transport {
  const exec = async () => ({ ...ANSWER, ...answer });
  return bench({ sandboxes: { exec, sessionExec: exec } }, maxMessageBytes === undefined ? {} : { maxMessageBytes })
    .transport;
}

async function resultOf(transport: Transport): Promise<ExecResult> {
  return (await call(transport, "Exec", [REQUEST]))[0] as ExecResult;
}

describe("output", () => {
  test("that is UTF-8 comes as text alone", async () => {
    const text = "grüße 日本 🙂\0";
    const result = await resultOf(answering({ stdout: Buffer.from(text) }));
    expect([result.stdout, result.stdoutBytes.length]).toEqual([text, 0]);
  });

  test("keeps a byte order mark", () => {
    const message = execResultMessage({ ...ANSWER, stdout: Buffer.from("\ufeffa") }, { bytes: 100, keep: "end" });
    expect(message.stdout).toBe("\ufeffa");
  });

  test("that is not comes with U+FFFD, and as it was beside", async () => {
    const stdout = Buffer.from([0x61, 0xff, 0x62]);
    const stderr = Buffer.from([0xc3]);
    const result = await resultOf(answering({ stdout, stderr }));
    expect([result.stdout, result.stderr]).toEqual(["a\ufffdb", "\ufffd"]);
    expect([Buffer.from(result.stdoutBytes), Buffer.from(result.stderrBytes)]).toEqual([stdout, stderr]);
  });
});

describe("a result that no message can hold", () => {
  const LIMIT = 64 * 1024;
  const sizeOf = (answer: Partial<ExecAnswer>, bytes: number, keep: "beginning" | "end" = "beginning") =>
    toBinary(ExecResultSchema, create(ExecResultSchema, execResultMessage({ ...ANSWER, ...answer }, { bytes, keep })))
      .length;

  test("is cut at a character, and says so", async () => {
    const result = await resultOf(
      answering({ stdout: Buffer.from("ä".repeat(LIMIT)), stderr: Buffer.from("e") }, LIMIT),
    );
    expect(result.stdout).toMatch(/^ä+$/);
    expect(result.stdout.length).toBeGreaterThan(LIMIT / 4);
    expect([result.stderr, result.truncated, result.stdoutBytes.length]).toEqual(["e", true, 0]);
  });

  test.each([
    ["text on both", Buffer.alloc(LIMIT * 2, "a"), Buffer.alloc(LIMIT * 2, "b")],
    ["bytes that are none", Buffer.alloc(LIMIT * 2, 0xff), Buffer.alloc(LIMIT * 2, 0xff)],
    ["bytes on one", Buffer.alloc(LIMIT * 2, 0xff), Buffer.alloc(0)],
    ["a bit too much", Buffer.alloc(LIMIT / 2, "a"), Buffer.alloc(LIMIT / 2, 0xff)],
  ])("fits in the end: %s", (_title, stdout, stderr) => {
    const syncProblems = Array.from({ length: 5000 }, (_, index) => `/some/path/${index} was left out`);
    const size = sizeOf({ stdout, stderr, syncProblems }, LIMIT);
    expect(size).toBeLessThan(LIMIT + 512);
    expect(size).toBeGreaterThan(LIMIT / 4);
  });

  test("tells how many problems it leaves out", async () => {
    const syncProblems = Array.from({ length: 100 }, () => "p".repeat(1000));
    const result = await resultOf(answering({ syncProblems }, LIMIT));
    expect(result.syncProblems).toEqual([...syncProblems.slice(0, 15), "and 85 more"]);
  });

  test("is whole when it just fits", async () => {
    const stdout = Buffer.alloc(LIMIT / 2, "a");
    const result = await resultOf(answering({ stdout }, LIMIT));
    expect([result.stdout.length, result.truncated]).toEqual([LIMIT / 2, false]);
  });
});

describe("a command that runs out of time", () => {
  const LATE: Partial<ExecAnswer> = { timedOut: true, exitCode: 137, signal: "SIGKILL" };

  test.each(["Exec", "SessionExec"])("is an error of %s, with what there was", async (method) => {
    const error = await failureOf(call(answering(LATE), method, [REQUEST]));
    expect([error.code, error.rawMessage]).toEqual([Code.DeadlineExceeded, "command timed out"]);
    expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({ reason: "COMMAND_TIMEOUT", domain: "agentfense" });
    expect(error.findDetails(ExecResultSchema)[0]).toMatchObject({
      stdout: "out",
      stderr: "err",
      exitCode: 137,
      signal: "SIGKILL",
      timedOut: true,
      truncated: false,
    });
  });

  test("is the end of a stream like any other", async () => {
    const parts: ExecPart[] = [
      { kind: "stdout", data: Buffer.from("a") },
      { kind: "exit", end: { ...END, ...LATE } },
    ];
    const { transport } = bench({ sandboxes: { execStream: () => streamOf(parts) } });
    const outputs = await call(transport, "ExecStream", [REQUEST]);
    expect(outputs.at(-1)).toMatchObject({ timedOut: true, exitCode: 137, signal: "SIGKILL", type: 0 });
  });

  test("has the end of its output in the trailers of gRPC, which are small", async () => {
    const stdout = Buffer.from(`${"x".repeat(5_000_000)}the ünd`);
    const stderr = Buffer.alloc(5_000_000, 0xff);
    const syncProblems = Array.from({ length: 1000 }, () => "a problem of some length");
    await using server = await grpcServer({ ...ANSWER, ...LATE, stdout, stderr, syncProblems });
    const error = await failureOf(call(server.transport, "Exec", [REQUEST]));
    expect([error.code, error.rawMessage]).toEqual([Code.DeadlineExceeded, "command timed out"]);
    const [result] = error.findDetails(ExecResultSchema);
    expect(result?.stdout).toMatch(/^x{1000,}the ünd$/);
    expect(result?.stderr).toMatch(/^\ufffd{200,}$/);
    expect([result?.truncated, result?.timedOut, result?.exitCode]).toEqual([true, true, 137]);
    expect(toBinary(ExecResultSchema, result!).length).toBeLessThan(4700);
  });
});

test("a stream's messages are no larger than 256 KiB", async () => {
  const parts: ExecPart[] = [
    { kind: "stderr", data: Buffer.alloc(600 * 1024, "a") },
    { kind: "exit", end: END },
  ];
  const { transport } = bench({ sandboxes: { execStream: () => streamOf(parts) } });
  const outputs = (await call(transport, "ExecStream", [REQUEST])) as unknown as { type: number; data: Uint8Array }[];
  expect(outputs.map(({ type, data }) => [type, data.length])).toEqual([
    [2, 256 * 1024],
    [2, 256 * 1024],
    [2, 88 * 1024],
    [0, 0],
  ]);
});

/** A real gRPC server on a port of its own, for what only trailers show. */
async function grpcServer(answer: ExecAnswer): Promise<{ transport: Transport } & AsyncDisposable> {
  const runtime = runtimeOf({ sandboxes: { exec: async () => answer } });
  const server: Http2Server = createServer(
    connectNodeAdapter({
      routes: (router) => registerServices(router, runtime, { log: () => {} }),
      interceptors: [asCaller(ALICE)],
    }),
  );
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const sessions = new Set<{ destroy(): void }>();
  server.on("session", (session) => sessions.add(session));
  return {
    transport: createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }),
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
