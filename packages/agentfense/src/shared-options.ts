import { getPreset, listPresets, PresetError, VARIABLE_NAME } from "@agentfense/permission";
import { bytesOf, cpuQuotaOf, DEFAULT_PRESET, POLICY_FILE } from "@agentfense/sdk/project";
import { UsageError } from "./command-failure.ts";
import { option } from "./option.ts";

// Options that several commands have, and what their values mean.

/** What `--json` prints is for each command to say. */
export function json<const About extends string>(about: About) {
  return option({ name: "json", about });
}

export const ALL_CHANGES = option({
  name: "all",
  about: "list each of them, also many in one directory and those that DIR's .gitignore files name",
});

const presetLines = listPresets().map(({ name, description }) => `  ${name.padEnd(13)}${description}`);

/** `--preset`, with a word in front of the list of them. */
export function preset<const Begin extends string>(begin: Begin) {
  return option({
    name: "preset",
    value: "NAME",
    words: listPresets().map(({ name }) => name),
    about: [begin, ...presetLines].join("\n"),
    parse: requirePreset,
  });
}

function requirePreset(name: string): string {
  try {
    getPreset(name);
    return name;
  } catch (error) {
    if (!(error instanceof PresetError)) throw error;
    throw new UsageError(error.message, { slip: { given: name, known: listPresets().map((known) => known.name) } });
  }
}

const RULES_FORM = "a JSON or YAML list of { pattern, permission, type?, priority? }";

export function rules<const About extends string>(about: About) {
  return option({ name: "rules", value: "FILE", kind: "file", about: about.replace("RULES", RULES_FORM) });
}

/** The ways to say which rules, for a directory of this machine. */
export const RULES = [
  preset(`one of these (default: what ${POLICY_FILE} in DIR says, else ${DEFAULT_PRESET}):`),
  rules("RULES"),
  option({ name: "policy", isOn: true, about: `take no notice of ${POLICY_FILE}` }),
] as const;

export const RUNTIMES = ["bwrap", "docker"] as const;

export const RUNTIME = option({ name: "runtime", value: "NAME", words: RUNTIMES, about: "bwrap (default) or docker" });

export const IMAGE = option({ name: "image", value: "NAME", about: "docker: the image" });

export const PULL = option({ name: "pull", about: "docker: fetch the image when it is not there" });

export const NETWORKS = ["none", "filtered", "private", "host"] as const;

export const NETWORK = option({
  name: "network",
  value: "MODE",
  alone: "private",
  words: NETWORKS,
  about: `none (default), private (the internet, not this machine; what --network alone means), filtered (what
the project's policy lists, or --allow) or host`,
});

/** The hosts of a filtered network. */
export const ALLOW = [
  option({
    name: "allow",
    value: "HOST[:PORTS]",
    isRepeated: true,
    about: `let it reach this host, and only what is listed so (may be repeated): pypi.org, '*.npmjs.org',
github.com:22,443 (default ports: 443 and 80). Means the network filtered`,
  }),
  option({
    name: "allow-preset",
    value: "LIST",
    isRepeated: true,
    about: "the same for the hosts of npm, pypi, github … (may be repeated, or separated by commas)",
  }),
] as const;

/** `--env`, whose about says what the variable is for. */
export function environment<const For extends string>(what: For) {
  return option({
    name: "env",
    value: "NAME=VALUE",
    isRepeated: true,
    about: `${what} (may be repeated); NAME alone passes on the one here`,
    parse: variable,
  });
}

/** `K=V`, or `K` for the value it has here. */
function variable(text: string, spelling: string): readonly [name: string, value: string] {
  const equals = text.indexOf("=");
  const name = equals < 0 ? text : text.slice(0, equals);
  if (!VARIABLE_NAME.test(name)) {
    throw new UsageError(`${spelling} takes NAME=VALUE or NAME, not ${JSON.stringify(text)}`);
  }
  if (equals >= 0) return [name, text.slice(equals + 1)];
  const inherited = process.env[name];
  if (inherited === undefined) throw new UsageError(`${spelling} ${name}: there is no such variable here`);
  return [name, inherited];
}

export const LIMITS = [
  option({ name: "memory", value: "SIZE", about: "512m, 1g …", parse: byteSize }),
  option({ name: "cpus", value: "NUMBER", about: "0.5, 2 …", parse: cpuQuota }),
  option({
    name: "pids",
    value: "NUMBER",
    about: "processes and threads together (default: 1024, or the server's)",
    parse: count,
  }),
  option({
    name: "disk",
    value: "SIZE",
    about: "the most the changes and the home may take together",
    parse: byteSize,
  }),
] as const;

export function timeout<const About extends string>(about: About) {
  return option({ name: "timeout", value: "TIME", about, parse: duration });
}

export const WORKDIR = option({
  name: "workdir",
  value: "DIR",
  about: "where to start, absolute or relative to the workspace (default /workspace)",
});

/** The two of them that say where the server's settings are. */
export const CONFIGURATION = [
  option({
    name: "config",
    value: "FILE",
    kind: "file",
    about: "settings in YAML (default: AGENTFENSE_CONFIG, else none)",
  }),
  option({
    name: "set",
    value: "KEY=VALUE",
    isRepeated: true,
    about: "any setting by its name, such as --set server.tls.cert_file=… (may be repeated)",
  }),
] as const;

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, "": 1000, s: 1000, m: 60_000, h: 3_600_000 };

/** What a timer can wait for: 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** `30s`, `500ms`, `10m`, `1.5h`, or plain seconds, in milliseconds. */
export function duration(text: string, spelling: string): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const milliseconds = Math.ceil(Number(digits) * UNITS_MS[unit]!);
  if (milliseconds > 0 && milliseconds <= LONGEST_MS) return milliseconds;
  throw new UsageError(`${spelling} takes a time such as 30s, 10m or a number of seconds, not ${JSON.stringify(text)}`);
}

/** `0.5` CPUs as microseconds of CPU time in each 100 ms. */
function cpuQuota(text: string, spelling: string): number {
  const quota = cpuQuotaOf(text);
  if (quota !== undefined) return quota;
  throw new UsageError(`${spelling} takes a number of CPUs such as 0.5 or 2, not ${JSON.stringify(text)}`);
}

/** `512m`, `1g`, `1.5GiB` or plain bytes; the units are powers of 1024. */
export function byteSize(text: string, spelling: string): number {
  const bytes = bytesOf(text);
  if (bytes !== undefined) return bytes;
  throw new UsageError(`${spelling} takes a size such as 512m, 1g or a number of bytes, not ${JSON.stringify(text)}`);
}

/** A whole number, zero or more. */
export function count(text: string, spelling: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new UsageError(`${spelling} takes a number, not ${JSON.stringify(text)}`);
}
