import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { printJson } from "../remote/show.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense home delete [OPTIONS] NAME

Removes a home that outlives sandboxes, with all that is in it. Refused while a sandbox runs with it.

  --owner ID        administrators: whose it is
`;

export const homeDelete = remoteCommand({
  name: "home delete",
  help: HELP,
  options: { owner: { type: "string" } },
  takes: ["NAME"],
  async run({ server, values, given: [name], json }) {
    await server.sandboxes.deleteHome({ name, ownerId: values.owner ?? "" });
    await (json ? printJson({}) : print(`deleted ${printable(name)}\n`));
    return 0;
  },
});
