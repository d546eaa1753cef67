const WORKSPACE = "/workspace";

/**
 * A path as a workspace takes it. Commands see the workspace at /workspace, so models write that too; what else is absolute,
 * or leads up, is left for the workspace to refuse.
 */
export function workspacePath(path: string): string {
  if (path === "/" || path === WORKSPACE) return "";
  return path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length + 1) : path;
}
