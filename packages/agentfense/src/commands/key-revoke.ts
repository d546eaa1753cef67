import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { KEEPER_HELP, KEEPER_OPTIONS, openKeeper } from "../keys/choose.ts";
import { print } from "../output.ts";
import { printJson } from "../remote/show.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense key revoke [OPTIONS] ID

Ends a key, at once, also for a server that runs.

${KEEPER_HELP}
  --json            {} instead
  -h, --help        this text
`;

export const keyRevoke: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, { ...KEEPER_OPTIONS, json: { type: "boolean" } });
  const [id, ...surplus] = positionals;
  if (id === undefined || surplus.length > 0) throw new UsageError("key revoke takes the id of one key");
  await using keeper = await openKeeper(values, process.env);
  await keeper.revoke(id);
  await (values.json ? printJson({}) : print(`revoked ${printable(id)}\n`));
  return 0;
}
