export {
  type SandboxTool,
  sandboxTools,
  type ToolInputSchema,
  type ToolName,
  type ToolOptions,
  type ToolOutput,
  type ToolPropertySchema,
  type ToolRequest,
  type ToolSandbox,
} from "@agentfense/sdk/tools";
