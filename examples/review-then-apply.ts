// Let an agent change anything, look at what it did, keep what is fine and throw the rest away. Works on a copy of the
// project, which it removes at the end.
//
//   node examples/review-then-apply.ts

import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "agentfense";

const place = await mkdtemp(join(tmpdir(), "review-"));
try {
  const project = join(place, "project");
  await cp(join(import.meta.dirname, "project"), project, { recursive: true });
  await review(project);
} finally {
  await rm(place, { recursive: true });
}

async function review(project: string): Promise<void> {
  await using sandbox = await Sandbox.fromLocal(project, { preset: "development" });

  // The agent's work: one good change, one bad idea, one that would run on your machine behind your back.
  await sandbox.run("sed -i 's/never seen/not seen yet/' src/tracker.js");
  await sandbox.run("rm docs/carriers.md");
  await sandbox.run("mkdir -p .vscode && echo '{}' > .vscode/tasks.json");

  for await (const { change, unified } of sandbox.diff()) {
    console.log(`${change.kind} ${change.path}`);
    for (const line of unified.split("\n").filter((each) => /^[-+][^-+]/.test(each))) console.log(`  ${line}`);
  }

  const { outcomes } = await sandbox.apply({ dryRun: true });
  const sensitive = outcomes.filter((outcome) => outcome.sensitive).map(({ change }) => change.path);
  console.log("look twice at:", sensitive.join(", "));

  await sandbox.apply({ paths: ["/src"] });
  const discarded = await sandbox.discard();
  console.log("thrown away:", discarded.map(({ path }) => path).join(", "));
  console.log("left to decide:", (await sandbox.changes().toArray()).length);
  console.log(
    (await readFile(join(project, "src/tracker.js"), "utf8")).match(/not seen yet/) ? "applied" : "NOT applied",
  );
}
