import { ChangeSchema } from "@agentfense/protocol/sandbox";
import { counted } from "../changes/table.ts";
import { print } from "../output.ts";
import { changeLine } from "../remote/change-view.ts";
import { remoteCommand } from "../remote/command.ts";
import { everyPage, PAGE_SIZE } from "../remote/pages.ts";
import { jsonOf, printJson, showSize } from "../remote/show.ts";

const HELP = `Usage: agentfense sandbox changes [OPTIONS] SANDBOX

What the sandbox changed and has not written to its codebase: A added, M modified, D deleted, R renamed.
`;

export const sandboxChanges = remoteCommand({
  name: "sandbox changes",
  help: HELP,
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    const changes = await everyPage(async (pageToken) => {
      const request = { sandboxId, pageSize: PAGE_SIZE, pageToken };
      const { changes: items, nextPageToken } = await server.sandboxes.listChanges(request);
      return { items, nextPageToken };
    });
    if (json) await printJson(changes.map((change) => jsonOf(ChangeSchema, change)));
    else {
      for (const change of changes) await print(`${changeLine(change)}  ${showSize(change.size)}\n`);
      await print(changes.length === 0 ? "no changes\n" : `${counted(changes.length, "change")}\n`);
    }
    return 0;
  },
});
