import type { Log } from "../../runtime/log.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { statusBody } from "../rest/failure-response.ts";
import type { RestHandler } from "../rest/handler.ts";
import { jsonResponse, withoutBody } from "../rest/responses.ts";
import { isLoopback } from "./address.ts";
import type { Authenticator } from "./authentication.ts";
import type { NodeRequest } from "./listener.ts";
import type { Serving } from "./serving.ts";
import { webListener } from "./web.ts";

export interface PagesOptions {
  readonly serving: Serving;
  readonly authenticator: Authenticator;
  readonly rest: RestHandler;
  /** The contract as an OpenAPI document, in JSON. */
  readonly openApi: string;
  /** Undefined: they are served elsewhere. */
  readonly metrics: Metrics | undefined;
  readonly log: Log;
}

/** What GET answers at a path; undefined: there is nothing for who asks. */
type Pages = Readonly<Record<string, (incoming: NodeRequest) => Response | undefined | Promise<Response>>>;

/** REST, and what people and their tools look at: health, metrics, the contract. */
export function createPages({ serving, authenticator, rest, openApi, metrics, log }: PagesOptions) {
  const pages: Pages = {
    ...healthPages(serving),
    // Numbers about the machine are for those who are on it, unless the operator gives them a listener of their own.
    "/metrics": ({ socket }) =>
      metrics !== undefined && isOnThisMachine(socket.remoteAddress) ? metricsPage(metrics) : undefined,
    "/openapi.json": () => new Response(openApi, { headers: { "content-type": "application/json" } }),
  };
  return webListener(log, async (request, incoming) => {
    const page = await pageAt(pages, request, incoming);
    if (page !== undefined) return page;
    // The call itself asks again; this answer comes before a byte of the body was read.
    if (incoming.url?.startsWith("/v1/")) await authenticator.identify(request.headers);
    return (await rest(request, incoming.url ?? "/")) ?? notFound();
  });
}

/** The separate listener for those who watch the server: nothing there needs a key, or tells an id or a path. */
export function createMetricsPages({ serving, metrics, log }: { serving: Serving; metrics: Metrics; log: Log }) {
  const pages: Pages = { ...healthPages(serving), "/metrics": () => metricsPage(metrics) };
  return webListener(log, async (request, incoming) => (await pageAt(pages, request, incoming)) ?? notFound());
}

async function pageAt(pages: Pages, request: Request, incoming: NodeRequest): Promise<Response | undefined> {
  const path = incoming.url?.split("?", 1)[0] ?? "";
  if ((request.method !== "GET" && request.method !== "HEAD") || !Object.hasOwn(pages, path)) return undefined;
  const page = await pages[path]?.(incoming);
  return page !== undefined && request.method === "HEAD" ? await withoutBody(page) : page;
}

function healthPages(serving: Serving): Pages {
  return {
    "/healthz": () => new Response("ok\n"),
    "/readyz": () => (serving.isReady ? new Response("ready\n") : new Response("not ready\n", { status: 503 })),
  };
}

async function metricsPage(metrics: Metrics): Promise<Response> {
  return new Response(await metrics.text(), { headers: { "content-type": metrics.contentType } });
}

function notFound(): Response {
  return jsonResponse(404, statusBody("NOT_FOUND", "Not Found"));
}

/** Who comes over a Unix socket has no address, nor has who left already. */
function isOnThisMachine(address: string | undefined): boolean {
  return address === undefined || isLoopback(address);
}
