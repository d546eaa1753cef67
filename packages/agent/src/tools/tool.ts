import * as kit from "@agentfense/sdk/tool-kit";
import type { ToolSandbox } from "@agentfense/sdk/tools";
import type { z } from "zod";
import type { BrowserActionName } from "../browser/action.ts";
import type { BrowserContext, BrowserResult } from "../browser/result.ts";
import type { ExecutionRequest, ExecutionResult } from "../types.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface ToolContext extends WorldParts {
  /** Characters kept of what is told. */
  readonly maxOutput: number;
  readonly browsing: BrowserContext;
  readonly turns: kit.Turns;
  readonly signal: AbortSignal | undefined;
}

/** A tool of a world, whatever its input is. */
export interface Tool extends kit.Tool<ToolContext> {
  /** It is there only where there is such a part. */
  readonly needs?: "browser" | undefined;
}

export function declareTool<Schema extends z.ZodObject>(
  declaration: kit.ToolDeclaration<Schema> & {
    readonly needs?: "browser" | undefined;
    readonly handler: kit.ToolHandler<Schema, ToolContext>;
  },
): Tool {
  return { ...kit.declareTool(declaration), needs: declaration.needs };
}

interface Cancellable {
  readonly signal?: AbortSignal | undefined;
}

/** What runs code: a SandboxManager. It assesses, asks and chooses by itself. */
export interface CodeRunner {
  execute(request: ExecutionRequest, options?: Cancellable): Promise<ExecutionResult>;
}

/** What drives a browser: a BrowserRouter. It assesses, asks and chooses by itself. */
export interface BrowserDriver {
  execute(
    action: { readonly action: BrowserActionName; readonly params: Readonly<Record<string, unknown>> },
    context?: BrowserContext,
    options?: Cancellable,
  ): Promise<BrowsingResult>;
}

/** As much of what a browser did as a tool tells. */
export type BrowsingResult = Pick<
  BrowserResult,
  "success" | "url" | "title" | "text" | "data" | "screenshot" | "tabs" | "blocked" | "error" | "errorCode"
>;

/** What tools work with. */
export interface WorldParts {
  readonly manager: CodeRunner;
  readonly workspace: Workspace;
  /** Absent: there are no browser tools. */
  readonly browser?: BrowserDriver | undefined;
  /** Where the workspace is that of a sandbox: `search` then is a grep in there. */
  readonly sandbox?: ToolSandbox | undefined;
}
