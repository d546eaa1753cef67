import { remoteCommand } from "../remote/command.ts";
import { showSandbox } from "../remote/sandbox-view.ts";

export const sandboxShow = remoteCommand({
  name: "sandbox show",
  help: "Usage: agentfense sandbox show [OPTIONS] SANDBOX\n\nEverything about a sandbox.\n",
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    await showSandbox(await server.sandboxes.getSandbox({ sandboxId }), json);
    return 0;
  },
});
