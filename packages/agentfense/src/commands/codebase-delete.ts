import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { printJson } from "../remote/show.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense codebase delete [OPTIONS] CODEBASE

Deletes a codebase with all its versions. Refused while sandboxes use it.

  --force           destroy those sandboxes too
`;

export const codebaseDelete = remoteCommand({
  name: "codebase delete",
  help: HELP,
  options: { force: { type: "boolean" } },
  takes: ["CODEBASE"],
  async run({ server, values, given: [codebaseId], json }) {
    await server.codebases.deleteCodebase({ codebaseId, force: values.force === true });
    await (json ? printJson({}) : print(`deleted ${printable(codebaseId)}\n`));
    return 0;
  },
});
