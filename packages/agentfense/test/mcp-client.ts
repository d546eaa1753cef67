import { once } from "node:events";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { onTestFinished } from "vitest";
import { type Surroundings, start } from "./run-cli.ts";

/** What a client and the process it started have to do with each other. */
export interface McpProcess {
  readonly client: Client;
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** Closes its input, if that is still open, and gives how it ended. */
  end(): Promise<{ readonly code: number | null; readonly stderr: string }>;
}

/** Starts the real command line as an MCP server and connects the official client to it; ends it with the test. */
export async function startMcp(args: readonly string[], surroundings: Surroundings): Promise<McpProcess> {
  const child = start(["mcp", ...args], { ...surroundings, holdsInput: true });
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  const stderr = text(child.stderr!);
  onTestFinished(async () => {
    child.stdin?.end();
    await exited;
  });
  const client = new Client({ name: "test", version: "1" });
  // Of the two transports, it is the one that takes streams; the protocol is the same both ways.
  await client.connect(new StdioServerTransport(child.stdout!, child.stdin!) as Parameters<Client["connect"]>[0]);
  return {
    client,
    pid: child.pid!,
    kill: (signal) => void child.kill(signal),
    end: async () => {
      child.stdin?.end();
      const [code] = await exited;
      return { code, stderr: await stderr };
    },
  };
}

/** What a tool said to a client. */
export async function call(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) {
  const options = { timeout: 120_000, ...(signal && { signal }) };
  const result = await client.callTool({ name, arguments: { ...args } }, undefined, options);
  const [first, ...more] = result.content as { readonly type: string; readonly text?: string }[];
  return { text: first?.text ?? "", isError: result.isError === true, more };
}

export async function read(client: Client, uri: string): Promise<string> {
  const [content] = (await client.readResource({ uri })).contents;
  return (content as { readonly text: string }).text;
}
