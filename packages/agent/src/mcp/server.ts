import type { Readable, Writable } from "node:stream";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import manifest from "../../package.json" with { type: "json" };
import { answerResources } from "./resources.ts";
import { type ChangesReachProject, type McpSource, type McpSourceOptions, mcpSource } from "./source.ts";
import { answerTools } from "./tools.ts";

const WHERE_CHANGES_GO: Readonly<Record<ChangesReachProject, string>> = {
  "when-taken-over": "What is changed stays apart from the real project until its owner takes it over",
  "with-each-call": "What is changed is written to the real project with each call, as far as its rules allow",
  "at-the-end": "What is changed is written to the real project when this connection ends, as far as its rules allow",
};

function instructions({ sandbox, changesReachProject }: McpSource): string {
  return (
    "These tools work in a sandbox. The project is at /workspace there, as far as its rules show it: files that seem to be " +
    `missing may be hidden on purpose. ${WHERE_CHANGES_GO[changesReachProject]}` +
    (sandbox === undefined ? "." : "; agentfense://changes lists what is not there yet.")
  );
}

/** An MCP server for one client: connect it to a transport. */
export function createMcpServer(options: McpSourceOptions): McpServer {
  return serverFor(mcpSource(options));
}

/** A server on what others may be serving too. */
export function serverFor(source: McpSource): McpServer {
  const server = new McpServer(
    { name: "agentfense", title: "AgentFense", version: manifest.version },
    { instructions: instructions(source), capabilities: { tools: {}, resources: {} } },
  );
  answerTools(server, source);
  answerResources(server, source);
  return server;
}

export interface StdioOptions {
  /** Default: the process's standard input. */
  readonly input?: Readable | undefined;
  /** Default: the process's standard output. Nothing else may be written there. */
  readonly output?: Writable | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Serves one client over standard input and output. Ends when the client does, in whatever way, or with the signal; what was
 * still being done is given up then.
 */
export async function serveStdio(options: McpSourceOptions & StdioOptions): Promise<void> {
  const { input = process.stdin, output = process.stdout, signal } = options;
  const server = serverFor(mcpSource(options));
  const ended = Promise.withResolvers<void>();
  const end = (): void => ended.resolve();
  server.server.onclose = end;
  for (const event of ["end", "close", "error"]) input.once(event, end);
  output.on("error", end);
  signal?.addEventListener("abort", end, { once: true });
  try {
    if (signal?.aborted || input.destroyed || input.readableEnded) return;
    await server.connect(new StdioServerTransport(input, output));
    await ended.promise;
  } finally {
    signal?.removeEventListener("abort", end);
    for (const event of ["end", "close", "error"]) input.off(event, end);
    await server.close();
  }
}
