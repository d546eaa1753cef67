// Three agents on one codebase, each with the rules its job needs: a reader that writes a report, a developer that changes
// the sources, a reviewer that sees the reader's report and no source at all. They work at the same time, each in a delta
// of its own; what one applies, the others see.
//
//   node examples/multi-agent.ts

import { join } from "node:path";
import { type Rule, Sandbox, SandboxClient } from "agentfense";

const ROLES = {
  reader: [
    { pattern: "**/*", permission: "read" },
    { pattern: "/reports/**", permission: "write" },
  ],
  developer: [
    { pattern: "**/*", permission: "read" },
    { pattern: "/src/**", permission: "write" },
  ],
  reviewer: [{ pattern: "/reports/**", permission: "read" }],
} satisfies Record<string, readonly Rule[]>;

const SECRETS: readonly Rule[] = [
  { pattern: "**/.env*", permission: "none", priority: 100 },
  { pattern: "/secrets/**", permission: "none", priority: 100 },
];

await using client = new SandboxClient();
const codebase = await client.createCodebase({ name: "parcel-tracker", ownerId: "example" });
await client.uploadDirectory(codebase.id, join(import.meta.dirname, "project"));

{
  const open = (role: keyof typeof ROLES) =>
    Sandbox.fromCodebase(codebase.id, { client, permissions: [...ROLES[role], ...SECRETS], sync: "manual" });
  await using reader = await open("reader");
  await using developer = await open("developer");
  await using reviewer = await open("reviewer");

  await Promise.all([
    reader.run("mkdir -p reports && grep -rn TODO src > reports/todo.txt", { check: true }),
    developer.run("sed -i '/TODO/d' src/events.js", { check: true }),
  ]);
  console.log("the reader still sees its own world:", (await reader.run("grep -c TODO src/events.js")).stdout.trim());
  console.log(
    "the reviewer sees before anything is applied:",
    (await reviewer.run("ls -A")).stdout.trim() || "nothing",
  );

  for (const [name, sandbox] of Object.entries({ reader, developer })) {
    const { outcomes } = await sandbox.apply();
    for (const { change, applied } of outcomes) {
      console.log(`${name}: ${change.kind} ${change.path}${applied ? "" : " (refused)"}`);
    }
  }
  console.log("the reviewer sees now:", (await reviewer.run("ls -A && cat reports/todo.txt")).stdout.trim());
  console.log("the reader sees the developer's work:", (await reader.run("grep -c TODO src/events.js")).stdout.trim());
  const tried = await reader.run("cat .env || echo > src/events.js");
  console.log("the reader tried more:", tried.stderr.trim().replaceAll("\n", "; "));
}

await client.deleteCodebase(codebase.id);
