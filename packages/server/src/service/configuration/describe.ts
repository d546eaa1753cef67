import { CONFIGURATION_KEYS } from "./keys.ts";
import type { LoadedConfiguration } from "./load.ts";

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

/** Every setting, in the order of the schema. */
export function describeConfiguration({ config, origins }: LoadedConfiguration): readonly DescribedSetting[] {
  return [...CONFIGURATION_KEYS.values()].map(({ name, path, variable, description, kind }) => ({
    name,
    value: kind.write(path.reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], config)),
    origin: origins[name] ?? "default",
    description,
    variable,
    ...(kind.fallback === undefined ? {} : { default: kind.fallback }),
  }));
}
