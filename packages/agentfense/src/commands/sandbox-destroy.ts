import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { printJson } from "../remote/show.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense sandbox destroy [OPTIONS] SANDBOX…

Ends sandboxes and throws away what they changed and did not write to their codebases.
`;

export const sandboxDestroy = remoteCommand({
  name: "sandbox destroy",
  help: HELP,
  takes: [],
  more: { name: "SANDBOX", atLeast: 1 },
  async run({ server, more, json }) {
    for (const sandboxId of more) {
      await server.sandboxes.destroySandbox({ sandboxId });
      if (!json) await print(`destroyed ${printable(sandboxId)}\n`);
    }
    if (json) await printJson({});
    return 0;
  },
});
