// Every check a change must pass, in the order that finds the cheap mistakes first. All of them run even when one
// fails, so that one run shows everything; the tests come last, so that their counts are what a reader of the log sees.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const repository = join(import.meta.dirname, "..");

// Biome colours a log file too, letter by letter.
const colours = process.stdout.isTTY ? "--colors=force" : "--colors=off";

const CHECKS = [
  { name: "format, lint and import boundaries", command: ["biome", "ci", colours, "."] },
  { name: "types", command: ["tsc", "-p", "tsconfig.json"] },
  { name: "unused code and dependencies", command: ["knip", "--no-progress", "--no-config-hints"] },
  { name: "tests", command: ["vitest", "run"] },
] as const;

// Tests start hundreds of processes of ours: with what Node compiled before they begin in half the time. Some of them belong to
// another user, for whom Node makes a directory of his own in there.
const compileCache = join(repository, ".cache/compile");
mkdirSync(compileCache, { recursive: true });
chmodSync(compileCache, 0o1777);

const outcomes: { name: string; passed: boolean; seconds: string }[] = [];
for (const { name, command } of CHECKS) {
  process.stdout.write(`\n== ${name}: ${command.join(" ")}\n`);
  const startedAtMs = performance.now();
  const passed = await succeeds(command);
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  outcomes.push({ name, passed, seconds });
}

process.stdout.write("\n== summary\n");
for (const { name, passed, seconds } of outcomes) {
  process.stdout.write(`${passed ? "passed" : "FAILED"}  ${seconds.padStart(6)} s  ${name}\n`);
}
process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1;

async function succeeds([tool, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const child = spawn(join(repository, "node_modules/.bin", tool), args, { cwd: repository, stdio: "inherit", env });
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0;
}
