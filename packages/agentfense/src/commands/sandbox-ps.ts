import { remoteCommand } from "../remote/command.ts";
import { showProcesses } from "../remote/process-view.ts";

const HELP = `Usage: agentfense sandbox ps [OPTIONS] SANDBOX

What runs in a sandbox, by number: started processes, commands, sessions and terminals. Behind them started processes that
ended lately, with how they ended.
`;

export const sandboxPs = remoteCommand({
  name: "sandbox ps",
  help: HELP,
  takes: ["SANDBOX"],
  async run({ server, given: [sandboxId], json }) {
    const { processes } = await server.sandboxes.listProcesses({ sandboxId });
    await showProcesses(processes, json);
    return 0;
  },
});
