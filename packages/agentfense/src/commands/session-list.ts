import { remoteCommand } from "../remote/command.ts";
import { showSessions } from "../remote/session-view.ts";

export const sessionList = remoteCommand({
  name: "session list",
  help: "Usage: agentfense session list [OPTIONS] SANDBOX\n\nThe sessions of a sandbox.\n",
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    const { sessions } = await server.sandboxes.listSessions({ sandboxId });
    await showSessions(sessions, json);
    return 0;
  },
});
