import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import type { ServiceLog } from "../log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { RestHandler } from "../rest/handler.ts";
import { jsonResponse } from "../rest/responses.ts";
import { isLoopback } from "./address.ts";
import type { Authenticator } from "./authentication.ts";
import { failureResponse } from "./failure-response.ts";
import type { NodeRequest, NodeResponse } from "./listener.ts";
import type { Serving } from "./serving.ts";

export interface PagesOptions {
  readonly serving: Serving;
  readonly authenticator: Authenticator;
  readonly rest: RestHandler;
  /** The contract as an OpenAPI document, in JSON. */
  readonly openApi: string;
  /** Undefined: they are served elsewhere. */
  readonly metrics: Metrics | undefined;
  readonly log: ServiceLog;
}

type Environment = { Bindings: HttpBindings };
type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>;

const NOT_FOUND = { code: 5, message: "Not Found", details: [] };

/** REST, and what people and their tools look at: health, metrics, the contract. */
export function createPages(options: PagesOptions): NodeHandler {
  const { serving, metrics, openApi } = options;
  const app = new Hono<Environment>();
  addHealth(app, serving);
  app.get("/metrics", async (context, next) => {
    // Numbers about the machine are for those who are on it, unless the operator gives them a listener of their own.
    if (metrics === undefined || !isOnThisMachine(remoteAddress(context))) return await next();
    return await metricsResponse(metrics);
  });
  app.get("/openapi.json", () => new Response(openApi, { headers: { "content-type": "application/json" } }));
  // Not a pattern: none matches a path with an encoded line break in it.
  app.notFound(async (context) => await answerRest(context, options));
  return listenerOf(app, options.log);
}

/** The separate listener for those who watch the server: nothing there needs a key, or tells an id or a path. */
export function createMetricsPages(options: {
  readonly serving: Serving;
  readonly metrics: Metrics;
  readonly log: ServiceLog;
}): NodeHandler {
  const app = new Hono<Environment>();
  addHealth(app, options.serving);
  app.get("/metrics", async () => await metricsResponse(options.metrics));
  app.notFound(() => jsonResponse(404, NOT_FOUND));
  return listenerOf(app, options.log);
}

function addHealth(app: Hono<Environment>, serving: Serving): void {
  app.get("/healthz", (context) => context.text("ok\n"));
  app.get("/readyz", (context) => (serving.isReady ? context.text("ready\n") : context.text("not ready\n", 503)));
}

async function metricsResponse(metrics: Metrics): Promise<Response> {
  return new Response(await metrics.text(), { headers: { "content-type": metrics.contentType } });
}

async function answerRest(context: Context<Environment>, options: PagesOptions): Promise<Response> {
  const { raw } = context.req;
  if (context.env.incoming.url?.startsWith("/v1/")) {
    // The call itself asks again; this answer comes before a byte of the body was read.
    try {
      await options.authenticator.identify(raw.headers);
    } catch (error) {
      return failureResponse(error, { log: options.log, signal: raw.signal });
    }
  }
  const request = withRawTarget(raw, context.env.incoming);
  return (await options.rest(request, { remoteAddress: remoteAddress(context) })) ?? jsonResponse(404, NOT_FOUND);
}

/** The target as the client wrote it: a URL object has already resolved the `..` that a path may not contain. */
function withRawTarget(request: Request, incoming: NodeRequest): Request {
  const target = incoming.url ?? "/";
  return Object.defineProperty(request, "url", { value: `http://${incoming.headers.host ?? "localhost"}${target}` });
}

/** Who comes over a Unix socket has no address, nor has who left already. */
function isOnThisMachine(address: string): boolean {
  return address === "" || isLoopback(address);
}

function remoteAddress(context: Context<Environment>): string {
  return context.env.incoming.socket.remoteAddress ?? "";
}

function listenerOf(app: Hono<Environment>, log: ServiceLog): NodeHandler {
  app.onError((error) => {
    log({ level: "error", message: "a request failed", error });
    return jsonResponse(500, { code: 13, message: "internal error", details: [] });
  });
  // The global Request and Response stay what they are: a library does not change them for everybody.
  return getRequestListener((request, env) => app.fetch(request, env), { overrideGlobalObjects: false });
}
