import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";

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
const numbers = new WeakMap<DescEnum, ReadonlyMap<string, number>>();

/** The number of an enum value by its full name or its short one: `PERMISSION_READ` or `read`, `on_exec` or `on-exec`. */
export function enumNumber(desc: DescEnum, name: string): number | undefined {
  let known = numbers.get(desc);
  if (known === undefined) {
    known = new Map(
      desc.values.flatMap((value) => [value.name, shortName(desc, value.name)].map((each) => [each, value.number])),
    );
    numbers.set(desc, known);
  }
  return known.get(name) ?? known.get(name.toLowerCase().replaceAll("-", "_"));
}

/** What to write, for a person who wrote something else. The zero value says "unspecified" and is no choice. */
export function enumChoices(desc: DescEnum): string {
  return desc.values
    .filter((value) => value.number !== 0)
    .map((value) => shortName(desc, value.name))
    .join(", ");
}

export function shortName(desc: DescEnum, fullName: string): string {
  const prefix = desc.sharedPrefix ?? "";
  const name = fullName.toLowerCase();
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
