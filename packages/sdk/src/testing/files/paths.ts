import { invalid } from "../faults.ts";

// Paths in their one normal form: "/src/a.ts", "/" for the root.

const WORKSPACE = "/workspace";
const LONGEST_PATH_BYTES = 4095;

/** What a client wrote: "/workspace/src/a.ts", "/src/a.ts" and "src/a.ts" are one. */
export function workspacePath(path: string, field = "path"): string {
  if (path === "") throw invalid(`${field} is required`);
  if (path.includes("\0")) throw invalid(`${field} contains a NUL character`);
  if (Buffer.byteLength(path) > LONGEST_PATH_BYTES) {
    throw invalid(`${field} is longer than ${LONGEST_PATH_BYTES} bytes`);
  }
  const inner = path === WORKSPACE || path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length) : path;
  const names = inner.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw invalid(`${field} has a .. in it; name the file from the root of the workspace`);
  return `/${names.join("/")}`;
}

/** Any path but the root, which is always there and stays. */
export function entryPath(path: string, field = "path"): string {
  const normal = workspacePath(path, field);
  if (normal === "/") throw invalid(`${field} is the workspace itself`);
  return normal;
}

/** As a process inside would name it. */
export function insidePath(path: string): string {
  return path === "/" ? WORKSPACE : `${WORKSPACE}${path}`;
}

export function joined(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** "/a", "/a/b" for "/a/b/c". */
export function ancestorsOf(path: string): string[] {
  const found: string[] = [];
  for (let at = path.indexOf("/", 1); at >= 0; at = path.indexOf("/", at + 1)) found.push(path.slice(0, at));
  return found;
}

export function isBelow(path: string, directory: string): boolean {
  return directory === "/" ? path !== "/" : path.startsWith(`${directory}/`);
}

export function isAtOrBelow(path: string, directory: string): boolean {
  return path === directory || isBelow(path, directory);
}

export function byPath(one: { readonly path: string }, other: { readonly path: string }): number {
  return one.path < other.path ? -1 : 1;
}
