import { AgentError, WorkspaceError, type WorkspaceErrorCode } from "../errors.ts";
import { shown } from "./path.ts";

/** Our codes for what the system, or a sandbox, says about a file. */
export const CODE_BY_ERRNO: Readonly<Record<string, WorkspaceErrorCode>> = {
  ENOENT: "NOT_FOUND",
  EACCES: "NOT_PERMITTED",
  EPERM: "NOT_PERMITTED",
  EROFS: "NOT_PERMITTED",
  EISDIR: "WRONG_KIND",
  ENOTDIR: "WRONG_KIND",
  ELOOP: "WRONG_KIND",
  ENXIO: "WRONG_KIND",
  ENOTEMPTY: "NOT_EMPTY",
  EEXIST: "NOT_EMPTY",
  EFBIG: "TOO_LARGE",
};

const WORDS: Readonly<Record<WorkspaceErrorCode, string>> = {
  NOT_FOUND: "is not there",
  NOT_PERMITTED: "may not be touched like this",
  WRONG_KIND: "is of another kind",
  NOT_EMPTY: "is not empty",
  TOO_LARGE: "is too large",
  IO: "cannot be used",
};

export function failure(code: WorkspaceErrorCode, path: string, words: string = WORDS[code]): WorkspaceError {
  return new WorkspaceError(code, `${shown(path)} ${words}`);
}

/** What the system said, in our words. Its own message, and the cause, would tell where the workspace is. */
export function workspaceFailure(error: unknown, path: string): unknown {
  if (error instanceof AgentError) return error;
  const errno = errnoOf(error);
  if (errno === undefined) return error;
  const code = CODE_BY_ERRNO[errno] ?? "IO";
  return failure(code, path, code === "IO" ? `cannot be used (${errno})` : undefined);
}

export function errnoOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}
