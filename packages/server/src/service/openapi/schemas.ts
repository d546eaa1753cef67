import { type DescEnum, type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { hasOwnJsonForm, shortName } from "../rest/fields.ts";
import { COMMENTS } from "./generated/comments.ts";

/** JSON Schema, as OpenAPI 3.1 has it. */
export type Schema = JsonObject;

/** Collects a schema for each message and enum that something refers to, and for what those refer to. */
export class Schemas {
  readonly #schemas = new Map<string, Schema>();

  all(): Readonly<Record<string, Schema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  message(desc: DescMessage): Schema {
    if (hasOwnJsonForm(desc)) {
      return WELL_KNOWN[desc.typeName] ?? {};
    }
    const name = schemaName(desc);
    if (!this.#schemas.has(name)) {
      // Its place first: messages may contain themselves.
      this.#schemas.set(name, {});
      this.#schemas.set(name, {
        type: "object",
        ...described(desc.typeName),
        properties: Object.fromEntries(desc.fields.map((field) => [field.jsonName, this.field(field)])),
      });
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  field(field: DescField): Schema {
    const comment = described(`${field.parent.typeName}.${field.name}`);
    const value = this.#value(field);
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: value, ...comment };
      case "map":
        return { type: "object", additionalProperties: value, ...comment };
      case "message":
        return field.oneof === undefined ? { anyOf: [value, { type: "null" }], ...comment } : { ...value, ...comment };
      default:
        return { ...(field.proto.proto3Optional ? { anyOf: [value, { type: "null" }] } : value), ...comment };
    }
  }

  #value(field: DescField): Schema {
    if (field.message !== undefined) {
      return this.message(field.message);
    }
    return field.enum === undefined ? SCALAR[field.scalar] : this.enum(field.enum);
  }

  enum(desc: DescEnum): Schema {
    const name = schemaName(desc);
    if (!this.#schemas.has(name)) {
      this.#schemas.set(name, {
        type: "string",
        enum: desc.values.map((value) => value.name),
        description: enumDescription(desc),
      });
    }
    return { $ref: `#/components/schemas/${name}` };
  }
}

export function schemaName(desc: DescMessage | DescEnum): string {
  const { package: packageName } = desc.file.proto;
  return desc.typeName.slice(packageName.length + 1);
}

export function described(fullName: string): { description?: string } {
  const description = COMMENTS[fullName];
  return description === undefined ? {} : { description };
}

function enumDescription(desc: DescEnum): string {
  const values = desc.values.map((value) => {
    const comment = COMMENTS[`${desc.typeName}.${value.name}`];
    return `\`${shortName(desc, value.name)}\`${comment === undefined ? "" : `: ${comment}`}`;
  });
  const own = COMMENTS[desc.typeName];
  return `${own === undefined ? "" : `${own} `}Requests may use the short names and the numbers too. ${values.join(" · ")}`;
}

const INT32: Schema = { type: "integer", format: "int32" };
const UINT32: Schema = { type: "integer", format: "uint32" };
/** 64 bits do not fit into a number of JSON. */
const INT64: Schema = { type: "string", format: "int64" };
const UINT64: Schema = { type: "string", format: "uint64" };

const SCALAR: Readonly<Record<ScalarType, Schema>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
  [ScalarType.INT32]: INT32,
  [ScalarType.SINT32]: INT32,
  [ScalarType.SFIXED32]: INT32,
  [ScalarType.UINT32]: UINT32,
  [ScalarType.FIXED32]: UINT32,
  [ScalarType.INT64]: INT64,
  [ScalarType.SINT64]: INT64,
  [ScalarType.SFIXED64]: INT64,
  [ScalarType.UINT64]: UINT64,
  [ScalarType.FIXED64]: UINT64,
  [ScalarType.DOUBLE]: { type: "number", format: "double" },
  [ScalarType.FLOAT]: { type: "number", format: "float" },
};

const WELL_KNOWN: Readonly<Record<string, Schema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Duration": { type: "string", description: 'Seconds, such as "30s" or "1.5s".' },
  "google.protobuf.FieldMask": { type: "string" },
  "google.protobuf.Struct": { type: "object", additionalProperties: true },
  "google.protobuf.Any": { type: "object", additionalProperties: true },
};
