import { fromMachine, RuntimeError } from "../errors.ts";

/** Any failure as one that a caller may see. */
export function toRuntimeError(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  return fromMachine(error, { full: "the server's disk is full", otherwise: "the codebase store failed" });
}

export function codebaseNotFound(): RuntimeError {
  return new RuntimeError("CODEBASE_NOT_FOUND", "codebase not found");
}
