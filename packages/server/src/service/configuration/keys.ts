import { z } from "zod";
import { configurationSchema } from "./schema.ts";
import { kindOf } from "./values.ts";

/** One setting, by its full name. */
export interface ConfigurationKey {
  /** "server.tls.cert_file" */
  readonly name: string;
  readonly path: readonly string[];
  /** "AGENTFENSE_SERVER_TLS_CERT_FILE" */
  readonly variable: string;
  readonly description: string;
  readonly kind: NonNullable<ReturnType<typeof kindOf>>;
}

/** A part of the file: settings and further sections, by their names. */
export interface Section {
  readonly path: readonly string[];
  readonly members: ReadonlyMap<string, Section | ConfigurationKey>;
}

export const VARIABLE_PREFIX = "AGENTFENSE_";

/** The whole file, read off the schema. */
export const ROOT_SECTION: Section = sectionOf(configurationSchema, []);

export const CONFIGURATION_KEYS: ReadonlyMap<string, ConfigurationKey> = new Map(
  [...keysBelow(ROOT_SECTION)].map((key) => [key.name, key]),
);

export function isSection(member: Section | ConfigurationKey): member is Section {
  return "members" in member;
}

function sectionOf(schema: z.ZodObject, path: readonly string[]): Section {
  const members = Object.entries(schema.shape).map(([name, member]) => {
    return [name, memberOf(member as z.ZodType, [...path, name])] as const;
  });
  return { path, members: new Map(members) };
}

function memberOf(schema: z.ZodType, path: readonly string[]): Section | ConfigurationKey {
  const kind = kindOf(schema);
  if (kind !== undefined) {
    const variable = VARIABLE_PREFIX + path.join("_").toUpperCase();
    return { name: path.join("."), path, variable, description: schema.description ?? "", kind };
  }
  const inner = schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
  if (!(inner instanceof z.ZodObject)) throw new Error(`${path.join(".")} is neither a section nor a value we know`);
  return sectionOf(inner, path);
}

function* keysBelow(section: Section): Generator<ConfigurationKey> {
  for (const member of section.members.values()) {
    if (isSection(member)) yield* keysBelow(member);
    else yield member;
  }
}
