import type { ToolSandbox } from "@agentfense/sdk/tools";
import type { BrowserActionName } from "../browser/action.ts";
import type { BrowserContext, BrowserResult } from "../browser/result.ts";
import type { ExecutionRequest, ExecutionResult } from "../types.ts";
import type { Workspace } from "../workspace/workspace.ts";

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
