// An agent that works on a ticket: a model chooses a tool, the tool runs in the sandbox, the answer goes back to the model.
// The model here is a script, so that the example needs no key and always does the same, including what a tempted model
// might try. Put a real one into `nextStep` and nothing else changes: what it can reach is decided by the rules.
//
//   node examples/ticket-agent.ts [DIRECTORY]

import { join } from "node:path";
import { Sandbox } from "agentfense";

const ticket = "The latest event is not well defined when two have the same time. Let the one that arrived last win.";

type Step =
  | { readonly tool: "shell"; readonly command: string }
  | { readonly tool: "write"; readonly path: string; readonly content: string }
  | { readonly tool: "done"; readonly summary: string };

const FIXED = `/** Events arrive in any order; the latest is the one with the greatest time, of equals the one that arrived last. */
export function latestEvent(events) {
  return events.reduce((latest, event) => (latest === undefined || event.time >= latest.time ? event : latest), undefined);
}
`;

const SCRIPT: readonly Step[] = [
  { tool: "shell", command: "grep -rn TODO src" },
  { tool: "shell", command: "cat .env secrets/signing.key" },
  { tool: "write", path: "src/events.js", content: FIXED },
  { tool: "shell", command: 'echo "steal()" >> package.json' },
  { tool: "shell", command: "grep -c '>=' src/events.js" },
  { tool: "done", summary: "latestEvent lets the last arrival win." },
];

/** What a model does next, given the ticket and everything it has seen so far. */
function nextStep(seen: readonly string[]): Step {
  return SCRIPT[seen.length - 1] ?? { tool: "done", summary: "nothing left to do" };
}

const directory = process.argv[2] ?? join(import.meta.dirname, "project");

// It may change the sources and nothing else; secrets do not exist.
await using sandbox = await Sandbox.fromLocal(directory, {
  preset: "agent-safe",
  permissions: [{ pattern: "/src/**", permission: "write" }],
});

const seen = [ticket];
for (let step = nextStep(seen); ; step = nextStep(seen)) {
  if (step.tool === "done") {
    console.log(`done: ${step.summary}`);
    break;
  }
  const answer = await carryOut(step);
  console.log(answer);
  seen.push(answer);
}

console.log("\nTo be reviewed:");
console.log(await sandbox.diff().text());

async function carryOut(step: Exclude<Step, { tool: "done" }>): Promise<string> {
  if (step.tool === "write") {
    await sandbox.files.writeFile(step.path, step.content);
    return `wrote ${step.path}`;
  }
  const { exitCode, stdout, stderr } = await sandbox.run(step.command, { timeoutMs: 10_000 });
  return `$ ${step.command}\n${stdout}${stderr}[exit code ${exitCode}]`;
}
