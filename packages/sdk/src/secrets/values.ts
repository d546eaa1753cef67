import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { InvalidConfigurationError } from "../errors.ts";
import type { SandboxOptions, SandboxSecret, SecretSource } from "../model/options.ts";

/** As a request says it. Without a value it is one that the server keeps. */
export interface SecretFields {
  readonly name: string;
  readonly value?: string;
  readonly hosts?: string[];
  readonly place?: string;
}

/** What a request says of secrets, with the values read. No error has anything of a value. */
export async function secretFields(secrets: SandboxOptions["secrets"]): Promise<SecretFields[]> {
  if (secrets === undefined) return [];
  const entries: readonly (readonly [string, SandboxSecret | "kept"])[] = isNames(secrets)
    ? secrets.map((name) => [name, "kept"])
    : Object.entries(secrets);
  return await Promise.all(
    entries.map(async ([name, options]) => (options === "kept" ? { name } : await readSecret(name, options))),
  );
}

/** One with its value. */
export async function readSecret(name: string, options: SandboxSecret): Promise<Required<SecretFields>> {
  const { source, hosts, place } = checked(name, options);
  return { name, hosts: [...hosts], place, value: await readSecretValue(name, source, process.env) };
}

const SOURCES = ["value", "fromEnv", "file", "command"] as const;
const MOST_OUTPUT = 64 * 1024;

/** What a value is read from, here: it is nowhere else said than in the request. */
export async function readSecretValue(name: string, source: SecretSource, env: NodeJS.ProcessEnv): Promise<string> {
  if (source.value !== undefined) return source.value;
  if (source.fromEnv !== undefined) {
    const value = env[source.fromEnv];
    if (value !== undefined && value !== "") return value;
    throw refused(`the secret ${name} has no value: the variable ${source.fromEnv} is not set here`);
  }
  if (source.file !== undefined) {
    try {
      return withoutLineEnd(await readFile(source.file, "utf8"));
    } catch (error) {
      throw refused(`the secret ${name} cannot be read from ${source.file}: ${(error as NodeJS.ErrnoException).code}`);
    }
  }
  try {
    const { stdout } = await promisify(execFile)("/bin/sh", ["-c", source.command], { env, maxBuffer: MOST_OUTPUT });
    return withoutLineEnd(stdout);
  } catch {
    throw refused(`the command that prints the secret ${name} failed`); // what it printed may be the secret
  }
}

/** Which hosts and places there can be says the server; here is said what is none of the members. */
function checked(name: string, options: SandboxSecret) {
  if (typeof options !== "object" || options === null) {
    throw refused(`the secret ${name} is an object with a value and hosts, or "kept"`);
  }
  const { hosts, in: place } = options;
  const known: readonly string[] = [...SOURCES, "hosts", "in"];
  const odd = Object.keys(options).find((member) => !known.includes(member));
  if (odd !== undefined) throw refused(`the secret ${name} has ${odd}, which means nothing: ${known.join(", ")} do`);
  const given = SOURCES.filter((source) => options[source] !== undefined);
  const [source] = given;
  if (source === undefined || given.length > 1 || typeof options[source] !== "string") {
    throw refused(`the secret ${name} has one of value, fromEnv, file and command, as a text`);
  }
  if (!Array.isArray(hosts) || hosts.length === 0) {
    throw refused(`the secret ${name} needs hosts that it may be sent to: a list of names`);
  }
  if (typeof place !== "string") {
    throw refused(`the secret ${name} needs in: "header NAME", "bearer", "basic", "query KEY" or "body"`);
  }
  return { source: options as SecretSource, hosts: hosts as readonly string[], place };
}

/** Array.isArray knows nothing of lists that are read-only. */
function isNames(secrets: NonNullable<SandboxOptions["secrets"]>): secrets is readonly string[] {
  return Array.isArray(secrets);
}

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}

function refused(message: string): InvalidConfigurationError {
  return new InvalidConfigurationError(message, { code: "INVALID_ARGUMENT" });
}
