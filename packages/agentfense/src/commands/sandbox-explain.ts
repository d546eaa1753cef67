import { type ExplainPathResponse, ExplainPathResponseSchema } from "@agentfense/protocol/sandbox";
import { print } from "../output.ts";
import { remoteCommand } from "../remote/command.ts";
import { jsonOf, printJson } from "../remote/show.ts";
import { PATTERN_TYPES, PERMISSIONS, wordFor } from "../remote/words.ts";
import { printable, printableSentence } from "../terminal.ts";

const HELP = `Usage: agentfense sandbox explain [OPTIONS] SANDBOX PATH…

For each PATH: its level, the rule that decides, and the rules that count for it but lost.
`;

export const sandboxExplain = remoteCommand({
  name: "sandbox explain",
  help: HELP,
  takes: ["SANDBOX"],
  more: { name: "PATH", atLeast: 1 },
  async run({ server, given: [sandboxId], more, json }) {
    const answers: ExplainPathResponse[] = [];
    for (const path of more) answers.push(await server.sandboxes.explainPath({ sandboxId, path }));
    if (json) await printJson(answers.map((answer) => jsonOf(ExplainPathResponseSchema, answer)));
    else await print(answers.map(describe).join("\n"));
    return 0;
  },
});

function describe(answer: ExplainPathResponse): string {
  const lines = [`${printable(answer.path)}  ${wordFor(PERMISSIONS, answer.permission)}`];
  if (answer.deciding === undefined) lines.push(`  ${printableSentence(answer.explanation)}`);
  else lines.push(`  decides  ${describeCandidate(answer.deciding)}`);
  for (const losing of answer.losing) {
    lines.push(`  loses    ${describeCandidate(losing)}: ${printableSentence(losing.reason)}`);
  }
  return `${lines.join("\n")}\n`;
}

function describeCandidate({ index, rule }: NonNullable<ExplainPathResponse["deciding"]>): string {
  if (rule === undefined) return `rule ${index}`;
  const level = wordFor(PERMISSIONS, rule.permission);
  return `rule ${index}: ${printable(rule.pattern)} ${level} (${wordFor(PATTERN_TYPES, rule.type)}, priority ${rule.priority})`;
}
