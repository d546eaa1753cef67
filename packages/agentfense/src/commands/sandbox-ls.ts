import { remoteCommand } from "../remote/command.ts";
import { showFiles } from "../remote/file-table.ts";

const HELP = `Usage: agentfense sandbox ls [OPTIONS] SANDBOX [DIRECTORY]

A directory as the sandbox sees it, with the level of each path. The sandbox must be running.

  -r, --recursive   with all that is below
`;

export const sandboxLs = remoteCommand({
  name: "sandbox ls",
  help: HELP,
  options: { recursive: { type: "boolean", short: "r" } },
  takes: ["SANDBOX"],
  more: { name: "DIRECTORY", atMost: 1 },
  async run({ server, values, given: [sandboxId], more: [path = "/"], json }) {
    const recursive = values.recursive === true;
    const { files } = await server.sandboxes.listDirectory({ sandboxId, path, recursive });
    await showFiles(files, json);
    return 0;
  },
});
