import type { DescField, DescMessage } from "@bufbuild/protobuf";

export type MessageField = DescField & { fieldKind: "message" };

const named = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** A message's field by either of its names, `codebase_id` or `codebaseId`. */
export function fieldNamed(message: DescMessage, name: string): DescField | undefined {
  let fields = named.get(message);
  if (fields === undefined) {
    fields = new Map(
      message.fields.flatMap((field) => [[field.name, field] as const, [field.jsonName, field] as const]),
    );
    named.set(message, fields);
  }
  return fields.get(name);
}

const TEXT_MESSAGES: ReadonlySet<string> = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "google.protobuf.FieldMask",
]);

/** JSON writes these messages as one string, so a query parameter can hold one. */
export function isTextMessage(message: DescMessage): boolean {
  return TEXT_MESSAGES.has(message.typeName);
}

/** Messages whose JSON is not an object with their fields. */
export function hasOwnJsonForm(message: DescMessage): boolean {
  return message.file.proto.package === "google.protobuf" && message.typeName !== "google.protobuf.Empty";
}
