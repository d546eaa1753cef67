import { ERROR_DOMAIN, ERRORS, type ErrorCode } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  AuthenticationError,
  ConnectionError,
  ERROR_CLASSES,
  InvalidConfigurationError,
  PermissionDeniedError,
  ResourceLimitExceededError,
  SandboxError,
} from "../errors.ts";

/** Where an error was met. */
export interface FailurePlace {
  /** The name of the engine. */
  readonly name: string;
  /** How long we were willing to wait. */
  readonly timeoutMs?: number | undefined;
}

/** The error that callers see, for any that a transport throws. */
export function sandboxError(thrown: unknown, place: FailurePlace): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const error = ConnectError.from(thrown, Code.Internal);
  // An engine in this process may fail with words of its own.
  if (error.cause instanceof SandboxError) return error.cause;
  return fromServer(error) ?? fromConnection(error, place) ?? fromStatus(error, place);
}

/** What the server said of its own accord: the code of the registry decides. */
function fromServer(error: ConnectError): SandboxError | undefined {
  const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === ERROR_DOMAIN);
  if (info === undefined) return undefined;
  const { hint, ...details } = info.metadata;
  const facts = { hint, details, cause: error };
  // A server that is newer than this client may know of more.
  if (!isErrorCode(info.reason)) {
    return new SandboxError(error.rawMessage, {
      ...facts,
      code: "UNKNOWN",
      details: { ...details, reason: info.reason },
    });
  }
  const { retryable } = ERRORS[info.reason];
  return new ERROR_CLASSES[info.reason](error.rawMessage, { ...facts, code: info.reason, retryable });
}

function isErrorCode(reason: string): reason is ErrorCode {
  return Object.hasOwn(ERRORS, reason);
}

/** Codes that no server of ours sends without its ErrorInfo: the connection was lost, or never there. */
const LOST = new Set([Code.Unavailable, Code.Canceled, Code.Aborted]);

function fromConnection(error: ConnectError, { name, timeoutMs }: FailurePlace): SandboxError | undefined {
  if (error.code === Code.DeadlineExceeded) {
    const waited = timeoutMs === undefined ? "in time" : `within ${timeoutMs} ms`;
    return new ConnectionError(`no answer from ${name} ${waited}`, {
      code: "CONNECTION_FAILED",
      retryable: true,
      cause: error,
    });
  }
  const reason = reasonOf(error);
  const explained = CONNECTION_REASONS[reason ?? ""];
  if (reason !== undefined && explained !== undefined) {
    const { message, ...rest } = explained(name);
    return new ConnectionError(message, { ...rest, code: "CONNECTION_FAILED", details: { reason }, cause: error });
  }
  if (reason === undefined && !LOST.has(error.code) && !endedEarly(error)) return undefined;
  return new ConnectionError(`the connection to ${name} was lost: ${error.rawMessage}`, {
    code: "CONNECTION_FAILED",
    retryable: true,
    cause: error,
  });
}

interface ConnectionReason {
  readonly message: string;
  readonly retryable: boolean;
  readonly hint?: string;
}

/** Reasons that have a better explanation than their own. */
const CONNECTION_REASONS: Readonly<Record<string, (name: string) => ConnectionReason>> = {
  ECONNREFUSED: (name) => ({ message: `nothing listens at ${name}`, retryable: true, hint: "is the server running?" }),
  ENOTFOUND: unknownHost,
  EAI_AGAIN: (name) => ({ ...unknownHost(name), retryable: true }),
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: (name) => ({
    message: `the certificate of ${name} is for another name`,
    retryable: false,
  }),
  ERR_SSL_WRONG_VERSION_NUMBER: speaksNoTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: speaksNoTls,
};

function unknownHost(name: string): ConnectionReason {
  return { message: `there is no machine of that name: ${name}`, retryable: false };
}

function untrusted(name: string): ConnectionReason {
  return {
    message: `the certificate of ${name} is signed by nobody we know`,
    retryable: false,
    hint: "give the right ones as tls.ca",
  };
}

function speaksNoTls(name: string): ConnectionReason {
  return { message: `${name} does not speak TLS`, retryable: false, hint: "use http://" };
}

/** Other codes of Node, such as ENOENT in an engine of this process, say nothing about a connection. */
const OF_CONNECTIONS =
  /^(ECONN|EPIPE|EPROTO|ETIMEDOUT|EHOST|ENET|EADDRNOTAVAIL|ERR_(HTTP2|SOCKET|SSL|STREAM|TLS)_|CERT_)/;

/** The code that Node gives to the failure below: ECONNRESET, ERR_HTTP2_… */
function reasonOf(error: ConnectError): string | undefined {
  for (let at: unknown = error.cause; at instanceof Error; at = at.cause) {
    if (!("code" in at) || typeof at.code !== "string") continue;
    if (Object.hasOwn(CONNECTION_REASONS, at.code) || OF_CONNECTIONS.test(at.code)) return at.code;
  }
  return undefined;
}

/** gRPC ends every answer with a status; one without was cut off. */
function endedEarly(error: ConnectError): boolean {
  return (
    error.code === Code.Internal && /^(protocol error: missing status|http\/2 stream closed)/.test(error.rawMessage)
  );
}

/** A status without details: of a proxy in between, or of a server that is not ours. */
function fromStatus(error: ConnectError, { name }: FailurePlace): SandboxError {
  const [Class, code] = STATUS_CLASSES[error.code] ?? [SandboxError, "UNKNOWN"];
  const lacks = error.code === Code.Unimplemented ? `${name} cannot do that: ` : "";
  return new Class(`${lacks}${error.rawMessage}`, { code, cause: error });
}

const STATUS_CLASSES: Readonly<Partial<Record<Code, readonly [typeof SandboxError, ErrorCode | "UNKNOWN"]>>> = {
  [Code.InvalidArgument]: [InvalidConfigurationError, "INVALID_ARGUMENT"],
  [Code.Unauthenticated]: [AuthenticationError, "UNAUTHENTICATED"],
  [Code.PermissionDenied]: [PermissionDeniedError, "UNKNOWN"],
  [Code.ResourceExhausted]: [ResourceLimitExceededError, "UNKNOWN"],
};
