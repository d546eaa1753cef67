// Every check a change must pass, in the order that finds the cheap mistakes first. All of them run even when one
// fails, so that one run shows everything; the tests come last, so that their counts are what a reader of the log sees.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join, relative } from "node:path";

const repository = join(import.meta.dirname, "..");

// Biome colours a log file too, letter by letter.
const colours = process.stdout.isTTY ? "--colors=force" : "--colors=off";

interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
}

const node = (tool: string, ...args: string[]): Command => {
  return { file: join(repository, "node_modules/.bin", tool), args, cwd: repository };
};
const python = (tool: string, ...args: string[]): Command => {
  return { file: join(repository, ".cache/python-sdk/bin", tool), args, cwd: join(repository, "python") };
};

interface Check {
  readonly name: string;
  readonly commands: readonly Command[];
}

const CHECKS: readonly Check[] = [
  { name: "format, lint and import boundaries", commands: [node("biome", "ci", colours, ".")] },
  { name: "types", commands: [node("tsc", "-p", "tsconfig.json")] },
  { name: "unused code and dependencies", commands: [node("knip", "--no-progress", "--no-config-hints")] },
  { name: "size", commands: [node("node", "scripts/size.ts")] },
  {
    name: "python: format and lint",
    commands: [python("ruff", "format", "--check", "."), python("ruff", "check", ".")],
  },
  {
    // What the oldest Python runs: not the adapters, whose frameworks need a newer one, nor tests. Then everything.
    name: "python: types",
    commands: [python("mypy", "--python-version", "3.9", "--exclude", "integrations/", "src"), python("mypy")],
  },
  {
    name: "python: generated code is fresh",
    commands: ["generate_wire", "generate_sync"].map((script) => python("python", `scripts/${script}.py`, "--check")),
  },
];
/** What each test came to: the last lines of the log name those that failed. */
const testReport = join(repository, ".cache/tests.json");
const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${testReport}`];
const TESTS: Check = { name: "tests", commands: [node("vitest", "run", ...reporters)] };
const PYTHON_TESTS: Check = { name: "python: tests", commands: [python("pytest")] };

// Tests start hundreds of processes of ours: with what Node compiled before they begin in half the time. Some of them belong to
// another user, for whom Node makes a directory of his own in there.
const compileCache = join(repository, ".cache/compile");
mkdirSync(compileCache, { recursive: true });
chmodSync(compileCache, 0o1777);
const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };

rmSync(testReport, { force: true }); // one of an earlier run would be told as this one's

interface Outcome {
  readonly name: string;
  readonly passed: boolean;
  readonly seconds: string;
  /** What a held check wrote. */
  readonly log: string;
}

// Side by side, since most use one CPU or wait; their output comes one after the other.
const checks = await Promise.all(CHECKS.map((check) => outcomeOf(check, "held")));
for (const { log } of checks) process.stdout.write(log);
// Python's come amid the others', which take longer: whatever fails in those is then at the end of the log.
const pythonTests = outcomeOf(PYTHON_TESTS, "held").then((outcome) => {
  process.stdout.write(outcome.log);
  return outcome;
});
const tests = await Promise.all([outcomeOf(TESTS, "shown"), pythonTests]);
const outcomes = [...checks, ...tests];

process.stdout.write("\n== summary\n");
for (const { name, passed, seconds } of outcomes) {
  process.stdout.write(`${passed ? "passed" : "FAILED"}  ${seconds.padStart(6)} s  ${name}\n`);
}
for (const line of failedTests()) process.stdout.write(`FAILED ${line}\n`);
for (const { log } of tests) process.stdout.write((log.match(/^(?:FAILED|ERROR) .*\n/gm) ?? []).join(""));
process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1;

/** File, title and first line of the error of each test that failed, and of each file that could not be loaded. */
function failedTests(): string[] {
  if (!existsSync(testReport)) return [];
  const { testResults } = JSON.parse(readFileSync(testReport, "utf8")) as {
    testResults: {
      name: string;
      status: string;
      message: string;
      assertionResults: { status: string; fullName: string; failureMessages: string[] }[];
    }[];
  };
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(repository, name);
    const failed = assertionResults.filter((test) => test.status === "failed");
    if (status === "failed" && failed.length === 0) return [`${file}: ${firstLine(message)}`];
    return failed.map(
      ({ fullName, failureMessages }) => `${file}: ${fullName}: ${firstLine(failureMessages[0] ?? "")}`,
    );
  });
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").slice(0, 300);
}

/** Runs each command, also after one that fails. */
async function outcomeOf({ name, commands }: Check, output: "shown" | "held"): Promise<Outcome> {
  const startedAtMs = performance.now();
  const chunks: string[] = [];
  const write = (chunk: string) => (output === "shown" ? process.stdout.write(chunk) : chunks.push(chunk));
  let passed = true;
  for (const { file, args, cwd } of commands) {
    write(`\n== ${name}: ${[basename(file), ...args].join(" ")}\n`);
    const child = spawn(file, args, { cwd, env, stdio: output === "shown" ? "inherit" : ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", write);
    const [code] = (await once(child, "close")) as [number | null];
    passed &&= code === 0;
  }
  return { name, passed, seconds: ((performance.now() - startedAtMs) / 1000).toFixed(1), log: chunks.join("") };
}
