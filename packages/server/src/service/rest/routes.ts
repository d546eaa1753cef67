import { http } from "@agentfense/protocol/annotations";
import type { HttpRule } from "@agentfense/protocol/http";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { fieldNamed, hasOwnJsonForm, isTextMessage, type MessageField } from "./fields.ts";

export type HttpMethod = "GET" | "PUT" | "POST" | "DELETE" | "PATCH";

/** One way to call a method over HTTP. */
export interface Route {
  readonly httpMethod: HttpMethod;
  readonly template: string;
  readonly segments: readonly Segment[];
  /** The fields that the path names. */
  readonly parameters: ReadonlyMap<string, DescField>;
  /** The JSON of a body has all fields but those of the path; where there is none, the query has them. */
  readonly hasJsonBody: boolean;
  readonly exchange: Exchange;
}

/**
 * A part of a path template of `google.api.http`, as far as the contract uses them:
 *
 *     /v1/codebases/{codebase_id}/files/{file_path=**}
 *
 * | segment     | matches                                                                  |
 * | `word`      | itself                                                                   |
 * | `{field}`   | one segment; an empty one too, so that the method can say the id is missing |
 * | `{field=**}` | all that is left, slashes included, at least an empty segment; last only |
 */
export type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "one"; readonly field: string }
  | { readonly kind: "rest"; readonly field: string };

/** How a method's messages travel as HTTP bodies; decided by the shape of the messages, never by the method's name. */
export type Exchange =
  | { readonly kind: "unary"; readonly method: DescMethodUnary }
  /** Answers with nothing but bytes: the bytes are the body. */
  | {
      readonly kind: "download";
      readonly method: DescMethodServerStreaming;
      readonly data: DescField;
      readonly mediaType: string;
    }
  /** Answers with messages: server-sent events, or a line of JSON each. */
  | { readonly kind: "events"; readonly method: DescMethodServerStreaming }
  /** Takes metadata, then bytes: the request's body is the bytes, path and query are the metadata. */
  | {
      readonly kind: "upload";
      readonly method: DescMethodClientStreaming;
      readonly metadata: MessageField;
      readonly data: DescField;
    }
  /** Takes messages: a line of JSON each; the path goes into `opening` of the first one. */
  | { readonly kind: "lines"; readonly method: DescMethodClientStreaming; readonly opening: MessageField };

/** Every route that the services' methods declare with `google.api.http`. */
export function routesOf(services: readonly DescService[]): readonly Route[] {
  return services
    .flatMap((service) => service.methods)
    .filter((method) => hasOption(method, http))
    .map((method) => routeOf(method, getOption(method, http)));
}

/** The message that path and query fill. */
export function parameterMessage(exchange: Exchange): DescMessage {
  switch (exchange.kind) {
    case "upload":
      return exchange.metadata.message;
    case "lines":
      return exchange.opening.message;
    default:
      return exchange.method.input;
  }
}

export function bytesMediaType(template: string): string {
  return template.endsWith("/archive") ? "application/x-tar" : "application/octet-stream";
}

function routeOf(method: DescMethod, rule: HttpRule): Route {
  const name = `${method.parent.typeName}/${method.name}`;
  if (rule.pattern.case === undefined) throw new Error(`${name} has an HTTP rule without a path`);
  if (rule.additionalBindings.length > 0) throw new Error(`${name} has more than one path, which is not supported`);
  const template = rule.pattern.value;
  const segments = parseTemplate(template);
  const exchange = exchangeOf(method, name, template, rule.body);
  const message = parameterMessage(exchange);
  const fields = segments.flatMap((segment) => (segment.kind === "literal" ? [] : [segment.field]));
  const isStream = exchange.kind === "upload" || exchange.kind === "lines";
  if (!isStream && rule.body !== "" && rule.body !== "*") {
    throw new Error(`${name}: a body that is the field ${rule.body} alone is not supported`);
  }
  const hasJsonBody = !isStream && rule.body === "*";
  const unsaid = hasJsonBody
    ? undefined
    : message.fields.find((field) => field.fieldKind === "message" && !isTextMessage(field.message));
  if (unsaid !== undefined) throw new Error(`${name}: ${unsaid.name} does not fit into a query`);
  return {
    httpMethod: rule.pattern.case.toUpperCase() as HttpMethod,
    template,
    segments,
    parameters: new Map(fields.map((field) => [field, pathField(message, field, `${name} ${template}`)])),
    hasJsonBody,
    exchange,
  };
}

const FIELD = /^\{([a-z][a-z0-9_.]*)(=\*\*|=\*)?\}$/;
const LITERAL = /^[A-Za-z0-9._~-]+$/;

function parseTemplate(template: string): readonly Segment[] {
  if (!template.startsWith("/")) throw new Error(`${template} does not begin with a slash`);
  const texts = template.slice(1).split("/");
  return texts.map((text, index) => {
    const [, field, form] = FIELD.exec(text) ?? [];
    if (field !== undefined && form !== "=**") return { kind: "one", field };
    if (field !== undefined && index === texts.length - 1) return { kind: "rest", field };
    if (field !== undefined) throw new Error(`${template}: ** must be the last segment`);
    if (!LITERAL.test(text)) throw new Error(`${template}: the segment ${text} is not supported`);
    return { kind: "literal", text };
  });
}

function exchangeOf(method: DescMethod, name: string, template: string, body: string): Exchange {
  switch (method.methodKind) {
    case "unary":
      return { kind: "unary", method: method as DescMethodUnary };
    case "server_streaming": {
      const streaming = method as DescMethodServerStreaming;
      const [data, ...others] = method.output.fields;
      return data !== undefined && isBytes(data) && others.length === 0
        ? { kind: "download", method: streaming, data, mediaType: bytesMediaType(template) }
        : { kind: "events", method: streaming };
    }
    case "client_streaming":
      return clientStream(method as DescMethodClientStreaming, name, body);
    case "bidi_streaming":
      throw new Error(`${name} streams both ways, which HTTP/1.1 cannot carry`);
  }
}

function clientStream(method: DescMethodClientStreaming, name: string, body: string): Exchange {
  if (body === "*") {
    const opening = method.input.fields.find(isPlainMessage);
    if (opening === undefined) throw new Error(`${name} has no message field for what its path says`);
    return { kind: "lines", method, opening };
  }
  const data = method.input.fields.find((field) => field.name === body);
  const metadata = data?.oneof?.fields.find(isPlainMessage);
  if (data === undefined || !isBytes(data) || metadata === undefined) {
    throw new Error(`${name} needs a oneof of metadata and bytes for the body "${body}"`);
  }
  return { kind: "upload", method, metadata, data };
}

function isBytes(field: DescField): boolean {
  return field.fieldKind === "scalar" && field.scalar === ScalarType.BYTES;
}

function isPlainMessage(field: DescField): field is MessageField {
  return field.fieldKind === "message" && !hasOwnJsonForm(field.message);
}

function pathField(message: DescMessage, name: string, where: string): DescField {
  const field = fieldNamed(message, name);
  if (field === undefined) throw new Error(`${where}: ${name} is no field of ${message.typeName}`);
  if (field.fieldKind === "scalar" || field.fieldKind === "enum") return field;
  throw new Error(`${where}: ${name} does not fit into a path`);
}
