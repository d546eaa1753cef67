import { type AgentProfile, InvalidConfigurationError, readSecretValue } from "@agentfense/sdk/project";
import { IsolationError, parseSecretRule, type SecretWithValue } from "@agentfense/server/isolation";
import { UsageError } from "../command-failure.ts";
import { askedSecrets } from "../secret-options.ts";

/** The secrets of a command line with their values. No error has anything of a value. */
export async function readSecrets(
  values: Parameters<typeof askedSecrets>[0],
  env: NodeJS.ProcessEnv,
): Promise<SecretWithValue[]> {
  const secrets: SecretWithValue[] = [];
  for (const [name, secret] of Object.entries(askedSecrets(values))) {
    const rule = asUsage(() => parseSecretRule(name, secret.hosts, secret.in));
    secrets.push({ ...rule, value: await readSecretValue(name, secret, env).catch(sayUsage) });
  }
  return secrets;
}

/** Those of an agent's profile whose variables are set here; one that the user names himself is his. */
export function secretsOfProfile(
  { secrets = {} }: Pick<AgentProfile, "secrets">,
  named: readonly SecretWithValue[],
  env: NodeJS.ProcessEnv,
): SecretWithValue[] {
  return Object.entries(secrets).flatMap(([name, { hosts, in: place, from = name }]) => {
    const value = env[name] || env[from];
    if (!value || named.some((secret) => secret.name === name)) return [];
    return [{ ...asUsage(() => parseSecretRule(name, hosts, place)), value }];
  });
}

function asUsage<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    return sayUsage(error);
  }
}

function sayUsage(error: unknown): never {
  if (!(error instanceof IsolationError || error instanceof InvalidConfigurationError)) throw error;
  throw new UsageError([error.message, ...(error.hint === undefined ? [] : [error.hint])].join("; "));
}
