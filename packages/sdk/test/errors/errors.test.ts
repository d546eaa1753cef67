import { ERROR_DOMAIN, ERRORS, type ErrorCode, STATUS_NUMBERS } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { sandboxError } from "../../src/client/sandbox-error.ts";
import * as errors from "../../src/errors.ts";

const PLACE = { name: "http://here:9000" };

function told(reason: string, status: number, metadata: Record<string, string> = {}): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN, metadata } };
  return new ConnectError("what went wrong", status as Code, undefined, [info]);
}

function fromNode(code: string): ConnectError {
  const cause = Object.assign(new Error(code), { code });
  return Object.assign(new ConnectError(code, Code.Internal), { cause });
}

/** Each code of the registry, and the most general class that a caller may want to catch it as. */
const CLASSES = {
  INVALID_ARGUMENT: errors.InvalidConfigurationError,
  UNAUTHENTICATED: errors.AuthenticationError,
  ROLE_FORBIDS: errors.PermissionDeniedError,
  CODEBASE_NOT_FOUND: errors.CodebaseNotFoundError,
  CODEBASE_IN_USE: errors.CodebaseError,
  CODEBASE_IS_LOCAL: errors.CodebaseError,
  FILE_NOT_FOUND: errors.FileNotFoundError,
  VERSION_NOT_FOUND: errors.CodebaseError,
  VERSION_CONFLICT: errors.VersionConflictError,
  CONTENT_MISSING: errors.UploadError,
  UPLOAD_MISMATCH: errors.UploadError,
  SANDBOX_NOT_FOUND: errors.SandboxNotFoundError,
  SANDBOX_ALREADY_RUNNING: errors.SandboxError,
  SANDBOX_NOT_RUNNING: errors.SandboxNotRunningError,
  SANDBOX_PAUSED: errors.SandboxNotRunningError,
  SANDBOX_FAILED: errors.SandboxNotRunningError,
  SYNC_REFUSED: errors.SandboxError,
  SESSION_NOT_FOUND: errors.SessionNotFoundError,
  SESSION_CLOSED: errors.SessionClosedError,
  CONTEXT_NOT_FOUND: errors.SandboxError,
  PORT_CLOSED: errors.PortClosedError,
  HOME_NOT_FOUND: errors.SandboxError,
  HOME_IN_USE: errors.SandboxError,
  SNAPSHOT_NOT_FOUND: errors.SandboxError,
  SNAPSHOT_REFUSED: errors.SandboxError,
  SECRET_NOT_FOUND: errors.SandboxError,
  SEALING_KEY_MISSING: errors.SandboxError,
  PROCESS_NOT_FOUND: errors.ProcessError,
  PROCESS_UNSUITABLE: errors.ProcessError,
  READER_TOO_SLOW: errors.ProcessError,
  KEY_NOT_FOUND: errors.SandboxError,
  COMMAND_TIMEOUT: errors.CommandTimeoutError,
  WORKDIR_UNUSABLE: errors.InvalidConfigurationError,
  PROGRAM_NOT_FOUND: errors.InvalidConfigurationError,
  RUNTIME_UNAVAILABLE: errors.RuntimeUnavailableError,
  IMAGE_NOT_FOUND: errors.RuntimeUnavailableError,
  FILE_PERMISSION_DENIED: errors.PermissionDeniedError,
  FILE_EXISTS: errors.CodebaseError,
  FILE_WRONG_KIND: errors.CodebaseError,
  LIMIT_EXCEEDED: errors.ResourceLimitExceededError,
  RATE_LIMITED: errors.ResourceLimitExceededError,
  RESOURCES_EXHAUSTED: errors.ResourceLimitExceededError,
  DATABASE_UNAVAILABLE: errors.ConnectionError,
  SHUTTING_DOWN: errors.ConnectionError,
  CANCELLED: errors.SandboxError,
  INTERNAL: errors.SandboxError,
} satisfies Record<ErrorCode, unknown>;

describe("what a server says", () => {
  test.each(Object.keys(ERRORS) as ErrorCode[])("%s is the error of its class", (code) => {
    const answer = told(code, STATUS_NUMBERS[ERRORS[code].status], { hint: "do this", sandbox_id: "sb_1" });
    const error = sandboxError(answer, PLACE);
    expect(error.constructor).toBe(CLASSES[code]);
    expect({ ...error, message: error.message }).toMatchObject({
      name: CLASSES[code].name,
      message: "what went wrong",
      code,
      retryable: ERRORS[code].retryable,
      hint: "do this",
      details: { sandbox_id: "sb_1" },
    });
    expect(error).toBeInstanceOf(errors.SandboxError);
    expect(error.cause).toBe(answer);
  });

  test("the code decides, and not the status that it travels with", () => {
    expect(sandboxError(told("SANDBOX_NOT_FOUND", Code.Internal), PLACE)).toBeInstanceOf(errors.SandboxNotFoundError);
  });

  test("a code that this client does not know yet is told as it is", () => {
    expect(sandboxError(told("MOON_PHASE", Code.FailedPrecondition), PLACE)).toMatchObject({
      name: "SandboxError",
      code: "UNKNOWN",
      message: "what went wrong",
      details: { reason: "MOON_PHASE" },
    });
  });

  test("families can be caught together", () => {
    expect(new errors.FileNotFoundError("", { code: "FILE_NOT_FOUND" })).toBeInstanceOf(errors.CodebaseError);
    expect(new errors.SessionClosedError("", { code: "SESSION_CLOSED" })).toBeInstanceOf(errors.SessionError);
    expect(new errors.CommandTimeoutError("", { code: "COMMAND_TIMEOUT" })).toBeInstanceOf(errors.CommandError);
  });
});

describe("what no server says", () => {
  test.each([
    [fromNode("ECONNREFUSED"), "nothing listens at http://here:9000", true],
    [fromNode("ENOTFOUND"), "there is no machine of that name: http://here:9000", false],
    [fromNode("EAI_AGAIN"), "there is no machine of that name: http://here:9000", true],
    [fromNode("SELF_SIGNED_CERT_IN_CHAIN"), "the certificate of http://here:9000 is signed by nobody we know", false],
    [fromNode("ECONNRESET"), "the connection to http://here:9000 was lost: ECONNRESET", true],
    [new ConnectError("gone", Code.Unavailable), "the connection to http://here:9000 was lost: gone", true],
    [new ConnectError("reset", Code.Canceled), "the connection to http://here:9000 was lost: reset", true],
    [
      new ConnectError("protocol error: missing status", Code.Internal),
      "the connection to http://here:9000 was lost: protocol error: missing status",
      true,
    ],
  ])("%s is a ConnectionError", (thrown, message, retryable) => {
    expect(sandboxError(thrown, PLACE)).toMatchObject({
      name: "ConnectionError",
      code: "CONNECTION_FAILED",
      message,
      retryable,
    });
  });

  test("a deadline says how long was waited", () => {
    const thrown = new ConnectError("the operation timed out", Code.DeadlineExceeded);
    expect(sandboxError(thrown, { ...PLACE, timeoutMs: 1500 })).toMatchObject({
      name: "ConnectionError",
      code: "CONNECTION_FAILED",
      message: "no answer from http://here:9000 within 1500 ms",
    });
  });

  test.each([
    [Code.Unauthenticated, "AuthenticationError", "UNAUTHENTICATED"],
    [Code.InvalidArgument, "InvalidConfigurationError", "INVALID_ARGUMENT"],
    [Code.PermissionDenied, "PermissionDeniedError", "UNKNOWN"],
    [Code.ResourceExhausted, "ResourceLimitExceededError", "UNKNOWN"],
    [Code.Internal, "SandboxError", "UNKNOWN"],
  ])("status %s of somebody in between is a %s", (status, name, code) => {
    expect(sandboxError(new ConnectError("no", status), PLACE)).toMatchObject({ name, code, message: "no" });
  });

  test("a server that lacks a method is named", () => {
    const message = "http://here:9000 cannot do that: no";
    expect(sandboxError(new ConnectError("no", Code.Unimplemented), PLACE)).toMatchObject({ code: "UNKNOWN", message });
  });

  test("an engine's own error stays what it is", () => {
    const own = new errors.RuntimeUnavailableError("no bwrap here", { code: "RUNTIME_UNAVAILABLE" });
    expect(sandboxError(own, PLACE)).toBe(own);
    expect(sandboxError(ConnectError.from(own), PLACE)).toBe(own);
  });
});

test("as a string an error has its hint", () => {
  const options = { code: "SANDBOX_NOT_RUNNING", hint: "start it first" } as const;
  expect(String(new errors.SandboxNotRunningError("sandbox is not running", options))).toBe(
    "SandboxNotRunningError: sandbox is not running (start it first)",
  );
  expect(String(new errors.SandboxError("no", { code: "UNKNOWN" }))).toBe("SandboxError: no");
});
