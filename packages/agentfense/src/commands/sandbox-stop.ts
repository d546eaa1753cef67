import { remoteCommand } from "../remote/command.ts";
import { showState } from "../remote/sandbox-view.ts";

export const sandboxStop = remoteCommand({
  name: "sandbox stop",
  help: "Usage: agentfense sandbox stop [OPTIONS] SANDBOX\n\nEnds everything that runs in it. What it changed stays.\n",
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    await showState(await server.sandboxes.stopSandbox({ sandboxId }), json);
    return 0;
  },
});
