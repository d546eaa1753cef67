import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CodebaseService } from "@agentfense/protocol/codebase";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { type ConnectRouter, createRouterTransport, type HandlerContext, type Transport } from "@connectrpc/connect";
import { getRequestListener } from "@hono/node-server";
import type { LogLine } from "../../../src/runtime/log.ts";
import { createRestHandler, type RestHandler } from "../../../src/service/rest/handler.ts";

export const SERVICES: readonly DescService[] = [CodebaseService, SandboxService, EventService, SystemService];

/** What a test's method does. Unary and server-streaming methods get one message, the others a stream of them. */
export type Implementation = (input: Message | AsyncIterable<Message>, context: HandlerContext) => unknown;

/** A transport to services whose every method is decided by the test. */
export function transportTo(implement: (method: DescMethod) => Implementation): Transport {
  return createRouterTransport((router: ConnectRouter) => {
    for (const service of SERVICES) {
      const methods = Object.fromEntries(service.methods.map((method) => [method.localName, implement(method)]));
      router.service(service, methods as never);
    }
  });
}

export interface Rest {
  readonly handler: RestHandler;
  readonly logged: LogLine[];
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Status and JSON body. */
  json(path: string, init?: RequestInit): Promise<{ status: number; body: unknown; headers: Headers }>;
}

export const LIMITS = { bodyBytes: 64 * 1024, uploadIdleMs: 2_000 };

/** The REST handler before methods of the test, without a network. */
export function restTo(implement: (method: DescMethod) => Implementation): Rest {
  const logged: LogLine[] = [];
  const handler = createRestHandler({
    services: SERVICES,
    transport: transportTo(implement),
    limits: LIMITS,
    heartbeatMs: 300,
    log: (line) => logged.push(line),
  });
  const send = async (path: string, init?: RequestInit) => {
    const response = await handler(new Request(`http://localhost${path}`, init), path);
    if (response === undefined) {
      throw new Error(`${path} is not ours`);
    }
    return response;
  };
  return {
    handler,
    logged,
    fetch: send,
    async json(path, init) {
      const response = await send(path, init);
      return { status: response.status, body: await response.json(), headers: response.headers };
    },
  };
}

/** One method by its name; every other one fails the test. */
export function only(name: string, implementation: Implementation): (method: DescMethod) => Implementation {
  return (method) =>
    method.name === name
      ? implementation
      : () => {
          throw new Error(`${method.name} was not to be called`);
        };
}

/** The REST handler on a real port. */
export async function serve(handler: RestHandler): Promise<{ url: string; port: number } & AsyncDisposable> {
  const server: Server = createServer(
    getRequestListener(
      async (request) =>
        (await handler(request, request.url.replace(/^http:\/\/[^/]*/, ""))) ??
        new Response("not found", { status: 404 }),
      {
        overrideGlobalObjects: false,
      },
    ) as never,
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
