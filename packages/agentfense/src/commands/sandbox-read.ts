import { remoteCommand } from "../remote/command.ts";
import { writeTo } from "../remote/destination.ts";

const HELP = `Usage: agentfense sandbox read [OPTIONS] SANDBOX PATH

A file as the sandbox sees it: its rules apply. The sandbox must be running.

  -o, --output FILE into this file instead of stdout
`;

export const sandboxRead = remoteCommand({
  name: "sandbox read",
  help: HELP,
  options: { output: { type: "string", short: "o" } },
  takes: ["SANDBOX", "PATH"],
  async run({ server, values, given: [sandboxId, path] }) {
    await writeTo(values.output, server.sandboxes.readFile({ sandboxId, path }));
    return 0;
  },
});
