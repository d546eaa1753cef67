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
import { fieldNamed, isTextMessage } from "./fields.ts";
import type { Call } from "./handler.ts";
import { parseJson, plainJson } from "./json-text.ts";
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

/** The request message of a method that takes one: the fields of the body or of the query, and over them the path's. */
export async function requestMessage(call: Call): Promise<Message> {
  const { hasJsonBody, exchange } = call.route;
  const bytes = await readBody(call.request, call.limits);
  const { input } = exchange.method;
  if (!hasJsonBody) return readMessage(input, parameterFields(call));
  const json = parseJson(bytes);
  return readMessage(input, withPath(call, normalMessage(input, json === undefined ? {} : json, "")));
}

/** What path and query say; of an upload its metadata, of a batch its beginning. */
export function parameterFields(call: Call): JsonRecord {
  const message = parameterMessage(call.route.exchange);
  const taken = new Set(call.route.parameters.values());
  return withPath(call, normalMessage(message, queryFields(message, call.query, taken), ""));
}

/** The JSON of a message, as another reader understands it without loss. */
export function exactJson(input: DescMessage, bytes: Uint8Array): Uint8Array {
  return Buffer.from(plainJson(normalMessage(input, parseJson(bytes) ?? {}, "")));
}

function withPath(call: Call, normal: JsonRecord): JsonRecord {
  for (const [name, field] of call.route.parameters) {
    normal[field.jsonName] = normalField(field, textValue(field, call.pathValues.get(name) ?? "", name), name);
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
 *
 * Unknown names are ignored like unknown keys of JSON. Fields in `taken` come from elsewhere and are ignored too.
 */
function queryFields(message: DescMessage, query: string, taken: ReadonlySet<DescField>): JsonRecord {
  const record = emptyRecord();
  for (const [parameter, text] of parameters(query)) {
    const [, name = "", inBrackets, afterDot] = /^([^[.]*)(?:\[(.*)\]|\.(.*))?$/s.exec(parameter) ?? [];
    const field = fieldNamed(message, name);
    if (field !== undefined && !taken.has(field)) place(record, field, inBrackets ?? afterDot, text);
  }
  return record;
}

function place(record: JsonRecord, field: DescField, key: string | undefined, text: string): void {
  const { name, jsonName } = field;
  if (field.message !== undefined && !isTextMessage(field.message)) refuse(name, "cannot be given in the query");
  if (field.fieldKind === "map") {
    if (key === undefined) refuse(name, `is a map; write ${name}[key]=value`);
    childRecord(record, jsonName)[key] = textValue(field, text, name);
  } else if (key === undefined) {
    const value = textValue(field, text, name);
    if (field.fieldKind === "list") record[jsonName] = [...((record[jsonName] ?? []) as JsonValue[]), value];
    else if (jsonName in record) refuse(name, "is given twice");
    else record[jsonName] = value;
  }
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
      if (/^(?:true|t|1)$/i.test(text)) return true;
      return /^(?:false|f|0)$/i.test(text) ? false : refuse(at, "must be true or false");
    default:
      return integerText(text, at);
  }
}

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
