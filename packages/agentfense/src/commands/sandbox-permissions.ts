import { SandboxSchema } from "@agentfense/protocol/sandbox";
import { remoteCommand } from "../remote/command.ts";
import { chooseRemoteRules, REMOTE_RULES_HELP, REMOTE_RULES_OPTIONS } from "../remote/rules.ts";
import { showRules } from "../remote/sandbox-view.ts";
import { jsonOf, printJson } from "../remote/show.ts";

const HELP = `Usage: agentfense sandbox permissions [OPTIONS] SANDBOX

The rules of a sandbox. With --preset or --rules it gets these instead, at once, also while it runs.

${REMOTE_RULES_HELP}
`;

export const sandboxPermissions = remoteCommand({
  name: "sandbox permissions",
  help: HELP,
  options: REMOTE_RULES_OPTIONS,
  takes: ["SANDBOX"],
  async run({ server, values, given: [sandboxId], json }) {
    const rules = await chooseRemoteRules(values);
    const sandbox =
      rules === undefined
        ? await server.sandboxes.getSandbox({ sandboxId })
        : await server.sandboxes.updatePermissions({ sandboxId, ...rules });
    await (json ? printJson(jsonOf(SandboxSchema, sandbox)) : showRules(sandbox.permissions));
    return 0;
  },
});
