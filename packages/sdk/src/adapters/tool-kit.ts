// For whoever makes tools for models; not for who uses them.

export { Turns } from "../turns.ts";
export { boundary, clip, keepEnds, keepLines } from "./tools/bounds.ts";
export { FILE_TOOLS, outputText, SHELL } from "./tools/family.ts";
export type { ToolEntry, ToolFiles } from "./tools/files.ts";
export {
  type AcceptedCall,
  declareTool,
  inContext,
  type RiskLevel,
  type Tool,
  type ToolDeclaration,
  type ToolEffects,
  ToolFailure,
  type ToolHandler,
  type ToolImage,
  type ToolResult,
  type ToolSchema,
} from "./tools/tool.ts";
