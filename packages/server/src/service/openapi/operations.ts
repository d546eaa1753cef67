import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { bytesMediaType, type Exchange, parameterMessage } from "../rest/exchange.ts";
import { hasOwnJsonForm, isTextMessage } from "../rest/fields.ts";
import type { Route } from "../rest/routes.ts";
import { curlExample } from "./curl.ts";
import type { Content, Operation, Parameter } from "./document.ts";
import { described, type Schemas } from "./schemas.ts";

export function operationOf(route: Route, schemas: Schemas): Operation {
  const { method } = route.exchange;
  const fullName = `${method.parent.typeName}.${method.name}`;
  const requestBody = requestBodyOf(route, schemas);
  return {
    operationId: `${method.parent.name}_${method.name}`,
    tags: [method.parent.name],
    summary: method.name,
    ...described(fullName),
    parameters: [...pathParameters(route, schemas), ...queryParameters(route, schemas)],
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: {
      "200": { description: "It was done.", content: responseContent(route.exchange, schemas) },
      default: { $ref: "#/components/responses/Error" },
    },
    "x-grpc-method": `${method.parent.typeName}/${method.name}`,
    "x-curl": curlExample(route),
  };
}

/** The route's template as OpenAPI writes one. */
export function openApiPath(template: string): string {
  return template.replaceAll(/\{([^=}]+)=\*{1,2}\}/g, "{$1}");
}

function pathParameters(route: Route, schemas: Schemas): readonly Parameter[] {
  return route.segments.flatMap((segment): Parameter[] => {
    const field = segment.kind === "literal" ? undefined : route.parameters.get(segment.field)?.at(-1);
    if (segment.kind === "literal" || field === undefined) {
      return [];
    }
    return [
      {
        name: segment.field,
        in: "path",
        required: true,
        ...described(`${field.parent.typeName}.${field.name}`),
        schema: withoutDescription(schemas.field(field)),
        ...(segment.kind === "rest" ? { "x-many-segments": true as const } : {}),
      },
    ];
  });
}

function queryParameters(route: Route, schemas: Schemas): readonly Parameter[] {
  if (route.body.kind === "whole") {
    return [];
  }
  const inPath = new Set([...route.parameters.values()].map((fields) => fields.map((field) => field.name).join(".")));
  const inBody = route.body.kind === "field" ? route.body.field : undefined;
  return queryFields(parameterMessage(route.exchange), "", [])
    .filter(({ name, field }) => !inPath.has(name) && field !== inBody)
    .map(({ name, field }) => ({
      name,
      in: "query",
      required: false,
      ...described(`${field.parent.typeName}.${field.name}`),
      schema: withoutDescription(schemas.field(field)),
      ...(field.fieldKind === "map" ? { style: "deepObject" as const, explode: true } : {}),
    }));
}

/** Every field that a query can set, those of inner messages as `outer.inner`. */
function queryFields(
  message: DescMessage,
  prefix: string,
  above: readonly DescMessage[],
): readonly { readonly name: string; readonly field: DescField }[] {
  return message.fields.flatMap((field) => {
    const name = `${prefix}${field.name}`;
    if (field.message === undefined || isTextMessage(field.message)) {
      return [{ name, field }];
    }
    const inner = field.message;
    return field.fieldKind === "message" && !hasOwnJsonForm(inner) && !above.includes(inner)
      ? queryFields(inner, `${name}.`, [...above, message])
      : [];
  });
}

function requestBodyOf(route: Route, schemas: Schemas): Operation["requestBody"] {
  const { exchange, body } = route;
  if (exchange.kind === "upload") {
    const mediaType = bytesMediaType(route.template);
    return { required: true, content: { [mediaType]: { schema: { contentMediaType: mediaType } } } };
  }
  if (exchange.kind === "lines") {
    return {
      required: true,
      description: "One JSON message a line.",
      content: { "application/x-ndjson": { schema: schemas.message(exchange.method.input) } },
    };
  }
  switch (body.kind) {
    case "none":
      return undefined;
    case "whole":
      return { required: true, content: { "application/json": { schema: schemas.message(exchange.method.input) } } };
    case "field":
      return { required: true, content: { "application/json": { schema: schemas.field(body.field) } } };
  }
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

function withoutDescription({ description: _, ...schema }: ReturnType<Schemas["field"]>): Parameter["schema"] {
  return schema;
}
