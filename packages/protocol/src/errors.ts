/** `domain` of the ErrorInfo that every error of the server carries; its `reason` is a code of the registry. */
export const ERROR_DOMAIN = "agentfense";

export interface ErrorKind {
  readonly status: StatusName;
  /** The same call may succeed later, unchanged. */
  readonly retryable: boolean;
}

/** Every error a client can meet, by its code, and how it travels. */
export const ERRORS = {
  INVALID_ARGUMENT: { status: "INVALID_ARGUMENT", retryable: false },
  UNAUTHENTICATED: { status: "UNAUTHENTICATED", retryable: false },
  ROLE_FORBIDS: { status: "PERMISSION_DENIED", retryable: false },
  CODEBASE_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  CODEBASE_IN_USE: { status: "FAILED_PRECONDITION", retryable: false },
  CODEBASE_IS_LOCAL: { status: "FAILED_PRECONDITION", retryable: false },
  FILE_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  VERSION_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  VERSION_CONFLICT: { status: "ABORTED", retryable: false },
  CONTENT_MISSING: { status: "FAILED_PRECONDITION", retryable: false },
  UPLOAD_MISMATCH: { status: "DATA_LOSS", retryable: false },
  SANDBOX_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  SANDBOX_ALREADY_RUNNING: { status: "FAILED_PRECONDITION", retryable: false },
  SANDBOX_NOT_RUNNING: { status: "FAILED_PRECONDITION", retryable: false },
  SANDBOX_PAUSED: { status: "FAILED_PRECONDITION", retryable: false },
  SANDBOX_FAILED: { status: "FAILED_PRECONDITION", retryable: false },
  SYNC_REFUSED: { status: "FAILED_PRECONDITION", retryable: false },
  SESSION_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  SESSION_CLOSED: { status: "FAILED_PRECONDITION", retryable: false },
  CONTEXT_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  PORT_CLOSED: { status: "FAILED_PRECONDITION", retryable: false },
  HOME_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  HOME_IN_USE: { status: "FAILED_PRECONDITION", retryable: false },
  SNAPSHOT_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  SNAPSHOT_REFUSED: { status: "FAILED_PRECONDITION", retryable: false },
  SECRET_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  SEALING_KEY_MISSING: { status: "FAILED_PRECONDITION", retryable: false },
  PROCESS_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  PROCESS_UNSUITABLE: { status: "FAILED_PRECONDITION", retryable: false },
  READER_TOO_SLOW: { status: "ABORTED", retryable: false },
  KEY_NOT_FOUND: { status: "NOT_FOUND", retryable: false },
  COMMAND_TIMEOUT: { status: "DEADLINE_EXCEEDED", retryable: false },
  WORKDIR_UNUSABLE: { status: "INVALID_ARGUMENT", retryable: false },
  PROGRAM_NOT_FOUND: { status: "INVALID_ARGUMENT", retryable: false },
  RUNTIME_UNAVAILABLE: { status: "FAILED_PRECONDITION", retryable: false },
  IMAGE_NOT_FOUND: { status: "FAILED_PRECONDITION", retryable: false },
  FILE_PERMISSION_DENIED: { status: "PERMISSION_DENIED", retryable: false },
  FILE_EXISTS: { status: "ALREADY_EXISTS", retryable: false },
  FILE_WRONG_KIND: { status: "FAILED_PRECONDITION", retryable: false },
  LIMIT_EXCEEDED: { status: "RESOURCE_EXHAUSTED", retryable: false },
  RATE_LIMITED: { status: "RESOURCE_EXHAUSTED", retryable: true },
  RESOURCES_EXHAUSTED: { status: "RESOURCE_EXHAUSTED", retryable: true },
  DATABASE_UNAVAILABLE: { status: "UNAVAILABLE", retryable: true },
  SHUTTING_DOWN: { status: "UNAVAILABLE", retryable: true },
  CANCELLED: { status: "CANCELLED", retryable: false },
  INTERNAL: { status: "INTERNAL", retryable: false },
} as const satisfies Readonly<Record<string, ErrorKind>>;

export type ErrorCode = keyof typeof ERRORS;

/** The status codes of gRPC and their numbers. */
export const STATUS_NUMBERS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type StatusName = keyof typeof STATUS_NUMBERS;

/** What REST answers with instead: the mapping that clients of gRPC gateways know. */
const HTTP_STATUS: Readonly<Record<StatusName, number>> = {
  OK: 200,
  CANCELLED: 499,
  UNKNOWN: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  ABORTED: 409,
  OUT_OF_RANGE: 400,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DATA_LOSS: 500,
  UNAUTHENTICATED: 401,
};

/** The HTTP status of a gRPC code; 500 for a number that is none. */
export function httpStatusOf(code: number): number {
  const name = (Object.keys(STATUS_NUMBERS) as StatusName[]).find((each) => STATUS_NUMBERS[each] === code);
  return name === undefined ? 500 : HTTP_STATUS[name];
}
