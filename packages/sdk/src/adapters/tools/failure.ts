import { SandboxError, type SandboxErrorCode } from "../../errors.ts";

/** What a model can do something about: it is told, instead of ending its loop. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

const TOLD: ReadonlySet<SandboxErrorCode> = new Set<SandboxErrorCode>([
  "INVALID_ARGUMENT",
  "FILE_NOT_FOUND",
  "FILE_PERMISSION_DENIED",
  "FILE_EXISTS",
  "FILE_WRONG_KIND",
  "WORKDIR_UNUSABLE",
  "PROGRAM_NOT_FOUND",
  "LIMIT_EXCEEDED",
]);

/** What to tell the model of a failure; one that is not for it is thrown on. */
export function textForModel(error: unknown): string {
  if (error instanceof ToolFailure) return error.message;
  if (!(error instanceof SandboxError) || !TOLD.has(error.code)) throw error;
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}
