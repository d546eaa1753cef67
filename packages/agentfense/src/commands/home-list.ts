import { HomeSchema } from "@agentfense/protocol/sandbox";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJson } from "../remote/show.ts";
import { printTable } from "../table/table.ts";

const HELP = `Usage: agentfense home list [OPTIONS]

The homes that outlive sandboxes (sandbox create --home NAME), and which sandbox runs with each.

  --owner ID        administrators: those of this owner (default: of all)
`;

export const homeList = remoteCommand({
  name: "home list",
  help: HELP,
  options: { owner: { type: "string" } },
  takes: [],
  async run({ server, values, json }) {
    const { homes } = await server.sandboxes.listHomes({ ownerId: values.owner ?? "" });
    if (json) await printJson(homes.map((home) => jsonOf(HomeSchema, home)));
    else {
      const rows = homes.map(({ name, ownerId, sandboxId }) => [name, ownerId, sandboxId]);
      await printTable(["NAME", "OWNER", "SANDBOX"], rows);
    }
    return 0;
  },
});
