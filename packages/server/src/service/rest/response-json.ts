import { type DescMessage, type JsonValue, type Message, type Registry, toJson } from "@bufbuild/protobuf";
import { hasOwnJsonForm } from "./fields.ts";
import { emptyRecord, type JsonRecord } from "./request-json.ts";

/**
 * A message as clients of the earlier server know it: every field is there. Unset messages and unset optional scalars are
 * null; only the members of a oneof that are not its case are left out.
 */
export function messageJson(desc: DescMessage, message: Message, registry: Registry): JsonValue {
  return complete(desc, toJson(desc, message, { alwaysEmitImplicit: true, registry }));
}

/** `toJson` writes implicit fields; this adds the explicit ones, at every depth, in the order of declaration. */
function complete(desc: DescMessage, json: JsonValue): JsonValue {
  if (hasOwnJsonForm(desc) || !isRecord(json)) {
    return json;
  }
  const whole = emptyRecord();
  for (const field of desc.fields) {
    const value = json[field.jsonName];
    if (value === undefined) {
      if (field.oneof === undefined) {
        whole[field.jsonName] = null;
      }
    } else {
      whole[field.jsonName] =
        field.message === undefined ? value : completeMessages(field.message, field.fieldKind, value);
    }
  }
  return whole;
}

function completeMessages(
  desc: DescMessage,
  kind: "message" | "list" | "map" | "scalar" | "enum",
  value: JsonValue,
): JsonValue {
  if (kind === "list" && Array.isArray(value)) {
    return value.map((item) => complete(desc, item));
  }
  if (kind === "map" && isRecord(value)) {
    const entries = emptyRecord();
    for (const [key, item] of Object.entries(value)) {
      entries[key] = complete(desc, item);
    }
    return entries;
  }
  return complete(desc, value);
}

function isRecord(json: JsonValue): json is JsonRecord {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
