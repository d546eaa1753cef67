import { showCodebase } from "../remote/codebase-view.ts";
import { remoteCommand } from "../remote/command.ts";
import { chooseOwner } from "../remote/owner.ts";

const HELP = `Usage: agentfense codebase create [OPTIONS] NAME

Makes an empty codebase. To make one from a directory: agentfense codebase upload DIR.

  --owner OWNER     whose it is (default: the API key's owner; without a key, your name on this machine)
`;

export const codebaseCreate = remoteCommand({
  name: "codebase create",
  help: HELP,
  options: { owner: { type: "string" } },
  takes: ["NAME"],
  async run({ server, values, given: [name], json }) {
    await showCodebase(
      await server.codebases.createCodebase({ name, ownerId: chooseOwner(server, values.owner) }),
      json,
    );
    return 0;
  },
});
