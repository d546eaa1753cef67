import type { DescField, JsonValue, Message } from "@bufbuild/protobuf";
import { readBody } from "./body.ts";
import type { Call } from "./call.ts";
import { parameterMessage } from "./exchange.ts";
import { parseJson } from "./json-text.ts";
import { queryFields, textValue } from "./query.ts";
import { childRecord, emptyRecord, type JsonRecord, normalField, normalMessage, readMessage } from "./request-json.ts";

/** The request message of a method that takes one: the body's fields, then the query's, and over all the path's. */
export async function requestMessage(call: Call): Promise<Message> {
  const { body, exchange } = call.route;
  const bytes = await readBody(call.request, call.limits, call.signal);
  const input = exchange.method.input;
  const normal = emptyRecord();
  if (body.kind !== "none") {
    const json = parseJson(bytes);
    if (body.kind === "whole") {
      Object.assign(normal, normalMessage(input, json === undefined ? {} : json, ""));
    } else if (json !== undefined && json !== null) {
      normal[body.field.jsonName] = normalField(body.field, json, body.field.name);
    }
  }
  return readMessage(input, mergePath(call, withQuery(call, normal)));
}

/** What path and query say about an upload's metadata or a batch's beginning. */
export function parameterFields(call: Call): JsonRecord {
  return mergePath(call, withQuery(call, emptyRecord()));
}

/** A body that has all fields leaves none to the query. */
function withQuery(call: Call, normal: JsonRecord): JsonRecord {
  const { route } = call;
  if (route.body.kind === "whole") {
    return normal;
  }
  const taken = new Set<DescField>(route.body.kind === "field" ? [route.body.field] : []);
  for (const path of route.parameters.values()) {
    if (path.length === 1 && path[0] !== undefined) {
      taken.add(path[0]);
    }
  }
  const message = parameterMessage(route.exchange);
  return Object.assign(normal, normalMessage(message, queryFields(message, call.query, taken), ""));
}

function mergePath(call: Call, normal: JsonRecord): JsonRecord {
  for (const [name, fields] of call.route.parameters) {
    const field = fields.at(-1);
    if (field === undefined) {
      continue;
    }
    const value: JsonValue = normalField(field, textValue(field, call.pathValues.get(name) ?? "", name), name);
    let record = normal;
    for (const outer of fields.slice(0, -1)) {
      record = childRecord(record, outer.jsonName);
    }
    record[field.jsonName] = value;
  }
  return normal;
}
