import { namesIn } from "@agentfense/permission";
import { invalid } from "../errors.ts";

const WORKSPACE = "/workspace";
/** PATH_MAX of the kernel, with its NUL. */
const LONGEST_PATH_BYTES = 4095;

/**
 * A path of the workspace in its one normal form, "/src/a.ts", "/" for the root. Callers write "/src/a.ts", "src/a.ts" or
 * what a process inside would, "/workspace/src/a.ts".
 */
export function workspacePath(path: string, field = "path"): string {
  if (path === "") throw invalid(`${field} is required`);
  if (path.includes("\0")) throw invalid(`${field} contains a NUL character`);
  if (Buffer.byteLength(path) > LONGEST_PATH_BYTES)
    throw invalid(`${field} is longer than ${LONGEST_PATH_BYTES} bytes`);
  const inside = path === WORKSPACE || path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length) : path;
  const names = namesIn(inside);
  if (names.includes("..")) throw invalid(`${field} has a .. in it; name the file from the root of the workspace`);
  return `/${names.join("/")}`;
}

/** None given: everything. */
export function workspacePaths(paths: readonly string[]): readonly string[] | undefined {
  return paths.length === 0 ? undefined : paths.map((path) => workspacePath(path, "paths"));
}

/** As the view takes it, which would read a leading "/workspace" as its own root. */
export function viewPath(normal: string): string {
  return normal === "/" ? "/" : normal.slice(1);
}
