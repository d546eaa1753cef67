import { namesIn } from "@agentfense/permission";

const WORKSPACE = "/workspace";

/**
 * A path of the workspace as calls take it: "src/a.ts", "/" for the workspace itself. Without the slash in front, a directory
 * that is called "workspace" is not taken for the workspace.
 */
export function workspacePath(path: string): string {
  if (path === "") return "";
  const names = namesIn(path === WORKSPACE || path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length) : path);
  return names.length === 0 ? "/" : names.join("/");
}
