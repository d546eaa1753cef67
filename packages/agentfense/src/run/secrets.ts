import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { AgentProfile } from "@agentfense/sdk/project";
import { parseSecretRule, SandboxError, type SecretWithValue } from "@agentfense/server/isolation";
import { UsageError } from "../failure.ts";

interface SecretValues {
  readonly secret?: readonly string[] | undefined;
  readonly "secret-from"?: readonly string[] | undefined;
}

const DEFAULT_PLACE = "bearer";
const MOST_OUTPUT = 64 * 1024;

/** The secrets of a command line with their values. No error has anything of a value. */
export async function readSecrets(
  { secret: given = [], "secret-from": from = [] }: SecretValues,
  env: NodeJS.ProcessEnv,
): Promise<SecretWithValue[]> {
  const sources = new Map(from.map(readSource));
  const secrets: SecretWithValue[] = [];
  for (const text of given) {
    const [, name, hosts, place = DEFAULT_PLACE] = /^([^@=]+)@([^=]+)(?:=(.*))?$/s.exec(text) ?? [];
    if (name === undefined || hosts === undefined) {
      throw new UsageError(`--secret is NAME@HOST or NAME@HOST=PLACE, not ${JSON.stringify(text.split("=", 1)[0])}`);
    }
    const rule = asUsage(() => parseSecretRule(name, hosts.split(","), place));
    const source = sources.get(name) ?? { kind: "env", of: name };
    sources.delete(name);
    secrets.push({ ...rule, value: await SOURCES[source.kind](source.of, name, env) });
  }
  const [unused] = sources.keys();
  if (unused !== undefined) throw new UsageError(`--secret-from names ${unused}, and no --secret does`);
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

type SourceKind = "env" | "file" | "command";

function readSource(text: string): [name: string, source: { readonly kind: SourceKind; readonly of: string }] {
  const [, name, kind, of] = /^([^=]+)=(env|file|command):(.+)$/s.exec(text) ?? [];
  if (name === undefined || kind === undefined || of === undefined) {
    throw new UsageError("--secret-from is NAME=env:VARIABLE, NAME=file:PATH or NAME=command:LINE");
  }
  return [name, { kind: kind as SourceKind, of }];
}

const SOURCES: Record<SourceKind, (of: string, name: string, env: NodeJS.ProcessEnv) => Promise<string>> = {
  async env(variable, name, env) {
    const value = env[variable];
    if (value === undefined || value === "") {
      throw new UsageError(`the secret ${name} has no value: the variable ${variable} is not set here`);
    }
    return value;
  },
  async file(path, name) {
    try {
      return withoutLineEnd(await readFile(path, "utf8"));
    } catch (error) {
      throw new UsageError(`the secret ${name} cannot be read from ${path}: ${(error as NodeJS.ErrnoException).code}`);
    }
  },
  async command(line, name, env) {
    try {
      const { stdout } = await promisify(execFile)("/bin/sh", ["-c", line], { env, maxBuffer: MOST_OUTPUT });
      return withoutLineEnd(stdout);
    } catch {
      throw new UsageError(`the command that prints the secret ${name} failed`); // what it printed may be the secret
    }
  },
};

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

function asUsage<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    throw new UsageError([error.message, ...(error.hint === undefined ? [] : [error.hint])].join("; "));
  }
}
