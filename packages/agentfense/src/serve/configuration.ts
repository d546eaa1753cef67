import { ConfigurationError, type LoadedConfiguration, loadConfiguration } from "@agentfense/server/configuration";
import { UsageError } from "../command.ts";

/** Settings with options of their own, for `parseArguments`, and the keys they set. */
const OPTION_KEYS = {
  "grpc-addr": "server.grpc_addr",
  "http-addr": "server.http_addr",
  "metrics-addr": "server.metrics_addr",
  "codebase-path": "storage.codebase_path",
  "mount-path": "storage.mount_path",
  "db-path": "storage.db_path",
  runtime: "runtime.type",
  "log-level": "logging.level",
  "log-format": "logging.format",
} as const;

type SettingOption = keyof typeof OPTION_KEYS;

const CONFIGURATION_OPTIONS = { config: { type: "string" }, set: { type: "string", multiple: true } } as const;

export const SETTING_OPTIONS = {
  ...CONFIGURATION_OPTIONS,
  ...(Object.fromEntries(Object.keys(OPTION_KEYS).map((option) => [option, { type: "string" }])) as Record<
    SettingOption,
    { readonly type: "string" }
  >),
} as const;

export const CONFIGURATION_HELP = `  --config FILE     settings in YAML (default: AGENTFENSE_CONFIG, else none)
  --set KEY=VALUE   any setting by its name, such as --set server.tls.cert_file=… (may be repeated)`;

export const SETTINGS_HELP = `${CONFIGURATION_HELP}
  --grpc-addr ADDRESS     where gRPC listens (default 127.0.0.1:9000); :9000 is every interface, unix:/path a socket
  --http-addr ADDRESS     where REST listens (default 127.0.0.1:8080); "" is no REST
  --metrics-addr ADDRESS  a listener of its own for /metrics
  --codebase-path DIR     where codebases are kept
  --mount-path DIR        where the changes of sandboxes are kept
  --db-path FILE          the database
  --runtime NAME          bwrap (default) or docker
  --log-level LEVEL       debug, info (default), warn, error or fatal
  --log-format FORMAT     text (default) or json`;

type ConfigurationFlag = Parameters<typeof loadConfiguration>[0]["flags"][number];

/** What `parseArguments` gives for `SETTING_OPTIONS`. */
export type SettingValues = Readonly<Partial<Record<SettingOption | "config", string | undefined>>> & {
  readonly set?: readonly string[] | undefined;
};

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
  return Object.entries(OPTION_KEYS).flatMap(([option, name]) => {
    const value = values[option as SettingOption];
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

/** The earlier server wrote its options with one dash. */
const OLD_OPTIONS = /^-(config|grpc-addr|http-addr|codebase-path|runtime)(=|$)/;

export function withTwoDashes(args: readonly string[]): string[] {
  return args.map((argument) => (OLD_OPTIONS.test(argument) ? `-${argument}` : argument));
}
