import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { invalid } from "../rpc/messages/fields.ts";
import { readBody } from "./body.ts";
import { fieldNamed, hasOwnJsonForm, isTextMessage } from "./fields.ts";
import type { Call } from "./handler.ts";
import { parseJson } from "./json-text.ts";
import {
  childRecord,
  emptyRecord,
  type JsonRecord,
  normalField,
  normalMessage,
  readMessage,
  refuse,
} from "./request-json.ts";
import { parameterMessage } from "./routes.ts";

/** The request message of a method that takes one: the body's fields, then the query's, and over all the path's. */
export async function requestMessage(call: Call): Promise<Message> {
  const { body, exchange } = call.route;
  const bytes = await readBody(call.request, call.limits);
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

const MAX_PARAMETERS = 1000;

/**
 * The fields that a query string sets, as JSON that `normalMessage` takes. Names in both cases:
 *
 * | form                                 | sets                                                |
 * | `page_size=10`, `pageSize=10`        | a field                                             |
 * | `types=a&types=b`                    | a list, in order                                    |
 * | `labels[team]=a`, `labels.team=a`    | an entry of a map; in the second form the key is all that follows the dot |
 * | `resources.memory_bytes=1`           | a field of a message                                |
 *
 * Unknown names are ignored like unknown keys of JSON. Fields in `taken` come from elsewhere and are ignored too.
 */
function queryFields(message: DescMessage, query: string, taken: ReadonlySet<DescField>): JsonRecord {
  const root = emptyRecord();
  for (const [name, text] of parameters(query)) {
    const target = targetOf(message, name);
    if (target !== undefined && !taken.has(target.path[0] ?? target.field)) {
      place(root, target, text);
    }
  }
  return root;
}

/** What a text of a path or a query means for a field's value, as JSON. */
function textValue(
  kind: { scalar: ScalarType | undefined; enum: DescEnum | undefined },
  text: string,
  at: string,
): JsonValue {
  if (kind.enum !== undefined) {
    return /^-?[0-9]{1,10}$/.test(text) ? Number(text) : text;
  }
  switch (kind.scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return text;
    case ScalarType.BOOL:
      return BOOLEANS.get(text.toLowerCase()) ?? refuse(at, "must be true or false");
    default:
      return integerText(text, at);
  }
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["t", true],
  ["1", true],
  ["false", false],
  ["f", false],
  ["0", false],
]);

/** `mode=0644` is octal to one reader and decimal to the next, so it is neither; `0o644` and `420` say what they mean. */
function integerText(text: string, at: string): string {
  if (/^0[ox][0-9a-f]{1,32}$/i.test(text)) {
    try {
      return BigInt(text).toString();
    } catch {
      refuse(at, "must be a whole number");
    }
  }
  if (!/^-?[0-9]{1,40}$/.test(text)) {
    refuse(at, "must be a whole number");
  }
  return /^-?0[0-9]/.test(text) ? refuse(at, "has a leading zero; write 0o644 for an octal number") : text;
}

interface Target {
  /** The messages on the way, outermost first. */
  readonly path: readonly DescField[];
  readonly field: DescField;
  readonly mapKey: string | undefined;
  readonly name: string;
}

function targetOf(message: DescMessage, name: string): Target | undefined {
  const bracket = name.endsWith("]") ? name.indexOf("[") : -1;
  const names = (bracket < 0 ? name : name.slice(0, bracket)).split(".");
  const key = bracket < 0 ? undefined : name.slice(bracket + 1, -1);
  const path: DescField[] = [];
  let within = message;
  for (const [index, each] of names.entries()) {
    const field = fieldNamed(within, each);
    if (field === undefined) {
      return undefined;
    }
    const left = names.slice(index + 1);
    const at = [...path, field].map((one) => one.name).join(".");
    if (field.fieldKind === "map") {
      const mapKey = key === undefined ? left.join(".") : key;
      if ((key !== undefined && left.length > 0) || (key === undefined && left.length === 0)) {
        refuse(at, `is a map; write ${at}[key]=value`);
      }
      return { path, field, mapKey, name: at };
    }
    if (field.fieldKind === "message" && !hasOwnJsonForm(field.message) && left.length > 0) {
      path.push(field);
      within = field.message;
      continue;
    }
    if (left.length > 0 || key !== undefined) {
      return undefined;
    }
    if (field.message !== undefined && !isTextMessage(field.message)) {
      refuse(at, "cannot be given in the query");
    }
    return { path, field, mapKey: undefined, name: at };
  }
  return undefined;
}

function place(root: JsonRecord, target: Target, text: string): void {
  let record = root;
  for (const field of target.path) {
    record = childRecord(record, field.jsonName);
  }
  const { field, mapKey, name } = target;
  if (field.fieldKind === "map") {
    if (field.message !== undefined && !isTextMessage(field.message)) {
      refuse(name, "cannot be given in the query");
    }
    childRecord(record, field.jsonName)[mapKey ?? ""] = textValue(field, text, name);
  } else if (field.fieldKind === "list") {
    const list = (record[field.jsonName] ?? []) as JsonValue[];
    record[field.jsonName] = [...list, textValue(field, text, name)];
  } else if (field.jsonName in record) {
    refuse(name, "is given twice");
  } else {
    record[field.jsonName] = textValue(field, text, name);
  }
}

function* parameters(query: string): Generator<readonly [string, string]> {
  const pairs = query.split("&").filter((pair) => pair !== "");
  if (pairs.length > MAX_PARAMETERS) {
    throw invalid(`the query has more than ${MAX_PARAMETERS} parameters`);
  }
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    yield equals < 0 ? [decode(pair), ""] : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalid("the query is not percent-encoded UTF-8");
  }
}
