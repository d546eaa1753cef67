import * as kit from "@agentfense/sdk/tool-kit";
import type { z } from "zod";
import type { BrowserContext } from "../browser/result.ts";
import type { WorldParts } from "./parts.ts";

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
