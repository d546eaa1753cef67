import { describeConfiguration } from "@agentfense/server/configuration";
import { type Command, type ExitCode, parseArguments, UsageError } from "../command.ts";
import { printJson } from "../remote/show.ts";
import { readConfiguration, SETTING_OPTIONS, SETTINGS_HELP, withTwoDashes } from "../serve/configuration.ts";
import { printTable } from "../table/table.ts";

const HELP = `Usage: agentfense config print [OPTIONS]

Every setting of the server as serve would use it with the same options and environment, and where its value comes from:
default, a line of the file, a variable, an option.

${SETTINGS_HELP}
  --json            a list of { name, value, origin, description, variable, default } instead
  -h, --help        this text

Exit codes: 0, or 2 for a mistake in the settings.
`;

export const configPrint: Command = { help: HELP, run };

async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = parseArguments(withTwoDashes(args), {
    ...SETTING_OPTIONS,
    json: { type: "boolean" },
  });
  if (positionals.length > 0) throw new UsageError("config print takes no arguments");
  const settings = describeConfiguration(await readConfiguration(values, process.env));
  if (values.json) await printJson(settings);
  else {
    await printTable(
      ["KEY", "VALUE", "ORIGIN"],
      settings.map(({ name, value, origin }) => [name, showValue(value), origin]),
    );
  }
  return 0;
}

/** As the file would have it. */
function showValue(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}
