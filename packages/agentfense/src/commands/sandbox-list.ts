import { parseAssignments } from "../remote/assignments.ts";
import { remoteCommand } from "../remote/command.ts";
import { everyPage, PAGE_SIZE } from "../remote/pages.ts";
import { showSandboxes } from "../remote/sandbox-view.ts";
import { SANDBOX_STATES, valueFor } from "../remote/words.ts";

const HELP = `Usage: agentfense sandbox list [OPTIONS]

  --codebase ID     only those on this codebase
  --owner OWNER     only this owner's
  --status STATUS   only pending, running, stopped or error
  --label NAME=VALUE  only those with this label (may be repeated)
`;

export const sandboxList = remoteCommand({
  name: "sandbox list",
  help: HELP,
  options: {
    codebase: { type: "string" },
    owner: { type: "string" },
    status: { type: "string" },
    label: { type: "string", multiple: true },
  },
  takes: [],
  async run({ server, values, json }) {
    const filter = {
      codebaseId: values.codebase ?? "",
      ownerId: values.owner ?? "",
      status: valueFor(SANDBOX_STATES, values.status, "--status"),
      labels: parseAssignments(values.label ?? [], "--label"),
      pageSize: PAGE_SIZE,
    };
    const sandboxes = await everyPage(async (pageToken) => {
      const { sandboxes: items, nextPageToken } = await server.sandboxes.listSandboxes({ ...filter, pageToken });
      return { items, nextPageToken };
    });
    await showSandboxes(sandboxes, json);
    return 0;
  },
});
