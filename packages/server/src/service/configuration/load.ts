import { contradictions } from "./checks.ts";
import { derivedDefaults } from "./defaults.ts";
import { readEnvironment } from "./environment.ts";
import { readConfigurationFile } from "./file.ts";
import { type ConfigurationFlag, readFlags } from "./flags.ts";
import { CONFIGURATION_KEYS } from "./keys.ts";
import { ConfigurationError, shown } from "./problems.ts";
import { configurationSchema, type ServerConfig } from "./schema.ts";
import type { Setting } from "./settings.ts";

export interface ConfigurationSources {
  readonly file?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly flags: readonly ConfigurationFlag[];
}

export interface LoadedConfiguration {
  readonly config: ServerConfig;
  /** For each key: "default", "file server.yaml:12", "environment AGENTFENSE_…" or "flag --…". */
  readonly origins: Readonly<Record<string, string>>;
}

/** Flags over the environment over the file over the defaults. Throws `ConfigurationError` with everything that is wrong. */
export async function loadConfiguration({ file, env, flags }: ConfigurationSources): Promise<LoadedConfiguration> {
  const none = { settings: [], problems: [] };
  const sources = [
    file === undefined ? none : await readConfigurationFile(file),
    readEnvironment(env),
    readFlags(flags),
  ];
  const given = new Map(sources.flatMap(({ settings }) => settings).map((setting) => [setting.name, setting]));
  const derived = derivedDefaults((name) => given.get(name)?.value, env);
  const problems = sources.flatMap((source) => source.problems);
  const parsed = configurationSchema.safeParse(asTree(given, derived));
  if (!parsed.success) problems.push(...new Set(parsed.error.issues.flatMap(({ path }) => describeIssue(path, given))));
  if (problems.length > 0 || parsed.data === undefined) throw new ConfigurationError(problems);

  const config = parsed.data;
  const conflicts = contradictions(config);
  if (conflicts.length > 0) throw new ConfigurationError(conflicts);
  const origins = [...CONFIGURATION_KEYS.keys()].map((name) => [name, given.get(name)?.origin ?? "default"] as const);
  return { config, origins: Object.fromEntries(origins) };
}

interface Tree {
  [name: string]: unknown;
}

/** Only names of the schema get in, so no name of a file can be mistaken for something of JavaScript. */
function asTree(given: ReadonlyMap<string, Setting>, derived: ReadonlyMap<string, unknown>): Tree {
  const tree: Tree = { runtime: {} };
  for (const { name, path } of CONFIGURATION_KEYS.values()) {
    const value = given.has(name) ? given.get(name)?.value : derived.get(name);
    if (value === undefined) continue;
    let section = tree;
    for (const step of path.slice(0, -1)) {
      section[step] ??= {};
      section = section[step] as Tree;
    }
    section[path.at(-1)!] = value;
  }
  return tree;
}

/** A default that is wrong was derived from a value that is, and that one is complained about. */
function describeIssue(path: readonly PropertyKey[], given: ReadonlyMap<string, Setting>): string[] {
  const key = [...CONFIGURATION_KEYS.values()].find((each) => each.path.every((step, at) => path[at] === step));
  const setting = key === undefined ? undefined : given.get(key.name);
  if (key === undefined || setting === undefined) return [];
  const place = setting.origin.replace(/^(?:file|flag|environment) /, "");
  return [`${place}: ${key.name}: expected ${key.kind.expects}, not ${shown(setting.value)}`];
}
