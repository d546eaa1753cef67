import { constants } from "node:os";
import { type Sandbox, SandboxError, type SandboxErrorCode } from "@agentfense/sdk";
import { Refusal } from "../envelope.ts";

type ErrorType =
  | "not_found"
  | "permission_denied"
  | "invalid_target"
  | "already_exists"
  | "invalid_path"
  | "read_only_filesystem"
  | "no_space_left"
  | "decode_error"
  | "io_error";

type ErrnoName = keyof typeof constants.errno;

/** The answer for a file that cannot be had: HTTP 200, `success: false`, and a FileOperationError. */
export function fileRefusal(facts: {
  readonly path: string;
  readonly operation: string;
  readonly message: string;
  readonly type: ErrorType;
  readonly errno?: ErrnoName | undefined;
  readonly hint?: string | undefined;
}): Refusal {
  const { path, operation, message, type, errno, hint } = facts;
  const data = {
    path,
    operation,
    message,
    error_type: type,
    retryable: false,
    errno: errno === undefined ? null : constants.errno[errno],
    errno_name: errno ?? null,
    exception_type: EXCEPTIONS[type],
  };
  return new Refusal(message, { data, hint });
}

/** What AIO's own language would have thrown. */
const EXCEPTIONS: Readonly<Record<ErrorType, string>> = {
  not_found: "FileNotFoundError",
  permission_denied: "PermissionError",
  invalid_target: "OSError",
  already_exists: "FileExistsError",
  invalid_path: "ValueError",
  read_only_filesystem: "OSError",
  no_space_left: "OSError",
  decode_error: "UnicodeDecodeError",
  io_error: "OSError",
};

const TYPES: Readonly<Partial<Record<SandboxErrorCode, readonly [ErrorType, ErrnoName]>>> = {
  FILE_NOT_FOUND: ["not_found", "ENOENT"],
  FILE_PERMISSION_DENIED: ["permission_denied", "EACCES"],
  FILE_EXISTS: ["already_exists", "EEXIST"],
  FILE_WRONG_KIND: ["invalid_target", "EINVAL"],
  INVALID_ARGUMENT: ["invalid_path", "EINVAL"],
  LIMIT_EXCEEDED: ["no_space_left", "ENOSPC"],
};

/** Some errnos say more than the code that they came with. */
const BY_ERRNO: Readonly<Record<string, ErrorType>> = {
  EROFS: "read_only_filesystem",
  ENOSPC: "no_space_left",
  EDQUOT: "no_space_left",
};

/** Does something with a file; what the file system refuses becomes the answer above, with the rule that decided. */
export async function onFile<T>(
  { sandbox, path, operation }: { readonly sandbox: Sandbox; readonly path: string; readonly operation: string },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    const known = TYPES[error.code];
    if (known === undefined) throw error;
    const [type, usual] = known;
    const { errno = usual } = error.details;
    const hint = type === "permission_denied" ? await decidingRule(sandbox, path) : undefined;
    throw fileRefusal({
      path,
      operation,
      message: error.message,
      type: BY_ERRNO[errno] ?? type,
      errno: isErrnoName(errno) ? errno : usual,
      hint,
    });
  }
}

/** Nothing about what is hidden: that a rule names it would tell that it is there. */
async function decidingRule(sandbox: Sandbox, path: string): Promise<string | undefined> {
  try {
    const { permission, text } = await sandbox.permissions.explain(path);
    return permission === "none" ? undefined : text;
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  }
}

function isErrnoName(name: string): name is ErrnoName {
  return Object.hasOwn(constants.errno, name);
}
