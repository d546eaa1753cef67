import { FILE_TOOLS, inContext, type ToolEntry, type ToolFiles } from "@agentfense/sdk/tool-kit";
import { WorkspaceError } from "../errors.ts";
import type { Workspace, WorkspaceEntry } from "../workspace/workspace.ts";
import type { Tool, ToolContext } from "./tool.ts";

/** Those of the SDK, on the files of a world. */
export const WORKSPACE_TOOLS: readonly Tool[] = FILE_TOOLS.map((tool) =>
  inContext(tool, (context: ToolContext) => ({ ...context, files: workspaceFiles(context.workspace) })),
);

function workspaceFiles(workspace: Workspace): ToolFiles {
  return {
    read: async function* (path) {
      yield await workspace.readFileBytes(workspacePath(path));
    },
    stat: async (path) => entryOf(await workspace.stat(workspacePath(path))),
    write: (path, content) => workspace.writeFile(workspacePath(path), content),
    list: async (path, { recursive }) => (await workspace.list(workspacePath(path), { recursive })).map(entryOf),
    isRefusal: (error) => error instanceof WorkspaceError,
  };
}

function entryOf({ path, kind, size }: WorkspaceEntry): ToolEntry {
  return { path, kind, size, readable: true };
}

const WORKSPACE = "/workspace";

/**
 * A path as a workspace takes it. Commands see the workspace at /workspace, so models write that too; what else is absolute,
 * or leads up, is left for the workspace to refuse.
 */
export function workspacePath(path: string): string {
  if (path === "/" || path === WORKSPACE) return "";
  return path.startsWith(`${WORKSPACE}/`) ? path.slice(WORKSPACE.length + 1) : path;
}
