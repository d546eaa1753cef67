import { remoteCommand } from "../remote/command.ts";
import { showState } from "../remote/sandbox-view.ts";

export const sandboxResume = remoteCommand({
  name: "sandbox resume",
  help: "Usage: agentfense sandbox resume [OPTIONS] SANDBOX\n\nLets a paused sandbox go on where it stood.\n",
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    await showState(await server.sandboxes.resumeSandbox({ sandboxId }), json);
    return 0;
  },
});
