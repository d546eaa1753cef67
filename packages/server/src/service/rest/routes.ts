import { http } from "@agentfense/protocol/annotations";
import type { HttpRule } from "@agentfense/protocol/http";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { type Exchange, exchangeOf, parameterMessage } from "./exchange.ts";
import { fieldNamed } from "./fields.ts";
import { parseTemplate, type Segment } from "./template.ts";

export type HttpMethod = "GET" | "PUT" | "POST" | "DELETE" | "PATCH";

/** One way to call a method over HTTP. */
export interface Route {
  readonly httpMethod: HttpMethod;
  readonly template: string;
  readonly segments: readonly Segment[];
  /** The fields that the path names, by the name in the template, from the outermost to the scalar. */
  readonly parameters: ReadonlyMap<string, readonly DescField[]>;
  readonly body: RouteBody;
  readonly exchange: Exchange;
}

export type RouteBody =
  /** Whatever is sent is ignored; fields come from the path and the query. */
  | { readonly kind: "none" }
  /** All fields but those of the path. */
  | { readonly kind: "whole" }
  /** One field; the others come from the path and the query. */
  | { readonly kind: "field"; readonly field: DescField };

/** Every route that the services' methods declare with `google.api.http`. */
export function routesOf(services: readonly DescService[]): readonly Route[] {
  return services.flatMap((service) => service.methods).flatMap(routesOfMethod);
}

function routesOfMethod(method: DescMethod): readonly Route[] {
  if (!hasOption(method, http)) {
    return [];
  }
  const rule = getOption(method, http);
  return [rule, ...rule.additionalBindings].map((each) => routeOf(method, each));
}

function routeOf(method: DescMethod, rule: HttpRule): Route {
  const name = `${method.parent.typeName}/${method.name}`;
  if (rule.pattern.case === undefined) {
    throw new Error(`${name} has an HTTP rule without a path`);
  }
  const template = rule.pattern.value;
  const segments = parseTemplate(template);
  const exchange = exchangeOf(method, { template, body: rule.body });
  const message = parameterMessage(exchange);
  const parameters = new Map<string, readonly DescField[]>();
  for (const segment of segments) {
    if (segment.kind !== "literal") {
      parameters.set(segment.field, fieldPath(message, segment.field, `${name} ${template}`));
    }
  }
  return {
    httpMethod: rule.pattern.case.toUpperCase() as HttpMethod,
    template,
    segments,
    parameters,
    body: bodyOf(exchange, rule.body, name),
    exchange,
  };
}

function fieldPath(message: DescMessage, path: string, where: string): readonly DescField[] {
  const fields: DescField[] = [];
  let within: DescMessage | undefined = message;
  for (const name of path.split(".")) {
    const field: DescField | undefined = within === undefined ? undefined : fieldNamed(within, name);
    if (field === undefined) {
      throw new Error(`${where}: ${path} is no field of ${message.typeName}`);
    }
    fields.push(field);
    within = field.fieldKind === "message" ? field.message : undefined;
  }
  const last = fields.at(-1);
  if (last?.fieldKind !== "scalar" && last?.fieldKind !== "enum") {
    throw new Error(`${where}: ${path} does not fit into a path`);
  }
  return fields;
}

function bodyOf(exchange: Exchange, body: string, name: string): RouteBody {
  if (exchange.kind === "upload" || exchange.kind === "lines") {
    return { kind: "none" };
  }
  if (body === "" || body === "*") {
    return { kind: body === "" ? "none" : "whole" };
  }
  const field = fieldNamed(exchange.method.input, body);
  if (field === undefined) {
    throw new Error(`${name}: the body "${body}" is no field of ${exchange.method.input.typeName}`);
  }
  return { kind: "field", field };
}
