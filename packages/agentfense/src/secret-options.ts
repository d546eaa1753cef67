import type { SandboxSecret, SecretPlace, SecretSource } from "@agentfense/sdk";
import { UsageError } from "./command-failure.ts";
import { option } from "./option.ts";

const SOURCE = option({
  name: "secret-from",
  value: "SOURCE",
  isRepeated: true,
  about: "NAME=env:VARIABLE, NAME=file:PATH or NAME=command:LINE: where else its value comes from",
});

/** Secrets that stay outside of the sandbox. */
export const SECRETS = [
  option({
    name: "secret",
    value: "SECRET",
    isRepeated: true,
    about: `NAME@HOST[,HOST][=PLACE]: put the value of the variable NAME here into requests to these hosts, outside
of the sandbox, where NAME holds a placeholder (may be repeated). PLACE: bearer (default), basic,
body, 'header x-api-key', 'query key'. Means the network filtered, with TLS opened for these hosts`,
  }),
  SOURCE,
] as const;

/** The same against a server, which may keep some. */
export const SERVER_SECRETS = [
  option({
    name: "secret",
    value: "SECRET",
    isRepeated: true,
    about: `a secret that the server keeps, by its name (see secret put); or NAME@HOST[,HOST][=PLACE], with the value of
the variable NAME here, for this sandbox alone (may be repeated). PLACE: bearer (default), basic,
body, 'header x-api-key', 'query key'. Means the network filtered`,
  }),
  SOURCE,
] as const;

interface SecretValues {
  readonly secret?: readonly string[] | undefined;
  readonly "secret-from"?: readonly string[] | undefined;
}

/** The secrets of a command line by their names, with where their values come from. */
export function askedSecrets({
  secret: given = [],
  "secret-from": from = [],
}: SecretValues): Readonly<Record<string, SandboxSecret>> {
  const sources = new Map(from.map(readSource));
  const secrets = new Map<string, SandboxSecret>();
  for (const text of given) {
    const { name, ...destination } = parseSecret(text, "--secret");
    if (secrets.has(name)) throw new UsageError(`--secret names ${name} twice`);
    secrets.set(name, { ...(sources.get(name) ?? { fromEnv: name }), ...destination });
  }
  const unused = [...sources.keys()].find((name) => !secrets.has(name));
  if (unused !== undefined) throw new UsageError(`--secret-from names ${unused}, and no --secret does`);
  return Object.fromEntries(secrets);
}

/** With those that the server keeps, which have a name alone. */
export function askedServerSecrets(values: SecretValues): Readonly<Record<string, SandboxSecret | "kept">> {
  const { secret: given = [] } = values;
  const kept = given.filter((text) => !text.includes("@"));
  const brought = askedSecrets({ ...values, secret: given.filter((text) => text.includes("@")) });
  const twice = kept.find((name) => Object.hasOwn(brought, name));
  if (twice !== undefined) throw new UsageError(`--secret names ${twice} twice`);
  return { ...brought, ...Object.fromEntries(kept.map((name) => [name, "kept"] as const)) };
}

/** `NAME@HOST[,HOST][=PLACE]`; `what` is what takes it. Which names, hosts and places there can be others say. */
export function parseSecret(text: string, what: string): { name: string } & Pick<SandboxSecret, "hosts" | "in"> {
  const [, name, hosts, place = "bearer"] = /^([^@=]+)@([^=]+)(?:=(.*))?$/s.exec(text) ?? [];
  if (name === undefined || hosts === undefined) {
    throw new UsageError(`${what} is NAME@HOST or NAME@HOST=PLACE, not ${JSON.stringify(text.split("=", 1)[0])}`);
  }
  return { name, hosts: hosts.split(","), in: place as SecretPlace };
}

/** `env:VARIABLE`, `file:PATH` or `command:LINE`. */
export function parseSource(text: string, complaint: string): SecretSource {
  const [, kind, of = ""] = /^(env|file|command):(.+)$/s.exec(text) ?? [];
  if (kind === undefined) throw new UsageError(complaint);
  return { [kind === "env" ? "fromEnv" : kind]: of } as unknown as SecretSource;
}

function readSource(text: string): [name: string, source: SecretSource] {
  const [, name = "", source = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  return [name, parseSource(source, "--secret-from is NAME=env:VARIABLE, NAME=file:PATH or NAME=command:LINE")];
}
