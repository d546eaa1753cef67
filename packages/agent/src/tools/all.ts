import { BROWSER_TOOLS } from "./browser.ts";
import { runCode, shell } from "./code.ts";
import { WORKSPACE_TOOLS } from "./files.ts";
import type { Tool } from "./tool.ts";

/** Every tool there is. */
export const TOOLS: readonly Tool[] = [runCode, shell, ...WORKSPACE_TOOLS, ...BROWSER_TOOLS];
