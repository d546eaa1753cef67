import { readConfigurationFile } from "./file.ts";
import {
  CONFIGURATION_KEYS,
  ConfigurationError,
  type ConfigurationFlag,
  readEnvironment,
  readFlags,
  type Source,
} from "./keys.ts";
import { contradictions, derivedDefaults } from "./relations.ts";
import type { ServerConfig } from "./schema.ts";
import { shown } from "./wording.ts";

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

/** One setting as people see it. */
export interface DescribedSetting {
  readonly name: string;
  /** As a file would have it: "30s", "4MiB", true, ["none"]. */
  readonly value: unknown;
  readonly origin: string;
  readonly description: string;
  readonly variable: string;
  /** Absent when it depends on other settings. */
  readonly default?: unknown;
}

/** Flags over the environment over the file over the defaults. Throws `ConfigurationError` with everything that is wrong. */
export async function loadConfiguration({ file, env, flags }: ConfigurationSources): Promise<LoadedConfiguration> {
  const fromFile: Source[] = file === undefined ? [] : [await readConfigurationFile(file)];
  const sources = [...fromFile, readEnvironment(env), readFlags(flags)];
  const given = new Map(sources.flatMap(({ values }) => values).map((value) => [value.name, value]));
  const derived = derivedDefaults((name) => given.get(name)?.value, env);
  const problems = sources.flatMap((source) => source.problems);
  const tree: Tree = {};
  for (const { name, path, setting } of CONFIGURATION_KEYS.values()) {
    const own = given.get(name);
    const value = setting.read(own === undefined ? (derived.get(name) ?? setting.fallback) : own.value);
    // A default that is wrong was derived from a value that is, and that one is complained about.
    if (value === undefined && own !== undefined) {
      const place = own.origin.replace(/^(?:file|flag|environment) /, "");
      const wrong = setting.problem?.(own.value) ?? `expected ${setting.expects}, not ${shown(own.value)}`;
      problems.push(`${place}: ${name}: ${wrong}`);
    }
    place(tree, path, value);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);

  const config = tree as unknown as ServerConfig;
  const conflicts = contradictions(config);
  if (conflicts.length > 0) throw new ConfigurationError(conflicts);
  const origins = [...CONFIGURATION_KEYS.keys()].map((name) => [name, given.get(name)?.origin ?? "default"] as const);
  return { config, origins: Object.fromEntries(origins) };
}

/** Every setting, in the order of the schema. */
export function describeConfiguration({ config, origins }: LoadedConfiguration): readonly DescribedSetting[] {
  return [...CONFIGURATION_KEYS.values()].map(({ name, path, variable, setting }) => ({
    name,
    value: setting.write(path.reduce<unknown>((value, step) => (value as Tree)[step], config)),
    origin: origins[name] ?? "default",
    description: setting.description,
    variable,
    ...(setting.fallback === undefined ? {} : { default: setting.fallback }),
  }));
}

type Tree = Record<string, unknown>;

/** Only names of the schema get in, so no name of a file can be mistaken for something of JavaScript. */
function place(tree: Tree, path: readonly string[], value: unknown): void {
  let section = tree;
  for (const step of path.slice(0, -1)) {
    section[step] ??= {};
    section = section[step] as Tree;
  }
  section[path.at(-1)!] = value;
}
