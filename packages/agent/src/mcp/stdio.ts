import type { Readable, Writable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { serverFor } from "./server.ts";
import { type McpSourceOptions, mcpSource } from "./source.ts";

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
