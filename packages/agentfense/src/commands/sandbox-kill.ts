import { remoteCommand } from "../remote/command.ts";
import { whichProcess } from "../remote/process-view.ts";
import { printJson } from "../remote/show.ts";

const HELP = `Usage: agentfense sandbox kill [OPTIONS] SANDBOX NUMBER|TAG

Sends a signal to a process of a sandbox and all that it started.

  --signal NAME     TERM, SIGINT, 9 … (default KILL, which nothing of it survives)
`;

export const sandboxKill = remoteCommand({
  name: "sandbox kill",
  help: HELP,
  options: { signal: { type: "string" } },
  takes: ["SANDBOX", "NUMBER|TAG"],
  async run({ server, values, given: [sandboxId, which], json }) {
    await server.sandboxes.signalProcess({ sandboxId, ...whichProcess(which), signal: values.signal ?? "KILL" });
    if (json) await printJson({});
    return 0;
  },
});
