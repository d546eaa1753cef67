import { ChangeSchema } from "@agentfense/protocol/sandbox";
import { counted, countsText } from "../changes/table.ts";
import { print } from "../output.ts";
import { changeLine } from "../remote/change-view.ts";
import { remoteCommand } from "../remote/command.ts";
import { everyPage, PAGE_SIZE } from "../remote/pages.ts";
import { jsonOf, printJson, showSize } from "../remote/show.ts";

const HELP = `Usage: agentfense sandbox changes [OPTIONS] SANDBOX

What the sandbox changed and has not written to its codebase: A added, M modified, D deleted, R renamed, directory by
directory, with ! for what a machine may run or trust unasked; then, counted for each directory, I what the codebase's .gitignore files name.

  --all             every change, in path order; so does --json
`;

export const sandboxChanges = remoteCommand({
  name: "sandbox changes",
  help: HELP,
  options: { all: { type: "boolean" } },
  takes: ["SANDBOX"],
  async run({ server, values, given: [sandboxId], json }) {
    const fold = !json && values.all !== true;
    const changes = await everyPage(async (pageToken) => {
      const request = { sandboxId, pageSize: PAGE_SIZE, pageToken, fold };
      const { changes: items, nextPageToken } = await server.sandboxes.listChanges(request);
      return { items, nextPageToken };
    });
    if (json) await printJson(changes.map((change) => jsonOf(ChangeSchema, change)));
    else {
      let total = 0;
      for (const change of changes) {
        const { folded } = change;
        const facts = folded === undefined ? "" : `  (${countsText(folded)})`;
        await print(`${changeLine(change)}${facts}  ${showSize(change.size)}\n`);
        total += folded === undefined ? 1 : folded.added + folded.modified + folded.deleted + folded.renamed;
      }
      await print(total === 0 ? "no changes\n" : `${counted(total, "change")}\n`);
    }
    return 0;
  },
});
