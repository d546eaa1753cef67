import { type ApplyChangesResponse, ApplyChangesResponseSchema } from "@agentfense/protocol/sandbox";
import { counted } from "../changes/table.ts";
import { print } from "../output.ts";
import { changeLine } from "../remote/change-view.ts";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJson } from "../remote/show.ts";
import { printable } from "../terminal.ts";

const HELP = `Usage: agentfense sandbox apply [OPTIONS] SANDBOX [PATH…]

Writes what the sandbox changed into its codebase as a new version, as far as its rules allow; with PATHs, only there and
below. ! marks what a machine may run or trust unasked. Exits 1 if something was left out.

  --hold-executables  leave what ! marks in the sandbox
  --dry-run         say what would happen, and change nothing
`;

export const sandboxApply = remoteCommand({
  name: "sandbox apply",
  help: HELP,
  options: { "hold-executables": { type: "boolean" }, "dry-run": { type: "boolean" } },
  takes: ["SANDBOX"],
  more: { name: "PATH" },
  async run({ server, values, given: [sandboxId], more, json }) {
    const dryRun = values["dry-run"] === true;
    const holdExecutables = values["hold-executables"] === true;
    const answer = await server.sandboxes.applyChanges({ sandboxId, paths: [...more], dryRun, holdExecutables });
    if (json) await printJson(jsonOf(ApplyChangesResponseSchema, answer));
    else await print(describe(answer, dryRun));
    return answer.outcomes.every(({ applied }) => applied) ? 0 : 1;
  },
});

function describe({ version, outcomes }: ApplyChangesResponse, dryRun: boolean): string {
  if (outcomes.length === 0) return "no changes\n";
  const applied = outcomes.filter((outcome) => outcome.applied).length;
  const total = [
    `${counted(applied, "change")} ${dryRun ? "would be applied" : "applied"}`,
    ...(applied < outcomes.length ? [`${outcomes.length - applied} left out`] : []),
    ...(version === 0n ? [] : [`version ${version}`]),
  ];
  return `${outcomes.map(line).join("")}${total.join(", ")}\n`;
}

function line({ change, applied, reason, sensitive, conflict }: ApplyChangesResponse["outcomes"][number]): string {
  if (change === undefined) return "";
  const remarks = [
    ...(applied ? [] : ["left out"]),
    ...(reason === "" ? [] : [printable(reason)]),
    ...(conflict ? ["replaces newer work of somebody else"] : []),
    ...(sensitive ? ["a machine may run or trust this unasked"] : []),
  ];
  return `${changeLine(change)}${remarks.length > 0 ? `  (${remarks.join("; ")})` : ""}\n`;
}
