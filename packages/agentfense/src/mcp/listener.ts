import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { CommandFailure } from "../command-failure.ts";
import { warn } from "../output.ts";
import { type HttpPlace, inUrl, isLoopback } from "./request.ts";

const PATH = "/mcp";
const MOST_CONNECTIONS = 512;

type Handler = (request: Request) => Promise<Response>;

/** Serves HTTP until the signal. */
export async function listen(place: HttpPlace, handler: Handler, signal: AbortSignal): Promise<void> {
  const server = createServer((request, response) => {
    answer(request, response, handler).catch(() => response.destroy());
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen(place.port, place.host);
  try {
    await once(server, "listening", { signal });
  } catch (error) {
    server.close();
    if (signal.aborted) return;
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailure(`cannot listen on ${inUrl(place.host)}:${place.port} (${code ?? error})`);
  }
  announce(place, server.address() as AddressInfo);
  if (!signal.aborted) await once(signal, "abort");
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

function announce({ host, key }: HttpPlace, { port }: AddressInfo): void {
  warn(`MCP on http://${inUrl(host)}:${port}${PATH}`);
  if (!isLoopback(host))
    warn("what clients send, the key too, travels unencrypted; let a proxy with TLS stand in front");
  if (key.isRandom) warn(`clients send: Authorization: Bearer ${key.value}`);
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, handler: Handler): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const request = requestOf(incoming, gone.signal);
  const response = request === undefined ? notFound() : await handler(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // An event stream may have nothing to say for long; its client waits for the head.
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body as NodeReadableStream<Uint8Array>), outgoing);
}

/** Undefined for another path, or one that is none. */
function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  const { method = "GET", url = "", headers } = incoming;
  if (url.split("?")[0] !== PATH) return undefined;
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(`http://localhost${PATH}`, {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((each): [string, string] => [name, each]),
    ),
    signal,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" }),
  });
}

function notFound(): Response {
  return new Response(`MCP is at ${PATH}\n`, { status: 404, headers: { "content-type": "text/plain" } });
}
