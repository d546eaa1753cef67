import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

const PACKAGES = ["sdk", "agentfense", "permission", "protocol"] as const;

// One program for all: the packages are made of each other, and reading them is most of the work.
const out = mkdtempSync(join(tmpdir(), "agentfense-types-"));
beforeAll(() => {
  const project = join(out, "tsconfig.json");
  writeFileSync(project, JSON.stringify(declarations()));
  const { status, stdout } = spawnSync(join(repository, "node_modules/.bin/tsc"), ["-p", project], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});
afterAll(() => rmSync(out, { recursive: true }));

test.each(PACKAGES)("no any in what %s declares", (name) => {
  const files = declarationsBelow(`types/packages/${name}`);
  expect(files.length).toBeGreaterThan(1);
  expect(files.filter(saysAny)).toEqual([]);
});

test("nor in what they are made of", () => {
  const files = declarationsBelow("types");
  expect(files.length).toBeGreaterThan(1);
  expect(files.filter(saysAny)).toEqual([]);
});

function declarationsBelow(folder: string): string[] {
  const paths = readdirSync(join(out, folder), { recursive: true, encoding: "utf8" });
  return paths.filter((path) => path.endsWith(".d.ts")).map((path) => join(out, folder, path));
}

function saysAny(file: string): boolean {
  // A property may have that name.
  return /\bany\b(?!\??:)/.test(withoutTexts(readFileSync(file, "utf8")));
}

function declarations(): object {
  return {
    extends: join(repository, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: repository,
      outDir: join(out, "types"),
      typeRoots: [join(repository, "node_modules/@types")],
    },
    include: PACKAGES.flatMap(entryPoints),
  };
}

/** What the package exports; the compiler adds what that is made of. */
function entryPoints(name: string): string[] {
  const folder = join(repository, "packages", name);
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { exports: object };
  const files = (Object.values(exports) as string[]).filter((path) => path.endsWith(".ts"));
  return files.map((path) => join(folder, path));
}

function withoutTexts(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|"(?:[^"\\\n]|\\.)*"/gm, "");
}
