import { ERRORS, type ErrorCode, STATUS_NUMBERS } from "@agentfense/protocol";
import { ErrorInfoSchema, RetryInfoSchema } from "@agentfense/protocol/error-details";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { LogLine } from "../../../src/runtime/log.ts";
import { RuntimeError, type RuntimeErrorCode } from "../../../src/runtime/runtime-error.ts";
import { toConnectError } from "../../../src/service/rpc/connect-error.ts";
import { bench, call, refusalOf } from "./fixture.ts";

function translate(error: unknown, signal?: AbortSignal): { error: ConnectError; log: LogLine[] } {
  const log: LogLine[] = [];
  const place = { log: (line: LogLine) => void log.push(line), method: "test.Method" };
  return { error: toConnectError(error, signal === undefined ? place : { ...place, signal }), log };
}

function infoOf(error: ConnectError) {
  const [info] = error.findDetails(ErrorInfoSchema);
  return { reason: info?.reason, domain: info?.domain, metadata: info?.metadata };
}

const UNTOLD: RuntimeErrorCode[] = ["INTERNAL"];

test.each(Object.keys(ERRORS) as ErrorCode[])("%s travels with its status, its reason and its facts", (code) => {
  const cause = new RuntimeError(code, "the message", { details: { sandbox_id: "sb_1" }, hint: "start it" });
  const { error, log } = translate(cause);
  expect(error.code).toBe(STATUS_NUMBERS[ERRORS[code].status]);
  expect(error.rawMessage).toBe("the message");
  expect(infoOf(error)).toMatchObject({
    reason: code,
    domain: "agentfense",
    metadata: { sandbox_id: "sb_1", hint: "start it" },
  });
  expect(log).toHaveLength(UNTOLD.includes(code) ? 1 : 0);
});

test("who is asked to wait is told how long", () => {
  const { error } = translate(new RuntimeError("RATE_LIMITED", "slow down", { details: { retry_after_ms: "1500" } }));
  expect(error.findDetails(RetryInfoSchema)[0]?.retryDelay).toMatchObject({ seconds: 1n, nanos: 500_000_000 });
  const { error: without } = translate(new RuntimeError("RATE_LIMITED", "slow down"));
  expect(without.findDetails(RetryInfoSchema)).toEqual([]);
});

test("an unknown error is a reference for the caller and itself for the log", () => {
  const { error, log } = translate(new Error("ENOENT: /var/lib/agentfense/secret"));
  expect(error.code).toBe(Code.Internal);
  expect(error.rawMessage).toMatch(/^internal error \(reference [0-9a-f]{8}\)$/);
  const reference = error.rawMessage.slice(-9, -1);
  expect(infoOf(error).metadata).toEqual({ reference });
  expect(log).toEqual([
    {
      level: "error",
      message: `test.Method failed (reference ${reference})`,
      error: expect.stringContaining("/var/lib/agentfense/secret"),
    },
  ]);
});

test("what a defect of the runtime really was is in the log alone", () => {
  const { error, log } = translate(new RuntimeError("INTERNAL", "the disk failed", { cause: new Error("/dev/sda") }));
  expect(error.rawMessage).toBe("the disk failed");
  expect(JSON.stringify(infoOf(error))).not.toContain("/dev/sda");
  expect(log[0]?.error).toContain("/dev/sda");
});

test("an error of the protocol passes", () => {
  const original = new ConnectError("too large", Code.ResourceExhausted);
  expect(translate(original).error).toBe(original);
});

describe("a call that was aborted", () => {
  const aborted = (reason?: unknown) => AbortSignal.abort(reason);

  test.each([
    ["the runtime's word for it", new RuntimeError("CANCELLED", "cancelled")],
    ["an AbortError", new DOMException("aborted", "AbortError")],
  ])("is cancelled: %s", (_title, thrown) => {
    const { error, log } = translate(thrown, aborted());
    expect([error.code, log]).toEqual([Code.Canceled, []]);
  });

  test("is what the protocol says it is", () => {
    const deadline = new ConnectError("the operation timed out", Code.DeadlineExceeded);
    expect(translate(new RuntimeError("CANCELLED", "cancelled"), aborted(deadline)).error).toBe(deadline);
  });

  test("does not excuse a defect", () => {
    expect(translate(new TypeError("oops"), aborted()).error.code).toBe(Code.Internal);
  });

  test("is nothing that an AbortError alone can claim", () => {
    const { error, log } = translate(new DOMException("aborted", "AbortError"), new AbortController().signal);
    expect([error.code, log.length]).toEqual([Code.Internal, 1]);
  });
});

describe("an error that quotes the request", () => {
  test("fits the trailers of gRPC", () => {
    const long = "ä".repeat(10_000);
    const { error } = translate(
      new RuntimeError("INVALID_ARGUMENT", long, { details: { one: long, two: long }, hint: long }),
    );
    expect(Buffer.byteLength(error.rawMessage)).toBeLessThan(1100);
    expect(error.rawMessage).toMatch(/^ä+…$/);
    expect(Buffer.byteLength(JSON.stringify(infoOf(error)))).toBeLessThan(1800);
  });

  test("can always be encoded", () => {
    const { error } = translate(new RuntimeError("INVALID_ARGUMENT", "half a pair: \ud83d"));
    expect(encodeURIComponent(error.rawMessage)).toBe(encodeURIComponent("half a pair: \ufffd"));
  });
});

test.each(["GetSandbox", "ExecStream", "DownloadFile"])(
  "an error of the runtime reaches the caller of %s",
  async (method) => {
    const fail = () => {
      throw new RuntimeError("SANDBOX_NOT_RUNNING", "sandbox is not running", { details: { status: "STOPPED" } });
    };
    const { transport, log } = bench({
      sandboxes: { get: fail, execStream: fail },
      codebases: { download: fail },
    });
    const request = { sandboxId: "sb_1", codebaseId: "cb_1", filePath: "a", command: "x" };
    expect(await refusalOf(call(transport, method, [request]))).toEqual({
      code: "FailedPrecondition",
      message: "sandbox is not running",
      reason: "SANDBOX_NOT_RUNNING",
      metadata: { status: "STOPPED" },
    });
    expect(log).toEqual([]);
  },
);
