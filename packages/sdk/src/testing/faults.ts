import { ERROR_DOMAIN, ERRORS, type ErrorCode, STATUS_NUMBERS } from "@agentfense/protocol";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type Code, ConnectError } from "@connectrpc/connect";

interface FaultOptions {
  /** Facts for programs. */
  readonly details?: Readonly<Record<string, string>>;
  /** What to do about it, for a person. */
  readonly hint?: string;
  /** A message that travels along. */
  readonly detail?: { readonly desc: DescMessage; readonly value: MessageInitShape<DescMessage> };
}

/** A call that is refused, by a code of the registry: it travels as the server's errors do. */
export class Fault extends Error {
  readonly code: ErrorCode;
  readonly options: FaultOptions;

  constructor(code: ErrorCode, message: string, options: FaultOptions = {}) {
    super(message);
    this.code = code;
    this.options = options;
  }
}

export function invalid(message: string): Fault {
  return new Fault("INVALID_ARGUMENT", message);
}

/** As the C library says it, for what commands print; the code of the registry, and how callers of the file API are told. */
const ERRNOS = {
  EACCES: ["Permission denied", "FILE_PERMISSION_DENIED", "permission denied"],
  EEXIST: ["File exists", "FILE_EXISTS", "it exists already"],
  EINVAL: ["Invalid argument", "INVALID_ARGUMENT", "not a path of a regular file in the workspace"],
  EISDIR: ["Is a directory", "FILE_WRONG_KIND", "it is a directory"],
  ELOOP: ["Too many levels of symbolic links", "FILE_WRONG_KIND", "too many symbolic links"],
  ENOENT: ["No such file or directory", "FILE_NOT_FOUND", "it does not exist"],
  ENOTDIR: ["Not a directory", "FILE_WRONG_KIND", "not a directory"],
  ENOTEMPTY: ["Directory not empty", "FILE_WRONG_KIND", "the directory is not empty"],
  EXDEV: ["Invalid cross-device link", "FILE_WRONG_KIND", "it leads out of the workspace, or cannot be moved there"],
} as const satisfies Record<string, readonly [string, ErrorCode, string]>;

/** An operation on a file of a sandbox that is refused, as the kernel would. */
export class FileFault extends Error {
  readonly errno: keyof typeof ERRNOS;

  constructor(errno: keyof typeof ERRNOS) {
    super(ERRNOS[errno][0]);
    this.errno = errno;
  }
}

/** Does what a caller of the file API asked for; a refusal is told with the path as the caller gave it. */
export function answered<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    const { errno } = error;
    const [, code, explanation] = ERRNOS[errno];
    throw new Fault(code, `${JSON.stringify(path)}: ${explanation}`, { details: { errno } });
  }
}

/** What the caller sees of anything that was thrown. */
export function toConnectError(error: unknown, signal: AbortSignal): ConnectError {
  if (signal.aborted && signal.reason instanceof ConnectError) return signal.reason;
  if (error instanceof Fault) return connectErrorOf(error);
  if (signal.aborted) return connectErrorOf(new Fault("CANCELLED", "the call was cancelled"));
  const message = error instanceof Error ? error.message : String(error);
  return connectErrorOf(new Fault("INTERNAL", `the mock engine failed: ${message}`));
}

function connectErrorOf({ code, message, options }: Fault): ConnectError {
  const { details = {}, hint, detail } = options;
  const metadata = { ...details, ...(hint === undefined ? {} : { hint }) };
  const info = { desc: ErrorInfoSchema, value: { reason: code, domain: ERROR_DOMAIN, metadata } };
  // The numbers of Connect's codes are those of gRPC.
  const number = STATUS_NUMBERS[ERRORS[code].status] as Code;
  return new ConnectError(message, number, undefined, detail === undefined ? [info] : [info, detail]);
}
