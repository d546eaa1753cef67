import type { DescService } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { Log } from "../../runtime/log.ts";
import type { ErrorPlace } from "../rpc/connect-error.ts";
import type { BodyLimits } from "./body.ts";
import { answerLines, answerUpload } from "./client-streams.ts";
import { failureResponse, statusBody } from "./failure-response.ts";
import { requestMessage } from "./request-message.ts";
import { jsonResponse, messageJson, withoutBody } from "./responses.ts";
import { type PathRoutes, RouteTable } from "./route-table.ts";
import { type Exchange, type HttpMethod, type Route, routesOf } from "./routes.ts";
import { answerDownload, answerEvents } from "./server-streams.ts";

export interface RestOptions {
  readonly services: readonly DescService[];
  /** In memory, with the interceptors that every call passes: who asks is decided there. */
  readonly transport: Transport;
  readonly limits: BodyLimits;
  /** So long a stream of events may be silent; 15 seconds unless given. */
  readonly heartbeatMs?: number;
  readonly log: Log;
}

/** One HTTP request on its way to a method. Its signal aborts when the client goes. */
export interface Call extends Pick<RestOptions, "transport" | "limits"> {
  readonly route: Route;
  readonly request: Request;
  readonly pathValues: ReadonlyMap<string, string>;
  /** Without the question mark. */
  readonly query: string;
  readonly headers: Headers;
  readonly heartbeatMs: number;
  /** For errors that the client is told only the reference of. */
  readonly place: ErrorPlace;
}

export type ExchangeOf<Kind extends Exchange["kind"]> = Extract<Exchange, { kind: Kind }>;

/**
 * Answers a request whose path is one of the services'; undefined for any other. Never rejects. The target is as the client wrote
 * it: a URL object has resolved `..` and turned backslashes, and the method could not refuse them.
 */
export type RestHandler = (request: Request, target: string) => Promise<Response | undefined>;

/** The services over plain HTTP and JSON, as their methods' `google.api.http` options say. */
export function createRestHandler(options: RestOptions): RestHandler {
  const table = new RouteTable(routesOf(options.services));
  const { transport, limits, log, heartbeatMs = 15_000 } = options;

  return async (request, target) => {
    const [, path = "", query = ""] = /^([^?#]*)(?:\?([^#]*))?/.exec(target) ?? [];
    const found = table.find(path);
    if (found === undefined) return undefined;
    if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: { Allow: allowed(found) } });
    const isHead = request.method === "HEAD";
    const respond = async (): Promise<Response> => {
      let place: ErrorPlace = { log, method: path, signal: request.signal };
      try {
        const chosen = found.route((isHead ? "GET" : request.method) as HttpMethod);
        // A stream of events has no length and may have no end: there is nothing to say about it without a body.
        if (chosen === undefined || (isHead && chosen.route.exchange.kind === "events")) {
          return jsonResponse(501, statusBody("UNIMPLEMENTED", "Method Not Allowed"), { Allow: allowed(found) });
        }
        const { route, values: pathValues } = chosen;
        const { method } = route.exchange;
        place = { ...place, method: `${method.parent.typeName}.${method.name}` };
        const headers = callHeaders(request);
        return await answer({ route, request, pathValues, query, transport, limits, headers, heartbeatMs, place });
      } catch (error) {
        return failureResponse(error, place);
      }
    };
    return isHead ? await withoutBody(await respond()) : await respond();
  };
}

async function answer(call: Call): Promise<Response> {
  const { exchange } = call.route;
  switch (exchange.kind) {
    case "unary": {
      const input = await requestMessage(call);
      const { method } = exchange;
      const response = await call.transport.unary(method, call.request.signal, undefined, call.headers, input);
      return jsonResponse(200, messageJson(method.output, response.message));
    }
    case "download":
      return answerDownload(call, exchange);
    case "events":
      return answerEvents(call, exchange);
    case "upload":
      return answerUpload(call, exchange);
    case "lines":
      return answerLines(call, exchange);
  }
}

const PASSED_HEADERS = ["authorization", "x-api-key", "user-agent", "traceparent", "tracestate", "x-request-id"];

/** What of the HTTP headers goes on with the call: who asks and which trace it belongs to, nothing else. */
function callHeaders({ headers }: Request): Headers {
  return new Headers(PASSED_HEADERS.filter((name) => headers.has(name)).map((name) => [name, headers.get(name) ?? ""]));
}

function allowed(place: PathRoutes): string {
  const methods = [...place.methods];
  return [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");
}
