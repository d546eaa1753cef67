import { option } from "../option.ts";
import { serverCommand } from "../remote/command.ts";
import { tableText } from "../table.ts";
import { printable } from "../terminal.ts";

const list = serverCommand({
  name: "home list",
  summary: "homes that outlive sandboxes",
  about: "The homes that outlive sandboxes (sandbox create --home NAME), and which sandbox runs with each.",
  options: {
    "": [option({ name: "owner", value: "ID", about: "administrators: those of this owner (default: of all)" })],
  },
  jsonForm: { list: "homes" },
  async run({ client, values: { owner } }) {
    const homes = await client.listHomes({ ownerId: owner });
    return tableText(
      ["NAME", "OWNER", "SANDBOX"],
      homes.map(({ name, ownerId, sandboxId }) => [name, ownerId, sandboxId]),
    );
  },
});

const remove = serverCommand({
  name: "home delete",
  summary: "remove a home that outlives sandboxes",
  about: "Removes a home that outlives sandboxes, with all that is in it. Refused while a sandbox runs with it.",
  options: { "": [option({ name: "owner", value: "ID", about: "administrators: whose it is" })] },
  takes: ["NAME"],
  async run({ client, values: { owner }, given: [name] }) {
    await client.deleteHome(name, { ownerId: owner });
    return `deleted ${printable(name)}\n`;
  },
});

export const HOME = [list, remove];
