import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

// What is generated from proto/ is kept in the repository, so that nobody who installs the package needs the generator.

const repository = join(import.meta.dirname, "../../..");
const buf = (...args: string[]): string =>
  execFileSync(join(repository, "node_modules/.bin/buf"), args, {
    cwd: repository,
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(repository, "node_modules/.bin")}:${process.env.PATH}` },
  });
const fresh = mkdtempSync(join(tmpdir(), "agentfense-generated-"));
afterAll(() => rmSync(fresh, { recursive: true }));

function generatedIn(folder: string): Record<string, string> {
  const files = globSync("packages/{protocol,server}/src/**/generated/**/*.{js,ts}", { cwd: folder }).sort();
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
}

test("the generated code is what the generator makes of proto/ today (npm run generate)", () => {
  buf("generate", "--output", fresh);
  const made = generatedIn(fresh);
  expect(Object.keys(made).length).toBeGreaterThan(20);
  expect(generatedIn(repository)).toEqual(made);
});

test("proto/ keeps the rules of the linter", () => {
  expect(buf("lint")).toBe("");
});
