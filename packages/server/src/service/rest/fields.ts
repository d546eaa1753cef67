import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";

export type MessageField = DescField & { fieldKind: "message" };

/** A message's field by either of its names, `codebase_id` or `codebaseId`. */
export function fieldNamed(message: DescMessage, name: string): DescField | undefined {
  return message.fields.find((field) => field.name === name || field.jsonName === name);
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
/** The number of an enum value by its full name or its short one: `PERMISSION_READ` or `read`, `on_exec` or `on-exec`. */
export function enumNumber(desc: DescEnum, name: string): number | undefined {
  const short = name.toLowerCase().replaceAll("-", "_");
  return desc.values.find((value) => value.name === name || shortName(desc, value.name) === short)?.number;
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
