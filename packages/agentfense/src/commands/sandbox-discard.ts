import { DiscardChangesResponseSchema } from "@agentfense/protocol/sandbox";
import { counted } from "../changes/table.ts";
import { UsageError } from "../command.ts";
import { print } from "../output.ts";
import { changeLine } from "../remote/change-view.ts";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJson } from "../remote/show.ts";

const HELP = `Usage: agentfense sandbox discard [OPTIONS] SANDBOX PATH…
       agentfense sandbox discard --all [OPTIONS] SANDBOX

Throws away what the sandbox changed at the PATHs and below them, and has not written to its codebase.

  --all             everything it changed
`;

export const sandboxDiscard = remoteCommand({
  name: "sandbox discard",
  help: HELP,
  options: { all: { type: "boolean" } },
  takes: ["SANDBOX"],
  more: { name: "PATH" },
  async run({ server, values, given: [sandboxId], more, json }) {
    if ((values.all === true) === more.length > 0) throw new UsageError("sandbox discard takes paths, or --all");
    const answer = await server.sandboxes.discardChanges({ sandboxId, paths: [...more] });
    if (json) await printJson(jsonOf(DiscardChangesResponseSchema, answer));
    else {
      for (const change of answer.discarded) await print(`${changeLine(change)}\n`);
      await print(`${counted(answer.discarded.length, "change")} discarded\n`);
    }
    return 0;
  },
});
