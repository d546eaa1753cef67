import { CodebaseSchema } from "@agentfense/protocol/codebase";
import { remoteCommand } from "../remote/command.ts";
import { everyPage, PAGE_SIZE } from "../remote/pages.ts";
import { jsonOf, printJson, showSize, showTime } from "../remote/show.ts";
import { printTable } from "../table/table.ts";

const HELP = `Usage: agentfense codebase list [OPTIONS]

  --owner OWNER     only this owner's
`;

export const codebaseList = remoteCommand({
  name: "codebase list",
  help: HELP,
  options: { owner: { type: "string" } },
  takes: [],
  async run({ server, values, json }) {
    const codebases = await everyPage(async (pageToken) => {
      const request = { ownerId: values.owner ?? "", pageSize: PAGE_SIZE, pageToken };
      const { codebases: items, nextPageToken } = await server.codebases.listCodebases(request);
      return { items, nextPageToken };
    });
    if (json) await printJson(codebases.map((codebase) => jsonOf(CodebaseSchema, codebase)));
    else {
      await printTable(
        ["ID", "NAME", "OWNER", "VERSION", "FILES", "SIZE", "UPDATED"],
        codebases.map((codebase) => [
          codebase.id,
          codebase.name,
          codebase.ownerId,
          String(codebase.version),
          String(codebase.fileCount),
          showSize(codebase.size),
          showTime(codebase.updatedAt),
        ]),
        { right: ["VERSION", "FILES", "SIZE"] },
      );
    }
    return 0;
  },
});
