import { file_google_rpc_error_details } from "@agentfense/protocol/error-details";
import { createRegistry, type DescFile, type DescService, type Registry } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { BodyLimits } from "./body.ts";
import { type Call, callHeaders } from "./call.ts";
import { answerDownload } from "./download.ts";
import { answerEvents } from "./events.ts";
import { answerLines } from "./lines.ts";
import { requestMessage } from "./request-message.ts";
import { messageJson } from "./response-json.ts";
import { jsonResponse, withoutBody } from "./responses.ts";
import { type Place, RouteTable } from "./route-table.ts";
import { type HttpMethod, routesOf } from "./routes.ts";
import { failureOf, METHOD_NOT_ALLOWED } from "./status.ts";
import { answerUpload } from "./upload.ts";

export interface RestOptions {
  readonly services: readonly DescService[];
  /** In memory, with the interceptors that every call passes: who asks is decided there. */
  readonly transport: Transport;
  readonly limits: BodyLimits;
  /** So long a stream of events may be silent; 15 seconds unless given. */
  readonly heartbeatMs?: number;
  readonly log: (line: RestLogLine) => void;
}

/** Something that went wrong on our side; the client was told only that. */
export type RestLogLine = {
  readonly level: "error";
  readonly message: string;
  readonly method: string;
  readonly remoteAddress: string;
  readonly error: unknown;
};

/** Answers a request whose path is one of the services'; undefined for any other. Never rejects. */
export type RestHandler = (request: Request, info: { readonly remoteAddress: string }) => Promise<Response | undefined>;

/** The services over plain HTTP and JSON, as their methods' `google.api.http` options say. */
export function createRestHandler(options: RestOptions): RestHandler {
  const table = new RouteTable(routesOf(options.services));
  const registry = errorTypes(options.services);

  return async (request, info) => {
    const { path, query } = splitTarget(request.url);
    const place = table.find(path);
    if (place === undefined) {
      return undefined;
    }
    if (request.method === "OPTIONS") {
      return new Response(null, { status: 204, headers: { Allow: allowed(place) } });
    }
    let name = path;
    const reportDefect = (error: unknown) => {
      if (failureOf(error, registry).defect) {
        options.log({
          level: "error",
          message: "a REST request failed",
          method: name,
          remoteAddress: info.remoteAddress,
          error,
        });
      }
    };
    try {
      const head = request.method === "HEAD";
      const found = place.route((head ? "GET" : request.method) as HttpMethod);
      // A stream of events has no length and may have no end: there is nothing to say about it without a body.
      if (found === undefined || (head && found.route.exchange.kind === "events")) {
        return jsonResponse(501, METHOD_NOT_ALLOWED, { Allow: allowed(place) });
      }
      const { method } = found.route.exchange;
      name = `${method.parent.typeName}/${method.name}`;
      const response = await answer({
        route: found.route,
        request,
        pathValues: found.values,
        query,
        transport: options.transport,
        limits: options.limits,
        registry,
        signal: request.signal,
        headers: callHeaders(request),
        heartbeatMs: options.heartbeatMs ?? 15_000,
        reportDefect,
      });
      return head ? await withoutBody(response) : response;
    } catch (error) {
      reportDefect(error);
      const failure = failureOf(error, registry);
      const response = jsonResponse(failure.httpStatus, failure.body, failure.headers);
      return request.method === "HEAD" ? withoutBody(response) : response;
    }
  };
}

async function answer(call: Call): Promise<Response> {
  const { exchange } = call.route;
  switch (exchange.kind) {
    case "unary": {
      const input = await requestMessage(call);
      const { method } = exchange;
      const response = await call.transport.unary(method, call.signal, undefined, call.headers, input);
      return jsonResponse(200, messageJson(method.output, response.message, call.registry));
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

/** The raw path: a URL object would resolve `..` and turn backslashes, and the method could not refuse them. */
function splitTarget(url: string): { readonly path: string; readonly query: string } {
  const authority = url.indexOf("://");
  const begin = authority < 0 ? 0 : url.indexOf("/", authority + 3);
  const target = (begin < 0 ? "/" : url.slice(begin)).split("#", 1)[0] ?? "/";
  const question = target.indexOf("?");
  return question < 0
    ? { path: target, query: "" }
    : { path: target.slice(0, question), query: target.slice(question + 1) };
}

function allowed(place: Place): string {
  const methods = [...place.methods];
  return [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ");
}

/** Every message that an error can have in its details. */
function errorTypes(services: readonly DescService[]): Registry {
  const files = new Set<DescFile>([file_google_rpc_error_details]);
  const add = (file: DescFile): void => {
    if (!files.has(file)) {
      files.add(file);
      file.dependencies.forEach(add);
    }
  };
  services.forEach((service) => {
    add(service.file);
  });
  return createRegistry(...files);
}
