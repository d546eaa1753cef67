import { remoteCommand } from "../remote/command.ts";
import { showState } from "../remote/sandbox-view.ts";

export const sandboxStart = remoteCommand({
  name: "sandbox start",
  help: "Usage: agentfense sandbox start [OPTIONS] SANDBOX\n\nMounts its files and makes it ready for commands.\n",
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    await showState(await server.sandboxes.startSandbox({ sandboxId }), json);
    return 0;
  },
});
