import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { KEEPER_HELP, KEEPER_OPTIONS, openKeeper } from "../keys/choose.ts";
import { printJson } from "../remote/show.ts";
import { printTable } from "../table/table.ts";

const HELP = `Usage: agentfense key list [OPTIONS]

The API keys, without their secrets, which nobody has.

${KEEPER_HELP}
  --json            a list of { id, ownerId, role, name, createdAt, revokedAt, lastUsedAt } instead
  -h, --help        this text
`;

export const keyList: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, { ...KEEPER_OPTIONS, json: { type: "boolean" } });
  if (positionals.length > 0) throw new UsageError("key list takes no arguments");
  await using keeper = await openKeeper(values, process.env);
  const keys = await keeper.list();
  if (values.json) await printJson(keys);
  else {
    await printTable(
      ["ID", "OWNER", "ROLE", "NAME", "CREATED", "LAST USED", "REVOKED"],
      keys.map((key) => [key.id, key.ownerId, key.role, key.name, key.createdAt, key.lastUsedAt, key.revokedAt]),
    );
  }
  return 0;
}
