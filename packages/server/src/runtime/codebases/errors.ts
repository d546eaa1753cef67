import { RuntimeError } from "../errors.ts";
import { toRuntimeError as translated } from "../sandboxes/errors.ts";

/** What a caller is told of an error of the disk, a thread or the store: no path of the host, the truth in `cause`. */
export function toRuntimeError(error: unknown): RuntimeError {
  return translated(error, "the codebase store failed");
}

export function codebaseNotFound(): RuntimeError {
  return new RuntimeError("CODEBASE_NOT_FOUND", "codebase not found");
}
