import { fileRefusal } from "./files/file-refusal.ts";

export const WORKSPACE = "/workspace";

const PLACE_HINT = `paths are those of ${WORKSPACE}; what else a sandbox has is reached by its commands`;

/** "/workspace/src/a.ts" for a path that a client named; what is no path of the workspace is refused. */
export function workspacePath(given: string, operation: string): string {
  const refuse = (message: string, hint?: string) =>
    fileRefusal({ path: given, operation, message, type: "invalid_path", errno: "EINVAL", hint });
  if (given === "") throw refuse("the path is empty");
  // Half of a pair would be written as another character: two paths for one file.
  if (given.includes("\0") || !given.isWellFormed()) throw refuse("a path is text without NUL");
  const names = given.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw refuse("a path has no .. in it", PLACE_HINT);
  if (!given.startsWith("/")) return [WORKSPACE, ...names].join("/");
  if (names[0] !== WORKSPACE.slice(1)) throw refuse("the path is outside of the workspace", PLACE_HINT);
  return `/${names.join("/")}`;
}

/** Relative to a directory that it is in; "" for the directory itself. */
export function relativeTo(directory: string, path: string): string {
  return path === directory ? "" : path.slice(directory.length + 1);
}

/** Where a command is to run: below the workspace or elsewhere in the sandbox, which its own kernel view decides. */
export function workingDirectory(given: string | undefined): string {
  if (given === undefined || given === "") return WORKSPACE;
  return given.startsWith("/") ? given : `${WORKSPACE}/${given}`;
}
