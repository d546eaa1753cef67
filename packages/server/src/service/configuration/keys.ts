import { SETTINGS } from "./schema.ts";
import type { Setting } from "./values.ts";
import { suggestion } from "./wording.ts";

/** A part of the file: settings and further sections, by their names. */
export interface Section {
  readonly [name: string]: Section | Setting;
}

/** One setting, by its full name. */
export interface ConfigurationKey {
  /** "server.tls.cert_file" */
  readonly name: string;
  readonly path: readonly string[];
  /** "AGENTFENSE_SERVER_TLS_CERT_FILE" */
  readonly variable: string;
  readonly setting: Setting;
}

/** One value that somebody gave, and where: "file server.yaml:12", "environment AGENTFENSE_…", "flag --…". */
export interface GivenValue {
  readonly name: string;
  readonly value: unknown;
  readonly origin: string;
}

/** What one source gave: its values, and what is wrong with the rest of it. */
export interface Source {
  readonly values: readonly GivenValue[];
  readonly problems: readonly string[];
}

/** A setting given on the command line. */
export interface ConfigurationFlag {
  /** As the user knows it: "--grpc-addr". */
  readonly flag: string;
  /** "server.grpc_addr" */
  readonly name: string;
  readonly value: string;
}

const VARIABLE_PREFIX = "AGENTFENSE_";

/** The whole file. */
export const ROOT_SECTION = SETTINGS as unknown as Section;

export const CONFIGURATION_KEYS: ReadonlyMap<string, ConfigurationKey> = new Map(
  [...keysBelow(ROOT_SECTION, [])].map((key) => [key.name, key]),
);

export function isSetting(member: Section | Setting): member is Setting {
  return typeof member.read === "function";
}

/**
 * The settings in the environment. A variable whose first word is a section and which names no key of it is a mistake; all
 * others that begin with AGENTFENSE_ (of clients, of tests) are none of our business.
 */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): Source {
  const byVariable = new Map([...CONFIGURATION_KEYS.values()].map((key) => [key.variable, key]));
  const sections = Object.keys(ROOT_SECTION).map((name) => `${VARIABLE_PREFIX}${name.toUpperCase()}_`);
  const values: GivenValue[] = [];
  const problems: string[] = [];
  for (const [variable, value] of Object.entries(environment)) {
    const key = byVariable.get(variable);
    if (value === undefined) continue;
    if (key !== undefined) {
      values.push({ name: key.name, value: key.setting.fromText(value), origin: `environment ${variable}` });
    } else if (sections.some((section) => variable.startsWith(section))) {
      problems.push(`environment: unknown setting ${variable}${suggestion(variable, byVariable.keys())}`);
    }
  }
  return { values, problems };
}

export function readFlags(flags: readonly ConfigurationFlag[]): Source {
  const values: GivenValue[] = [];
  const problems: string[] = [];
  for (const { flag, name, value } of flags) {
    const key = CONFIGURATION_KEYS.get(name);
    if (key === undefined) problems.push(`${flag}: unknown key ${name}${suggestion(name, CONFIGURATION_KEYS.keys())}`);
    else values.push({ name, value: key.setting.fromText(value), origin: `flag ${flag}` });
  }
  return { values, problems };
}

function* keysBelow(section: Section, above: readonly string[]): Generator<ConfigurationKey> {
  for (const [step, member] of Object.entries(section)) {
    const path = [...above, step];
    if (!isSetting(member)) yield* keysBelow(member, path);
    else {
      const variable = VARIABLE_PREFIX + path.join("_").toUpperCase();
      yield { name: path.join("."), path, variable, setting: member };
    }
  }
}

/** The configuration cannot be used. The message has every problem found, one a line. */
export class ConfigurationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigurationError";
    this.problems = problems;
  }
}
