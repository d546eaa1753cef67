import { type Command, command } from "../command.ts";
import { option } from "../option.ts";
import { print, printJson } from "../output.ts";
import { SETTING_OPTIONS, withTwoDashes } from "../serve/options.ts";
import { json } from "../shared-options.ts";
import { tableText } from "../table.ts";

export const serve = alsoWithOneDash(
  command({
    name: "serve",
    about: `Runs the server until SIGTERM or SIGINT: codebases, sandboxes and sessions over gRPC and REST. Prints one line with its
addresses when it listens; logs to stderr. A second signal ends it at once, and the next start cleans up.

Settings come from a file, then from the environment (AGENTFENSE_SERVER_GRPC_ADDR …), then from these options; later ones
win. Everything there is to set, and where each value comes from: agentfense config print.`,
    options: {
      "": [
        ...SETTING_OPTIONS,
        option({
          name: "private",
          about: `a server for the program that starts it: gRPC on a socket that only this user can reach, no REST,
nothing kept; it ends when standard input does`,
        }),
      ],
    },
    notes: `The options of the earlier server work with one dash too: -config -grpc-addr -http-addr -codebase-path -runtime.

Exit codes: 0 after a signal or the end of its input, 1 when it cannot run or did not end in time, 2 for a mistake in the
settings.`,
    handlesClosedOutput: true,
    run: async ({ values }) => await (await import("../serve/serve.ts")).serve(values),
  }),
);

const configPrint = alsoWithOneDash(
  command({
    name: "config print",
    summary: "every setting of the server, and where its value comes from",
    about: `Every setting of the server as serve would use it with the same options and environment, and where its value comes from:
default, a line of the file, a variable, an option.`,
    options: {
      "": [...SETTING_OPTIONS, json("a list of { name, value, origin, description, variable, default } instead")],
    },
    notes: "Exit codes: 0, or 2 for a mistake in the settings.",
    async run({ values }) {
      const { readConfiguration } = await import("../serve/configuration.ts");
      const { describeConfiguration } = await import("@agentfense/server/configuration");
      const settings = describeConfiguration(await readConfiguration(values, process.env));
      if (values.json) return await printJson(settings);
      const rows = settings.map(({ name, value, origin }) => [name, showValue(value), origin]);
      await print(tableText(["KEY", "VALUE", "ORIGIN"], rows));
    },
  }),
);

export const CONFIG = [configPrint];

function alsoWithOneDash(declared: Command): Command {
  return { ...declared, run: (args, families) => declared.run(withTwoDashes(args), families) };
}

/** As the file would have it. */
function showValue(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}
