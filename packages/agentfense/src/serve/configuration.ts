import { ConfigurationError, type LoadedConfiguration, loadConfiguration } from "@agentfense/server/configuration";
import { UsageError } from "../command-failure.ts";
import type { ValuesOf } from "../option.ts";
import { type SETTING_OPTIONS, SETTINGS } from "./options.ts";

type ConfigurationFlag = Parameters<typeof loadConfiguration>[0]["flags"][number];

export type SettingValues = ValuesOf<typeof SETTING_OPTIONS>;

/** The configuration that these options, this environment and the file ask for. A mistake in it is a usage error. */
export async function readConfiguration(
  values: SettingValues,
  environment: NodeJS.ProcessEnv,
): Promise<LoadedConfiguration> {
  const file = values.config ?? (environment.AGENTFENSE_CONFIG || undefined);
  try {
    return await loadConfiguration({
      file,
      env: environment,
      flags: [...namedFlags(values), ...setFlags(values.set ?? [])],
    });
  } catch (error) {
    throw error instanceof ConfigurationError ? new UsageError(error.message) : error;
  }
}

function namedFlags(values: SettingValues): ConfigurationFlag[] {
  return Object.entries(SETTINGS).flatMap(([option, name]) => {
    const value = values[option as keyof typeof SETTINGS];
    return value === undefined ? [] : { flag: `--${option}`, name, value };
  });
}

function setFlags(assignments: readonly string[]): ConfigurationFlag[] {
  return assignments.map((assignment) => {
    const equals = assignment.indexOf("=");
    if (equals < 1) throw new UsageError(`--set takes KEY=VALUE, not ${JSON.stringify(assignment)}`);
    const name = assignment.slice(0, equals);
    return { flag: `--set ${name}`, name, value: assignment.slice(equals + 1) };
  });
}
