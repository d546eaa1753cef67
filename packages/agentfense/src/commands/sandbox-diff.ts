import { FileDiffSchema } from "@agentfense/protocol/sandbox";
import { paintDiff } from "../changes/colours.ts";
import { UsageError } from "../command.ts";
import { print } from "../output.ts";
import { changeLine } from "../remote/change-view.ts";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJsonLine } from "../remote/show.ts";
import { paintFor } from "../terminal.ts";

const HELP = `Usage: agentfense sandbox diff [OPTIONS] SANDBOX [PATH…]

What the sandbox changed and has not written to its codebase, as a unified diff; with PATHs, only there and below. Control
characters in names and content are escaped. With --json, one object a line.

  --raw             a patch, as git diff --binary has it, for git apply; not to a terminal
`;

export const sandboxDiff = remoteCommand({
  name: "sandbox diff",
  help: HELP,
  options: { raw: { type: "boolean" } },
  takes: ["SANDBOX"],
  more: { name: "PATH" },
  async run({ server, values, given: [sandboxId], more, json }) {
    if (values.raw && process.stdout.isTTY) throw new UsageError("--raw goes to a file or a pipe, not to a terminal");
    const paint = paintFor(process.stdout, process.env);
    for await (const diff of server.sandboxes.diffChanges({
      sandboxId,
      paths: [...more],
      patch: values.raw === true,
    })) {
      if (json) await printJsonLine(jsonOf(FileDiffSchema, diff));
      else if (values.raw) await print(diff.unified);
      else if (diff.unified !== "") await print(paintDiff(diff.unified, paint));
      else if (diff.change !== undefined) await print(`${changeLine(diff.change)}\n`);
    }
    return 0;
  },
});
