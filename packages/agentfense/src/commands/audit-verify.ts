import { stat } from "node:fs/promises";
import { openSqliteStore, verifyAudit } from "@agentfense/server/runtime";
import { type Command, CommandFailure, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { print } from "../output.ts";
import { printJson } from "../remote/show.ts";
import { CONFIGURATION_HELP, readConfiguration } from "../serve/configuration.ts";

const HELP = `Usage: agentfense audit verify [OPTIONS]

Reads the audit log in the database of the configuration from its beginning to its end, and checks that every event is there
and as it was written: each has a hash over itself and the one before. A server may be running on it.

${CONFIGURATION_HELP}
  --json            { ok, events } or { ok, sequence, reason } instead
  -h, --help        this text

Exit codes: 0 when it is whole, 1 when it is not, 2 for a mistake in the settings.
`;

const OPTIONS = {
  config: { type: "string" },
  set: { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

export const auditVerify: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  if (positionals.length > 0) throw new UsageError("audit verify takes no arguments");
  const { config } = await readConfiguration(values, process.env);
  const path = config.storage.db_path;
  // Opening would make an empty one, whose log is whole.
  await requireFile(path);
  await using store = await openSqliteStore({ path }).catch((error: Error) => {
    throw new CommandFailure(`cannot open the database ${path}: ${error.message}`);
  });
  const verdict = await verifyAudit(store);
  if (values.json) await printJson(verdict);
  else if (verdict.ok) await print(`the audit log is whole: ${verdict.events} event(s)\n`);
  else await print(`the audit log was changed: event ${verdict.sequence}: ${verdict.reason}\n`);
  return verdict.ok ? 0 : 1;
}

async function requireFile(path: string): Promise<void> {
  await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailure(`there is no database at ${path} (${error.code})`, {
      hint: "is this the server's configuration? give it with --config",
    });
  });
}
