import { showNewVersion } from "../remote/codebase-view.ts";
import { remoteCommand } from "../remote/command.ts";

const HELP = `Usage: agentfense codebase rm [OPTIONS] CODEBASE PATH

Deletes a file of a codebase.

  -r, --recursive   a directory with all that is below
`;

export const codebaseRm = remoteCommand({
  name: "codebase rm",
  help: HELP,
  options: { recursive: { type: "boolean", short: "r" } },
  takes: ["CODEBASE", "PATH"],
  async run({ server, values, given: [codebaseId, filePath], json }) {
    const request = { codebaseId, filePath, recursive: values.recursive === true };
    await showNewVersion(await server.codebases.deleteFile(request), json);
    return 0;
  },
});
