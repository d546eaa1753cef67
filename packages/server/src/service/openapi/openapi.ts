import type { DescField, DescMethod, DescService } from "@bufbuild/protobuf";
import { isTextMessage } from "../rest/fields.ts";
import { bytesMediaType, type Exchange, parameterMessage, type Route, routesOf } from "../rest/routes.ts";
import { described, type Schema, Schemas, schemaName } from "./schemas.ts";

const DESCRIPTION = [
  "Guarded environments for programs that nobody has read: codebases, sandboxes on them, commands and sessions in sandboxes.",
  "JSON follows protobuf's rules: keys in camelCase (snake_case is accepted too), 64-bit integers as strings, durations as",
  "seconds with an s, every field present in answers. Unknown keys of requests are ignored; unknown enum names are refused.",
  "Maps in a query are written as labels[key]=value. Streams of messages are server-sent events (message, error, end), or",
  "one JSON message a line for a client that accepts application/x-ndjson.",
].join(" ");

type Operation = ReturnType<typeof operationOf>;
type Content = Record<string, { readonly schema: Schema }>;

/** The services as OpenAPI 3.1, from the descriptors that the REST handler itself is driven by. */
export function openApiDocument(services: readonly DescService[], about: { readonly version: string }) {
  const schemas = new Schemas();
  const routes = routesOf(services);
  const routed = new Set(routes.map((route): DescMethod => route.exchange.method));
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    const path = route.template.replaceAll(/\{([^=}]+)=\*{1,2}\}/g, "{$1}");
    paths[path] = { ...paths[path], [route.httpMethod.toLowerCase()]: operationOf(route, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "AgentFense", version: about.version, description: DESCRIPTION },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: services.map((service) => ({
      name: service.name,
      ...described(service.typeName),
      // HTTP cannot carry these.
      "x-grpc-only": service.methods.filter((method) => !routed.has(method)).map(grpcMethod),
    })),
    paths,
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

function grpcMethod(method: DescMethod) {
  const streams = (streaming: boolean, name: string) => (streaming ? `stream ${name}` : name);
  return {
    method: `${method.parent.typeName}/${method.name}`,
    ...described(`${method.parent.typeName}.${method.name}`),
    request: streams(method.proto.clientStreaming, schemaName(method.input)),
    response: streams(method.proto.serverStreaming, schemaName(method.output)),
  };
}

function operationOf(route: Route, schemas: Schemas) {
  const { method } = route.exchange;
  const requestBody = requestBodyOf(route, schemas);
  return {
    operationId: `${method.parent.name}_${method.name}`,
    tags: [method.parent.name],
    summary: method.name,
    ...described(`${method.parent.typeName}.${method.name}`),
    parameters: [...pathParameters(route, schemas), ...queryParameters(route, schemas)],
    ...(requestBody === undefined ? {} : { requestBody: { required: true, ...requestBody } }),
    responses: {
      "200": { description: "It was done.", content: responseContent(route.exchange, schemas) },
      default: { $ref: "#/components/responses/Error" },
    },
    "x-grpc-method": `${method.parent.typeName}/${method.name}`,
  };
}

function pathParameters(route: Route, schemas: Schemas) {
  return route.segments.flatMap((segment) => {
    const field = segment.kind === "literal" ? undefined : route.parameters.get(segment.field);
    if (segment.kind === "literal" || field === undefined) return [];
    // It may contain slashes, which need not be encoded.
    const many = segment.kind === "rest" ? { "x-many-segments": true } : {};
    return [{ name: segment.field, in: "path", required: true, ...fieldMembers(field, schemas), ...many }];
  });
}

function queryParameters(route: Route, schemas: Schemas) {
  if (route.hasJsonBody) return [];
  const inPath = new Set(route.parameters.values());
  return parameterMessage(route.exchange)
    .fields.filter((field) => !inPath.has(field) && (field.message === undefined || isTextMessage(field.message)))
    .map((field) => ({
      name: field.name,
      in: "query",
      required: false,
      ...fieldMembers(field, schemas),
      ...(field.fieldKind === "map" ? { style: "deepObject", explode: true } : {}),
    }));
}

/** A parameter is described beside its schema, not in it. */
function fieldMembers(field: DescField, schemas: Schemas) {
  const { description: _, ...schema } = schemas.field(field);
  return { ...described(`${field.parent.typeName}.${field.name}`), schema };
}

function requestBodyOf({ exchange, hasJsonBody, template }: Route, schemas: Schemas) {
  const { input } = exchange.method;
  if (exchange.kind === "upload") {
    const mediaType = bytesMediaType(template);
    return { content: { [mediaType]: { schema: { contentMediaType: mediaType } } } };
  }
  if (exchange.kind === "lines") {
    const content: Content = { "application/x-ndjson": { schema: schemas.message(input) } };
    return { description: "One JSON message a line.", content };
  }
  return hasJsonBody ? { content: { "application/json": { schema: schemas.message(input) } } } : undefined;
}

function responseContent(exchange: Exchange, schemas: Schemas): Content {
  if (exchange.kind === "download") {
    return { [exchange.mediaType]: { schema: { contentMediaType: exchange.mediaType } } };
  }
  const schema = schemas.message(exchange.method.output);
  return exchange.kind === "events"
    ? { "text/event-stream": { schema }, "application/x-ndjson": { schema } }
    : { "application/json": { schema } };
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

const ERROR = {
  description: "It was not done. The HTTP status follows the gRPC status in the body.",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Status" } } },
};
