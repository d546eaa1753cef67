import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { type Route, routesOf } from "../rest/routes.ts";
import type { GrpcMethod, OpenApiDocument, Operation, Response, Schema } from "./document.ts";
import { openApiPath, operationOf } from "./operations.ts";
import { described, Schemas, schemaName } from "./schemas.ts";

const DESCRIPTION = [
  "Guarded environments for programs that nobody has read: codebases, sandboxes on them, commands and sessions in sandboxes.",
  "JSON follows protobuf's rules: keys in camelCase (snake_case is accepted too), 64-bit integers as strings, durations as",
  "seconds with an s, every field present in answers. Unknown keys of requests are ignored; unknown enum names are refused.",
  "Maps in a query are written as labels[key]=value. Streams of messages are server-sent events (message, error, end), or",
  "one JSON message a line for a client that accepts application/x-ndjson.",
].join(" ");

/** The services as OpenAPI 3.1, from the descriptors that the REST handler itself is driven by. */
export function openApiDocument(
  services: readonly DescService[],
  about: { readonly version: string },
): OpenApiDocument {
  const schemas = new Schemas();
  const routes = routesOf(services);
  return {
    openapi: "3.1.0",
    info: { title: "AgentFense", version: about.version, description: DESCRIPTION },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: services.map((service) => ({
      name: service.name,
      ...described(service.typeName),
      "x-grpc-only": service.methods.filter((method) => !hasRoute(routes, method)).map(grpcMethod),
    })),
    paths: pathsOf(routes, schemas),
    components: {
      schemas: { ...schemas.all(), Status: STATUS },
      responses: { Error: ERROR },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key, where the server requires one." },
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "The same key, for clients without Authorization.",
        },
      },
    },
  };
}

function pathsOf(routes: readonly Route[], schemas: Schemas): OpenApiDocument["paths"] {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    const path = openApiPath(route.template);
    paths[path] = { ...paths[path], [route.httpMethod.toLowerCase()]: operationOf(route, schemas) };
  }
  return paths;
}

function hasRoute(routes: readonly Route[], method: DescMethod): boolean {
  return routes.some((route) => route.exchange.method === method);
}

function grpcMethod(method: DescMethod): GrpcMethod {
  const streams = (streaming: boolean, name: string) => (streaming ? `stream ${name}` : name);
  return {
    method: `${method.parent.typeName}/${method.name}`,
    ...described(`${method.parent.typeName}.${method.name}`),
    request: streams(method.proto.clientStreaming, schemaName(method.input)),
    response: streams(method.proto.serverStreaming, schemaName(method.output)),
  };
}

const STATUS: Schema = {
  type: "object",
  description:
    "google.rpc.Status. The details hold a google.rpc.ErrorInfo whose reason says in one word what happened, and whose metadata has its facts.",
  properties: {
    code: { type: "integer", format: "int32", description: "The gRPC status." },
    message: { type: "string" },
    details: {
      type: "array",
      items: { type: "object", properties: { "@type": { type: "string" } }, additionalProperties: true },
    },
  },
};

const ERROR: Response = {
  description: "It was not done. The HTTP status follows the gRPC status in the body.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Status" } } },
};
