import type { ErrorCode } from "@agentfense/protocol";
import { Fault } from "../faults.ts";

interface ErrnoFacts {
  /** Anything that is not told apart is FILE_WRONG_KIND. */
  readonly code?: ErrorCode;
  /** For callers of the file API. */
  readonly explanation: string;
  /** As the C library says it, for what programs print. */
  readonly text: string;
}

const ERRNOS = {
  EACCES: { code: "FILE_PERMISSION_DENIED", explanation: "permission denied", text: "Permission denied" },
  EBUSY: { explanation: "EBUSY", text: "Device or resource busy" },
  EDQUOT: {
    code: "LIMIT_EXCEEDED",
    explanation: "the sandbox's disk quota is used up",
    text: "Disk quota exceeded",
  },
  EEXIST: { code: "FILE_EXISTS", explanation: "it exists already", text: "File exists" },
  EINVAL: {
    code: "INVALID_ARGUMENT",
    explanation: "not a path of a regular file in the workspace",
    text: "Invalid argument",
  },
  EISDIR: { explanation: "it is a directory", text: "Is a directory" },
  ELOOP: { explanation: "too many symbolic links", text: "Too many levels of symbolic links" },
  ENOENT: { code: "FILE_NOT_FOUND", explanation: "it does not exist", text: "No such file or directory" },
  ENOTDIR: { explanation: "not a directory", text: "Not a directory" },
  ENOTEMPTY: { explanation: "the directory is not empty", text: "Directory not empty" },
  EPERM: { code: "FILE_PERMISSION_DENIED", explanation: "EPERM", text: "Operation not permitted" },
  EXDEV: {
    explanation: "it leads out of the workspace, or cannot be moved there",
    text: "Invalid cross-device link",
  },
} as const satisfies Record<string, ErrnoFacts>;

export type Errno = keyof typeof ERRNOS;

/** An operation on a file that is refused, as the kernel would. */
export class FileFault extends Error {
  readonly errno: Errno;

  constructor(errno: Errno) {
    super(ERRNOS[errno].text);
    this.name = "FileFault";
    this.errno = errno;
  }
}

/** What a caller of the file API is told; the path as the caller gave it. */
export function faultFor(path: string, { errno }: FileFault): Fault {
  const facts: ErrnoFacts = ERRNOS[errno];
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  const message = `${JSON.stringify(shown)}: ${facts.explanation}`;
  return new Fault(facts.code ?? "FILE_WRONG_KIND", message, { details: { errno } });
}
