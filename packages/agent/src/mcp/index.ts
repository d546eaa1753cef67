// The tools of a world as an MCP server.

export { AgentError } from "../errors.ts";
export { sandboxBrowser } from "./browser.ts";
export { ClientConfirmationService, MCP_APPROVALS, type McpApproval } from "./client-confirmation.ts";
export { type HttpAccess, type McpHttpHandler, type McpHttpOptions, mcpHttpHandler } from "./http.ts";
export { createMcpServer, type StdioOptions, serveStdio } from "./server.ts";
export type { SessionLimits } from "./sessions.ts";
export type { ChangesReachProject, McpSourceOptions, RecordedSandbox } from "./source.ts";
