import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { RuntimeError } from "../../runtime/runtime-error.ts";
import { invalid } from "../rpc/messages/fields.ts";
import { enumChoices, enumNumber, fieldNamed, hasOwnJsonForm } from "./fields.ts";

/** JSON that keeps every key as data, `__proto__` too: it has no prototype. */
export type JsonRecord = { [key: string]: JsonValue };

export function emptyRecord(): JsonRecord {
  return Object.create(null) as JsonRecord;
}

/** The object below a key, made if there is none. */
export function childRecord(record: JsonRecord, key: string): JsonRecord {
  const child = (record[key] ?? emptyRecord()) as JsonRecord;
  record[key] = child;
  return child;
}

/** The message that normal JSON describes. */
export function readMessage(desc: DescMessage, normal: JsonRecord): Message {
  try {
    return fromJson(desc, normal);
  } catch (error) {
    throw error instanceof RuntimeError ? error : invalid(error instanceof Error ? error.message : "not valid");
  }
}

/**
 * Brings a client's JSON into the one form that the library takes without loss: camelCase keys, no unknown keys, enums as
 * numbers, integers exact. The library alone would drop an unknown enum name silently when it ignores unknown keys, and
 * a rule would then have another level than its author wrote.
 */
export function normalMessage(desc: DescMessage, json: JsonValue | undefined, at: string): JsonRecord {
  if (!isRecord(json)) {
    refuse(at === "" ? "the body" : at, "must be a JSON object");
  }
  const normal = emptyRecord();
  for (const [key, value] of Object.entries(json)) {
    const field = fieldNamed(desc, key);
    if (field === undefined) {
      continue;
    }
    const place = at === "" ? field.name : `${at}.${field.name}`;
    if (field.jsonName in normal) {
      refuse(place, "is given twice");
    }
    // Null is the same as no value, except for a field whose value it is.
    if (value !== null || field.message?.typeName === "google.protobuf.Value") {
      normal[field.jsonName] = normalField(field, value, place);
    }
  }
  return normal;
}

export function normalField(field: DescField, value: JsonValue, at: string): JsonValue {
  switch (field.fieldKind) {
    case "list":
      if (!Array.isArray(value)) {
        refuse(at, "must be a list");
      }
      return value.map((item, index) => normalValue(field, item, `${at}[${index}]`));
    case "map": {
      if (!isRecord(value)) {
        refuse(at, "must be a JSON object");
      }
      const entries = emptyRecord();
      for (const [key, item] of Object.entries(value)) {
        const label = JSON.stringify(key.slice(0, 100));
        if (!key.isWellFormed()) {
          refuse(`${at}[${label}]`, "is not valid Unicode");
        }
        entries[key] = normalValue(field, item, `${at}[${label}]`);
      }
      return entries;
    }
    default:
      return normalValue(field, value, at);
  }
}

/** What a field holds one or many of. */
interface ValueKind {
  readonly scalar: ScalarType | undefined;
  readonly enum: DescEnum | undefined;
  readonly message: DescMessage | undefined;
}

function normalValue(kind: ValueKind, value: JsonValue, at: string): JsonValue {
  if (kind.message !== undefined) {
    return hasOwnJsonForm(kind.message) ? wellKnown(kind.message, value, at) : normalMessage(kind.message, value, at);
  }
  if (kind.enum !== undefined) {
    return normalEnum(kind.enum, value, at);
  }
  return kind.scalar === undefined ? value : SCALARS[kind.scalar](value, at);
}

function normalEnum(desc: DescEnum, value: JsonValue, at: string): number {
  if (typeof value === "number") {
    return Number(integer(value, at));
  }
  if (typeof value !== "string") {
    refuse(at, `must be one of ${enumChoices(desc)}`);
  }
  return (
    enumNumber(desc, value) ??
    refuse(at, `must be one of ${enumChoices(desc)}, not ${JSON.stringify(value.slice(0, 100))}`)
  );
}

const WELL_KNOWN_TEXT: Readonly<Record<string, { pattern: RegExp; expected: string }>> = {
  "google.protobuf.Duration": {
    pattern: /^-?[0-9]{1,12}(\.[0-9]{1,9})?s$/,
    expected: 'must be a string of seconds such as "30s" or "1.5s"',
  },
  "google.protobuf.Timestamp": {
    pattern: /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$/,
    expected: 'must be a time such as "2026-01-31T12:00:00Z"',
  },
};

function wellKnown(desc: DescMessage, value: JsonValue, at: string): JsonValue {
  const form = WELL_KNOWN_TEXT[desc.typeName];
  if (form !== undefined && !(typeof value === "string" && form.pattern.test(value))) {
    refuse(at, form.expected);
  }
  try {
    fromJson(desc, value);
  } catch {
    refuse(at, form?.expected ?? `is no ${desc.name}`);
  }
  return value;
}

export function isRecord(json: JsonValue | undefined): json is JsonRecord {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

const INT32 = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
const UINT32 = { min: 0n, max: 2n ** 32n - 1n };
const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const UINT64 = { min: 0n, max: 2n ** 64n - 1n };

/** Checks one scalar of a request's JSON and gives it the form that the library reads without loss. */
const SCALARS: Readonly<Record<ScalarType, (json: unknown, at: string) => string | number | boolean>> = {
  [ScalarType.STRING]: text,
  [ScalarType.BOOL]: (json, at) => (typeof json === "boolean" ? json : refuse(at, "must be true or false")),
  [ScalarType.BYTES]: base64,
  [ScalarType.INT32]: (json, at) => Number(integer(json, at, INT32)),
  [ScalarType.SINT32]: (json, at) => Number(integer(json, at, INT32)),
  [ScalarType.SFIXED32]: (json, at) => Number(integer(json, at, INT32)),
  [ScalarType.UINT32]: (json, at) => Number(integer(json, at, UINT32)),
  [ScalarType.FIXED32]: (json, at) => Number(integer(json, at, UINT32)),
  [ScalarType.INT64]: (json, at) => integer(json, at, INT64).toString(),
  [ScalarType.SINT64]: (json, at) => integer(json, at, INT64).toString(),
  [ScalarType.SFIXED64]: (json, at) => integer(json, at, INT64).toString(),
  [ScalarType.UINT64]: (json, at) => integer(json, at, UINT64).toString(),
  [ScalarType.FIXED64]: (json, at) => integer(json, at, UINT64).toString(),
  [ScalarType.DOUBLE]: float,
  [ScalarType.FLOAT]: float,
};

function text(json: unknown, at: string): string {
  if (typeof json !== "string") {
    refuse(at, "must be a string");
  }
  // Half a surrogate pair would arrive as another string over gRPC.
  return json.isWellFormed() ? json : refuse(at, "is not valid Unicode");
}

function base64(json: unknown, at: string): string {
  if (typeof json !== "string" || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(json) || json.replaceAll("=", "").length % 4 === 1) {
    refuse(at, "must be a string in base64");
  }
  return json;
}

/** Numbers and decimal strings; also `1.0` and `"1e3"`, which JSON counts as integers. */
function integer(json: unknown, at: string, range: { min: bigint; max: bigint } = INT32): bigint {
  let value: bigint;
  if (typeof json === "string" && /^-?[0-9]{1,40}$/.test(json)) {
    value = BigInt(json);
  } else if (
    typeof json === "number" ||
    (typeof json === "string" && /^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$/.test(json))
  ) {
    const number = Number(json);
    if (!Number.isInteger(number)) {
      refuse(at, "must be a whole number");
    }
    if (!Number.isSafeInteger(number)) {
      refuse(at, "is too large to be exact as a number; write it as a string");
    }
    value = BigInt(number);
  } else {
    refuse(at, "must be a whole number");
  }
  return value >= range.min && value <= range.max ? value : refuse(at, `must be between ${range.min} and ${range.max}`);
}

function float(json: unknown, at: string): string | number {
  if (json === "NaN" || json === "Infinity" || json === "-Infinity") {
    return json;
  }
  const number = typeof json === "string" && json.trim() !== "" ? Number(json) : json;
  return typeof number === "number" && Number.isFinite(number) ? number : refuse(at, "must be a number");
}

export function refuse(at: string, reason: string): never {
  throw invalid(`${at} ${reason}`);
}
