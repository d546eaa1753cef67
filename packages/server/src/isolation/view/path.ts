import { namesIn } from "@agentfense/permission";
import { IsolationError } from "../backend/isolation-error.ts";

/** As the kernel counts, with the terminating NUL. */
const PATH_MAX = 4096;
const NAME_MAX = 255;

/**
 * The names of a path as a client writes it: "/workspace/src/a.ts", "/src/a.ts" and "src/a.ts" are one. It is refused with
 * EINVAL when it has a "..", a NUL, or is longer than any path can be.
 */
export function parseViewPath(path: string, target: string): string[] {
  const isBelow = path === target || path.startsWith(`${target}/`);
  const names = namesIn(isBelow ? path.slice(target.length) : path);
  const bytes = (text: string): number => Buffer.byteLength(text);
  const isRight =
    !names.includes("..") &&
    !path.includes("\0") &&
    path.isWellFormed() &&
    bytes(path) < PATH_MAX &&
    names.every((name) => bytes(name) <= NAME_MAX);
  if (!isRight) throw fileFailed(path, "EINVAL");
  return names;
}

/** "/src/a.ts" */
export function viewPath(names: readonly string[]): string {
  return `/${names.join("/")}`;
}

const EXPLANATIONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EDQUOT: "the sandbox's disk quota is used up",
  EEXIST: "it exists already",
  EINVAL: "not a path of a regular file in the workspace",
  EISDIR: "it is a directory",
  ELOOP: "too many symbolic links",
  ENOENT: "it does not exist",
  ENOTCONN: "the workspace is gone",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "the directory is not empty",
  ENOTSUP: "this runtime has no files",
  EROFS: "the workspace is read-only",
  ETIMEDOUT: "the workspace did not answer",
  EXDEV: "it leads out of the workspace, or cannot be moved there",
};

/** The path as the caller gave it. */
export function fileFailed(path: string, errno: string): IsolationError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new IsolationError("FILE_FAILED", `${JSON.stringify(shown)}: ${EXPLANATIONS[errno] ?? errno}`, { errno });
}
