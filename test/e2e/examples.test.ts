import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const examples = join(import.meta.dirname, "../../examples");

/** What each example prints, as far as it is always the same. */
const LINES: Readonly<Record<string, readonly string[]>> = {
  "ticket-agent.ts": [
    "src/events.js:2:// TODO: say which one wins when two have the same time",
    "cat: .env: No such file or directory",
    "cat: secrets/signing.key: No such file or directory",
    "wrote src/events.js",
    "/bin/bash: line 1: package.json: Permission denied",
    "done: latestEvent lets the last arrival win.",
    "-// TODO: say which one wins when two have the same time",
  ],
  "multi-agent.ts": [
    "the reader still sees its own world: 1",
    "the reviewer sees before anything is applied: nothing",
    "reader: added /reports",
    "reader: added /reports/todo.txt",
    "developer: modified /src/events.js",
    "the reviewer sees now: reports",
    "src/events.js:2:// TODO: say which one wins when two have the same time",
    "the reader sees the developer's work: 0",
    "the reader tried more: cat: .env: No such file or directory; /bin/bash: line 1: src/events.js: Permission denied",
  ],
  "ci-pipeline.ts": [
    "ok   mkdir -p build dist",
    "     no network, as it should be",
    "artifact: added /dist/bundle.tar (not empty)",
    "lines: 12",
  ],
  "review-then-apply.ts": [
    "added /.vscode/tasks.json",
    "deleted /docs/carriers.md",
    "modified /src/tracker.js",
    "look twice at: /.vscode, /.vscode/tasks.json",
    "left to decide: 0",
    "applied",
  ],
};

test("every example is run here, but the demo, which has a test of its own", () => {
  const there = readdirSync(examples).filter((name) => name.endsWith(".ts") && name !== "demo.ts");
  expect(there.sort()).toEqual(Object.keys(LINES).sort());
});

test.each(Object.entries(LINES))("%s does what it says, and ends by itself", async (name, lines) => {
  const child = spawn(process.execPath, [join(examples, name)], { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const printed = stdout.split("\n");
  for (const line of lines) expect(printed).toContain(line);
});
