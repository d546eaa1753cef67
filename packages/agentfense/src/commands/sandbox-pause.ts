import { remoteCommand } from "../remote/command.ts";
import { showState } from "../remote/sandbox-view.ts";

const HELP = `Usage: agentfense sandbox pause [OPTIONS] SANDBOX

Holds all that runs in it still, as it is, until agentfense sandbox resume. Its files and changes can be read, written and
applied meanwhile; commands are refused. The time limits of commands that run count on.
`;

export const sandboxPause = remoteCommand({
  name: "sandbox pause",
  help: HELP,
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    await showState(await server.sandboxes.pauseSandbox({ sandboxId }), json);
    return 0;
  },
});
