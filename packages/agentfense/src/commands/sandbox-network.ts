import { SandboxSchema } from "@agentfense/protocol/sandbox";
import { UsageError } from "../command.ts";
import { ALLOW_HELP, ALLOW_OPTIONS, listedHosts } from "../network-option.ts";
import { remoteCommand } from "../remote/command.ts";
import { listMessage } from "../remote/network.ts";
import { showNetwork } from "../remote/sandbox-view.ts";
import { jsonOf, printJson } from "../remote/show.ts";

const HELP = `Usage: agentfense sandbox network [OPTIONS] SANDBOX

What a sandbox with the network filtered may reach. With --allow or --allow-preset it gets this list instead, at once, also
while it runs: connections that are no longer allowed are cut.

${ALLOW_HELP}
  --none            an empty list: it reaches nothing
`;

export const sandboxNetwork = remoteCommand({
  name: "sandbox network",
  help: HELP,
  options: { ...ALLOW_OPTIONS, none: { type: "boolean" } },
  takes: ["SANDBOX"],
  async run({ server, values, given: [sandboxId], json }) {
    const list = listedHosts(values);
    if (values.none && list !== undefined) throw new UsageError("give --none or hosts, not both");
    const wanted = values.none ? {} : list;
    const sandbox =
      wanted === undefined
        ? await server.sandboxes.getSandbox({ sandboxId })
        : await server.sandboxes.updateNetwork({ sandboxId, ...listMessage(wanted) });
    await (json ? printJson(jsonOf(SandboxSchema, sandbox)) : showNetwork(sandbox));
    return 0;
  },
});
