import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  ScalarType,
} from "@bufbuild/protobuf";
import { hasOwnJsonForm, type MessageField } from "./fields.ts";

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

export function exchangeOf(method: DescMethod, rule: { readonly template: string; readonly body: string }): Exchange {
  switch (method.methodKind) {
    case "unary":
      return { kind: "unary", method: method as DescMethodUnary };
    case "server_streaming": {
      const [data, ...others] = method.output.fields;
      return data !== undefined && isBytes(data) && others.length === 0
        ? {
            kind: "download",
            method: method as DescMethodServerStreaming,
            data,
            mediaType: bytesMediaType(rule.template),
          }
        : { kind: "events", method: method as DescMethodServerStreaming };
    }
    case "client_streaming":
      return clientStream(method as DescMethodClientStreaming, rule.body);
    case "bidi_streaming":
      throw new Error(`${method.parent.typeName}/${method.name} streams both ways, which HTTP/1.1 cannot carry`);
  }
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

function clientStream(method: DescMethodClientStreaming, body: string): Exchange {
  const name = `${method.parent.typeName}/${method.name}`;
  if (body === "*") {
    const opening = method.input.fields.find(isPlainMessage);
    if (opening === undefined) {
      throw new Error(`${name} has no message field for what its path says`);
    }
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
