import { type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { shortName } from "../rest/enum-names.ts";
import { isTextMessage } from "../rest/fields.ts";
import type { Route } from "../rest/routes.ts";

/** Values that make an example readable; every other field gets one by its type. */
const EXAMPLES: Readonly<Record<string, JsonValue>> = {
  codebase_id: "cb_0123456789abcdef",
  sandbox_id: "sb_0123456789abcdef",
  session_id: "sess_0123456789abcdef",
  key_id: "key_0123456789abcdef",
  owner_id: "alice",
  name: "demo",
  command: "ls -l",
  shell: "/bin/sh",
  workdir: "/workspace",
  file_path: "src/main.py",
  path: "src/main.py",
  from_path: "old.txt",
  to_path: "new.txt",
  pattern: "/src/**",
  version: "1",
};

/** The fields that an example shows: those a call makes no sense without. */
const SHOWN: ReadonlySet<string> = new Set([
  ...Object.keys(EXAMPLES).filter((name) => !["owner_id", "workdir", "shell"].includes(name)),
  "permissions",
  "permission",
  "entries",
]);

/** A call of a route that works as printed, once the ids are real. */
export function curlExample(route: Route): string {
  const { exchange } = route;
  const path = route.segments.map((segment) =>
    segment.kind === "literal" ? segment.text : pathExample(route, segment.field),
  );
  return [
    "curl",
    ...(exchange.kind === "events" ? ["-N"] : []),
    ...(route.httpMethod === "GET" ? [] : ["-X", route.httpMethod]),
    ...bodyArguments(route),
    '-H "Authorization: Bearer $AGENTFENSE_API_KEY"',
    quoted(`http://localhost:8080/${path.join("/")}${queryExample(route)}`),
  ].join(" ");
}

/** A directory, for methods that are asked about a path. */
function queryExample(route: Route): string {
  const asked = route.exchange.method.input.fields.some((field) => field.name === "path");
  return route.httpMethod === "GET" && asked && !route.parameters.has("path") ? "?path=src" : "";
}

function bodyArguments(route: Route): readonly string[] {
  const { exchange } = route;
  if (exchange.kind === "upload") {
    return ["--data-binary", route.template.endsWith("/archive") ? "@project.tar" : "@main.py"];
  }
  if (exchange.kind === "lines") {
    return ["-H", quoted("Content-Type: application/x-ndjson"), "--data-binary", "@batch.ndjson"];
  }
  if (route.body.kind === "none") {
    return [];
  }
  const taken = new Set([...route.parameters.values()].map((fields) => fields[0]));
  const fields = exchange.method.input.fields.filter((field) => !taken.has(field));
  const example = messageExample(fields);
  return ["-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(example))];
}

function messageExample(fields: readonly DescField[]): { [key: string]: JsonValue } {
  const shown = fields.filter((field) => SHOWN.has(field.name));
  return Object.fromEntries(shown.map((field) => [field.jsonName, fieldExample(field)]));
}

function fieldExample(field: DescField): JsonValue {
  const value = EXAMPLES[field.name] ?? typeExample(field);
  return field.fieldKind === "list" ? [value] : value;
}

function typeExample(field: DescField): JsonValue {
  if (field.message !== undefined) {
    return isTextMessage(field.message) ? "30s" : messageExample(plainFields(field.message));
  }
  if (field.enum !== undefined) {
    const last = field.enum.values.at(-1);
    return last === undefined ? 0 : shortName(field.enum, last.name);
  }
  return field.scalar === ScalarType.BOOL ? true : "text";
}

function plainFields(message: DescMessage): readonly DescField[] {
  return message.fields.filter((field) => field.fieldKind !== "message");
}

function pathExample(route: Route, name: string): string {
  const field = route.parameters.get(name)?.at(-1);
  return String(EXAMPLES[field?.name ?? ""] ?? name);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
