import { RuntimeError } from "../errors.ts";

const FULL_DISK = new Set([28, 122]); // ENOSPC, EDQUOT
const OUT_OF_SOMETHING = new Set([12, 23, 24]); // ENOMEM, ENFILE, EMFILE

/** What a caller is told of an error of the disk, a thread or the store: no path of the host, the truth in `cause`. */
export function toRuntimeError(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  const { name, errno } = error as { name?: unknown; errno?: unknown };
  if (name === "AbortError") return new RuntimeError("CANCELLED", "the call was cancelled", { cause: error });
  if (typeof errno === "number" && FULL_DISK.has(errno)) {
    return new RuntimeError("RESOURCES_EXHAUSTED", "the server's disk is full", { cause: error });
  }
  if (typeof errno === "number" && OUT_OF_SOMETHING.has(errno)) {
    return new RuntimeError("RESOURCES_EXHAUSTED", "the server is out of memory or descriptors", { cause: error });
  }
  return new RuntimeError("INTERNAL", "the codebase store failed", { cause: error });
}

export function codebaseNotFound(): RuntimeError {
  return new RuntimeError("CODEBASE_NOT_FOUND", "codebase not found");
}
