import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, type ElicitResult, LATEST_PROTOCOL_VERSION } from "@modelcontextprotocol/sdk/types.js";
import { onTestFinished } from "vitest";
import { type McpHttpHandler, type McpHttpOptions, mcpHttpHandler } from "../../src/mcp/http.ts";

export const KEY = "k-made-up";
const URL_OF_HANDLER = "http://127.0.0.1:9/mcp";

/** The first message of every session. */
export const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: LATEST_PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

/** A handler that ends with the test. */
export function handlerFor(options: Omit<McpHttpOptions, "apiKey">): McpHttpHandler {
  const handler = mcpHttpHandler({ ...options, apiKey: KEY } as McpHttpOptions);
  onTestFinished(() => handler[Symbol.asyncDispose]());
  return handler;
}

/** The request that a socket would bring. */
export function request({
  headers: given = {},
  ...init
}: Omit<RequestInit, "headers"> & { readonly headers?: Readonly<Record<string, string>> } = {}): Request {
  const headers = {
    host: "127.0.0.1:9",
    authorization: `Bearer ${KEY}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    ...given,
  };
  return new Request(URL_OF_HANDLER, { method: "POST", ...init, headers: withHost(headers) });
}

/** `Request` lets nobody set `Host` from a page, but here it does. */
function withHost(headers: Readonly<Record<string, string>>): Headers {
  return new Headers(Object.entries(headers).filter(([, value]) => value !== ""));
}

export interface ClientOptions {
  /** How its user answers when he is asked; absent: the client cannot ask. */
  readonly onElicit?: (message: string) => ElicitResult | Promise<ElicitResult>;
}

/** The official client, connected to a handler without a socket between them. */
export async function connect(handler: McpHttpHandler, { onElicit }: ClientOptions = {}): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    onElicit === undefined ? {} : { capabilities: { elicitation: { form: {} } } },
  );
  if (onElicit !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => onElicit(params.message));
  }
  const transport = new StreamableHTTPClientTransport(new URL(URL_OF_HANDLER), {
    fetch: async (_url, init = {}) => {
      const headers = Object.fromEntries(new Headers(init.headers as Record<string, string>));
      return await handler(request({ ...(init as RequestInit), headers }));
    },
  });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  onTestFinished(() => client.close());
  return client;
}

/** What a tool said to a client. */
export async function call(client: Client, name: string, args: Record<string, unknown>, signal?: AbortSignal) {
  const result = await client.callTool({ name, arguments: args }, undefined, { ...(signal && { signal }) });
  const [first, ...rest] = result.content as { readonly type: string; readonly text?: string }[];
  return { text: first?.text ?? "", isError: result.isError === true, rest };
}
