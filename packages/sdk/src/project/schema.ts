import {
  getPreset,
  listPresets,
  PresetError,
  parseRules,
  type Rule,
  RuleError,
  VARIABLE_NAME,
} from "@agentfense/permission";
import { nearestName } from "@agentfense/protocol/nearest";
import type { NetworkList, NetworkMode, ResourceLimits, RuntimeName } from "../model/options.ts";

/** What `.agentfense.yaml` can say; absent is what it does not say. */
export interface PolicyContent {
  readonly preset?: string;
  /** With a preset: after its rules. Without: exactly these. */
  readonly permissions?: readonly Rule[];
  readonly runtime?: RuntimeName;
  /** A word, or the list of a filtered one. */
  readonly network?: NetworkMode | NetworkList;
  readonly resources?: ResourceLimits;
  readonly env?: Readonly<Record<string, string>>;
  /** Left out of uploads, as in .gitignore. */
  readonly ignore?: readonly string[];
  /** Coding agents by name, for `agentfense agent`. */
  readonly agents?: Readonly<Record<string, AgentProfile>>;
}

/** What is known of a coding agent: how it is started inside a box that guards it, and what it needs of the world. */
export interface AgentProfile {
  /** A name that PATH finds, or an absolute path: the user's own installation, which the box shows read-only. */
  readonly program: string;
  /** Before the user's own. They make it work without asking: the box is the guard. */
  readonly arguments?: readonly string[];
  /** Hosts that it talks to, as in `--allow`. */
  readonly allow?: readonly string[];
  /** Secrets by the variable they come from, here and in the box, where a placeholder stands in for each. */
  readonly secrets?: Readonly<Record<string, AgentSecret>>;
  readonly env?: Readonly<Record<string, string>>;
  /** How it is installed, for those who do not have it. */
  readonly install?: string;
}

export interface AgentSecret {
  /** The only ones that get the value. */
  readonly hosts: readonly string[];
  /** Where in a request it stands: "header x-api-key", "bearer", "basic", "query key" or "body". */
  readonly in: string;
  /** Where the value comes from when the variable itself is not set here: another one. */
  readonly from?: string;
}

type Path = readonly (string | number)[];

/** A mistake in the content: where, and what would be right. */
export class ContentError extends Error {
  override readonly name = "ContentError";
  readonly at: Path;
  /** It is the key that is wrong and not its value. */
  readonly part: "key" | "value";

  constructor(at: Path, message: string, part: "key" | "value" = "value") {
    super(message);
    this.at = at;
    this.part = part;
  }
}

type Reader<Value> = (value: unknown, at: Path) => Value;

/** Every key of the file and how its value is read. */
const KEYS = {
  version: (value: unknown, at: Path): 1 => {
    if (value !== 1) throw new ContentError(at, `version: expected 1, not ${shown(value)}`);
    return 1;
  },
  preset: readPreset,
  permissions: readRules,
  runtime: oneOf<RuntimeName>("bwrap", "docker"),
  network: readNetwork,
  resources: readResources,
  env: readEnvironment,
  ignore: readIgnore,
  agents: readAgents,
} satisfies Record<string, Reader<unknown>>;

/** Checks everything; throws a `ContentError` for the first mistake. */
export function readPolicyContent(value: unknown): PolicyContent {
  const { version, ...content } = readMap(value, [], KEYS);
  if (version === undefined) throw new ContentError([], "version is missing; the file begins with: version: 1");
  return content;
}

type Read<Readers extends Record<string, Reader<unknown>>> = {
  -readonly [Key in keyof Readers]?: ReturnType<Readers[Key]>;
};

/** A map that has no other keys than these. A key without a value is a mistake: it looks like "nothing", and is not. */
function readMap<const Readers extends Record<string, Reader<unknown>>>(
  value: unknown,
  at: Path,
  readers: Readers,
): Read<Readers> {
  const known = Object.keys(readers);
  const name = at.length === 0 ? "the file" : at.join(".");
  if (!isMap(value)) throw new ContentError(at, `${name}: expected keys (${known.join(", ")}), not ${shown(value)}`);
  const read: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const reader = Object.hasOwn(readers, key) ? readers[key] : undefined;
    const here = [...at, key];
    if (reader === undefined) {
      const near = nearestName(key, known);
      const help = near === undefined ? `allowed: ${known.join(", ")}` : `did you mean ${near}?`;
      throw new ContentError(here, `unknown key ${shown(key)}; ${help}`, "key");
    }
    read[key] = reader(member, here);
  }
  return read as Read<Readers>;
}

function oneOf<const Word extends string>(...words: Word[]): Reader<Word> {
  return (value, at) => {
    const word = words.find((candidate) => candidate === value);
    if (word !== undefined) return word;
    throw new ContentError(at, `${at.join(".")}: expected one of ${words.join(", ")}, not ${shown(value)}`);
  };
}

function readPreset(value: unknown, at: Path): string {
  if (typeof value !== "string") {
    const names = listPresets().map(({ name }) => name);
    throw new ContentError(at, `preset: expected one of ${names.join(", ")}, not ${shown(value)}`);
  }
  try {
    getPreset(value);
  } catch (error) {
    throw error instanceof PresetError ? new ContentError(at, error.message) : error;
  }
  return value;
}

function readRules(value: unknown, at: Path): readonly Rule[] {
  try {
    return parseRules(value);
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    const place = error.index < 0 ? at : [...at, error.index];
    const help = error.reason.startsWith("unknown field") ? "; a rule has pattern, permission, type and priority" : "";
    throw new ContentError(place, `${error.message}${help}`);
  }
}

const NETWORK_MODES = ["none", "private", "host"] as const satisfies readonly NetworkMode[];
const NETWORK_LIST = {
  allow: readHosts,
  presets: textsOf("the name of a list such as npm"),
};

/** Alone, the word filtered would be a list that allows nothing. */
function readNetwork(value: unknown, at: Path): NetworkMode | NetworkList {
  if (isMap(value)) return readMap(value, at, NETWORK_LIST);
  const mode = NETWORK_MODES.find((word) => word === value);
  if (mode !== undefined) return mode;
  const words = `${NETWORK_MODES.join(", ")}, or a list (allow, presets)`;
  throw new ContentError(at, `network: expected one of ${words}, not ${shown(value)}`);
}

/** Addresses of private networks are for those to list who are in them: the file came with the project. */
function readHosts(value: unknown, at: Path): readonly string[] {
  const hosts = textsOf("a host such as example.com, *.example.com or example.com:22,443")(value, at);
  const wrong = hosts.findIndex((host) => host.includes("@"));
  if (wrong === -1) return hosts;
  throw new ContentError(
    [...at, wrong],
    `${at.join(".")}: ${shown(hosts[wrong])} has addresses, which only --allow and programs can give`,
  );
}

function textsOf(expected: string): Reader<readonly string[]> {
  return (value, at) => {
    const name = at.join(".");
    if (!Array.isArray(value)) throw new ContentError(at, `${name}: expected a list, not ${shown(value)}`);
    const wrong = value.findIndex((item) => typeof item !== "string" || item === "");
    if (wrong === -1) return value as readonly string[];
    throw new ContentError([...at, wrong], `${name}: expected ${expected}, not ${shown(value[wrong])}`);
  };
}

/** The default of the sandbox. Who cloned the project did not agree to more. */
const MOST_PIDS = 1024;

const RESOURCES = {
  memory: quantity("a size such as 512m or 1g", bytesOf),
  cpus: quantity("a number of CPUs such as 0.5 or 2", cpuQuotaOf),
  pids: quantity(`a number from 1 to ${MOST_PIDS}`, (text) => {
    const count = /^\d+$/.test(text) ? Number(text) : 0;
    return count >= 1 && count <= MOST_PIDS ? count : undefined;
  }),
  disk: quantity("a size such as 512m or 1g", bytesOf),
};

function readResources(value: unknown, at: Path): ResourceLimits {
  const { memory, cpus, pids, disk } = readMap(value, at, RESOURCES);
  return {
    ...(memory !== undefined && { memoryBytes: memory }),
    ...(cpus !== undefined && { cpuQuota: cpus }),
    ...(pids !== undefined && { pidsLimit: pids }),
    ...(disk !== undefined && { diskBytes: disk }),
  };
}

function quantity(expected: string, parse: (text: string) => number | undefined): Reader<number> {
  return (value, at) => {
    const amount = typeof value === "string" || typeof value === "number" ? parse(String(value)) : undefined;
    // Zero would mean "no limit" further down.
    if (amount !== undefined && amount > 0) return amount;
    throw new ContentError(at, `${at.join(".")}: expected ${expected}, not ${shown(value)}`);
  };
}

function readEnvironment(value: unknown, at: Path): Readonly<Record<string, string>> {
  if (!isMap(value)) throw new ContentError(at, `env: expected NAME: value, not ${shown(value)}`);
  for (const [name, text] of Object.entries(value)) {
    const here = [...at, name];
    if (!VARIABLE_NAME.test(name)) {
      throw new ContentError(here, `env: ${shown(name)} is no name of a variable (letters, digits and _)`, "key");
    }
    if (typeof text !== "string") {
      throw new ContentError(here, `env.${name}: expected a text, not ${shown(text)}; put it in quotes`);
    }
    if (text.includes("\0")) throw new ContentError(here, `env.${name}: has a NUL character`);
  }
  return value as Readonly<Record<string, string>>;
}

function readIgnore(value: unknown, at: Path): readonly string[] {
  if (!Array.isArray(value)) throw new ContentError(at, `ignore: expected a list of patterns, not ${shown(value)}`);
  for (const [index, pattern] of value.entries()) {
    if (typeof pattern === "string" && pattern !== "") continue;
    throw new ContentError([...at, index], `ignore: expected a pattern as in .gitignore, not ${shown(pattern)}`);
  }
  return value as readonly string[];
}

const AGENT = {
  program: readText,
  arguments: textsOf("a text"),
  allow: readHosts,
  secrets: (value: unknown, at: Path) => readNamed(value, at, "NAME", VARIABLE_NAME, readAgentSecret),
  env: readEnvironment,
  install: readText,
};

/** One profile by itself, as it stands in a file of its own. */
export function readAgentProfile(value: unknown, at: Path = []): AgentProfile {
  const { program, ...rest } = readMap(value, at, AGENT);
  if (program === undefined) throw new ContentError(at, `${[...at, "program"].join(".")} is missing`);
  return { program, ...rest };
}

function readAgents(value: unknown, at: Path): Readonly<Record<string, AgentProfile>> {
  return readNamed(value, at, "name", /^[a-z0-9][a-z0-9._-]{0,40}$/, readAgentProfile);
}

function readAgentSecret(value: unknown, at: Path): AgentSecret {
  const secret = readMap(value, at, { hosts: readHosts, in: readText, from: readText });
  for (const key of ["hosts", "in"] as const) {
    if (secret[key] === undefined) throw new ContentError(at, `${[...at, key].join(".")} is missing`);
  }
  return secret as AgentSecret;
}

function readNamed<Value>(
  value: unknown,
  at: Path,
  what: string,
  form: RegExp,
  read: Reader<Value>,
): Readonly<Record<string, Value>> {
  if (!isMap(value)) throw new ContentError(at, `${at.join(".")}: expected ${what}: …, not ${shown(value)}`);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const here = [...at, name];
      if (!form.test(name))
        throw new ContentError(here, `${at.join(".")}: ${shown(name)} cannot be a name here`, "key");
      return [name, read(member, here)];
    }),
  );
}

function readText(value: unknown, at: Path): string {
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  throw new ContentError(at, `${at.join(".")}: expected a text, not ${shown(value)}`);
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value in a message: as JSON, and not without end. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 80 ? `${json.slice(0, 80)}…` : json;
}

const UNITS: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** `512m`, `1g`, `1.5GiB` or plain bytes, in units of 1024; nothing for what is no size. */
export function bytesOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(text) ?? [];
  const bytes = Number(digits) * (UNITS[unit?.toLowerCase() ?? ""] ?? Number.NaN);
  return bytes <= Number.MAX_SAFE_INTEGER ? Math.floor(bytes) : undefined;
}

const PERIOD_US = 100_000;

/** `0.5` CPUs as microseconds of CPU time in each 100 ms; nothing below what the kernel takes, a millisecond. */
export function cpuQuotaOf(text: string): number | undefined {
  const quota = /^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * PERIOD_US) : Number.NaN;
  return quota >= 1000 && quota <= 1024 * PERIOD_US ? quota : undefined;
}
