import { remoteCommand } from "../remote/command.ts";
import { showFiles } from "../remote/file-table.ts";
import { everyPage, PAGE_SIZE } from "../remote/pages.ts";
import { parseVersion } from "../remote/version.ts";

const HELP = `Usage: agentfense codebase files [OPTIONS] CODEBASE [DIRECTORY]

  -r, --recursive   with all that is below
  --version N       as it was at version N
`;

export const codebaseFiles = remoteCommand({
  name: "codebase files",
  help: HELP,
  options: { recursive: { type: "boolean", short: "r" }, version: { type: "string" } },
  takes: ["CODEBASE"],
  more: { name: "DIRECTORY", atMost: 1 },
  async run({ server, values, given: [codebaseId], more: [path = ""], json }) {
    const version = parseVersion(values.version, "--version");
    const files = await everyPage(async (pageToken) => {
      const request = {
        codebaseId,
        path,
        recursive: values.recursive === true,
        version,
        pageSize: PAGE_SIZE,
        pageToken,
      };
      const { files: items, nextPageToken } = await server.codebases.listFiles(request);
      return { items, nextPageToken };
    });
    await showFiles(files, json);
    return 0;
  },
});
