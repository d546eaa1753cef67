import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { KEEPER_HELP, KEEPER_OPTIONS, openKeeper } from "../keys/choose.ts";
import { print, warn } from "../output.ts";
import { printJson } from "../remote/show.ts";

const HELP = `Usage: agentfense key create --owner OWNER [OPTIONS]

Makes an API key and prints it on stdout. This is the only time that it is shown: the server keeps a hash.

  --owner OWNER     whose codebases and sandboxes the key opens
  --role ROLE       user (default), read-only, or admin: everything of every owner, and keys
  --name NAME       to tell it from others

${KEEPER_HELP}
  --json            { key, secret } instead
  -h, --help        this text
`;

const OPTIONS = {
  ...KEEPER_OPTIONS,
  owner: { type: "string" },
  role: { type: "string" },
  name: { type: "string" },
  json: { type: "boolean" },
} as const;

export const keyCreate: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  if (positionals.length > 0) throw new UsageError("key create takes no arguments");
  if (values.owner === undefined || values.owner === "") throw new UsageError("key create needs --owner");
  const { role = "user" } = values;
  if (role !== "admin" && role !== "user" && role !== "read-only") {
    throw new UsageError(`--role is one of admin, user, read-only, not ${JSON.stringify(role)}`);
  }
  await using keeper = await openKeeper(values, process.env);
  const { key, secret } = await keeper.create({ ownerId: values.owner, role, name: values.name ?? "" });
  if (values.json) await printJson({ key, secret });
  else {
    await print(`${secret}\n`);
    warn(`key ${key.id} for ${key.ownerId} (${key.role}); keep it, it is not shown again`);
  }
  return 0;
}
