import { expect, test } from "vitest";
import { runPlan } from "../../src/executors/run-plan.ts";

const MODULES = [
  "import fs from 'node:fs'",
  "export const a = 1",
  "console.log(import.meta.url)",
  "await 1",
  "const answer = await fetch('x')",
  "await (async () => 1)()",
  "for await (const x of y) {}",
  "await using x = y",
];
const SCRIPTS = [
  "console.log(1)",
  "const fs = require('node:fs')",
  "import('node:fs').then(console.log)",
  "async function f() { await (1) }\nf()",
  "(async () => { await (x) })()",
  "const await_ = 1; const octal = 010",
  "async function f() { await (1) }\nif (f) return",
  "'await (1)' // await (1)",
];

test.each(MODULES)("%j is a module", async (code) => {
  expect(await runPlan("javascript", code)).toEqual({
    kind: "program",
    argv: ["node", "--input-type=module", "-"],
    stdin: code,
  });
});

test.each(SCRIPTS)("%j is none", async (code) => {
  expect(await runPlan("javascript", code)).toMatchObject({ argv: ["node", "--input-type=commonjs", "-"] });
});

test("typescript becomes javascript of the same shape", async () => {
  expect(await runPlan("typescript", "const n: number = await 1;\nexport type T = string")).toEqual({
    kind: "program",
    argv: ["node", "--input-type=module", "-"],
    stdin: "const n         = await 1;\n                      ",
  });
});

test("typescript that is more than types is told", async () => {
  expect(await runPlan("typescript", "enum Colour { Red }")).toEqual({
    kind: "failed",
    stderr: "SyntaxError: TypeScript enum is not supported in strip-only mode\n",
  });
});

test("aborting ends the wait for types to be stripped", async () => {
  const reason = new Error("no longer wanted");
  await expect(runPlan("typescript", "1", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const leaving = new AbortController();
  const planning = runPlan("typescript", "1", { signal: leaving.signal });
  leaving.abort(reason);
  await expect(planning).rejects.toBe(reason);
});

test("a script is an argument while it fits in one, of whatever characters", async () => {
  expect(await runPlan("bash", "echo $0 'x'")).toEqual({
    kind: "program",
    argv: ["bash", "-c", "echo $0 'x'"],
    stdin: "",
  });
  const long = "#".repeat(96 * 1024 + 1);
  expect(await runPlan("bash", long)).toMatchObject({ argv: ["bash", "-c", 'eval "$(cat)"'], stdin: long });
  const wide = "ä".repeat(48 * 1024 + 1);
  expect(await runPlan("bash", wide)).toMatchObject({ stdin: wide });
});

test("a command line is the sandbox's, unless it is too long for an argument", async () => {
  expect(await runPlan("command", "ls | wc")).toEqual({ kind: "line", line: "ls | wc" });
  const long = `: ${"x".repeat(96 * 1024)}`;
  expect(await runPlan("command", long)).toMatchObject({ argv: ["sh", "-c", 'eval "$(cat)"'], stdin: long });
});
