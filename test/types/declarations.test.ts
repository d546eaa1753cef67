import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

const PACKAGES = ["sdk", "agentfense", "permission", "protocol"];

let out: string;
beforeAll(() => {
  out = mkdtempSync(join(tmpdir(), "agentfense-types-"));
});
afterAll(() => rmSync(out, { recursive: true }));

test("no any in what the packages declare, nor in what that is made of", () => {
  const project = join(out, "tsconfig.json");
  writeFileSync(project, JSON.stringify(declarationsOf(PACKAGES)));
  const { status, stdout } = spawnSync(join(repository, "node_modules/.bin/tsc"), ["-p", project], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  const files = readdirSync(join(out, "types"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".d.ts"),
  );
  for (const name of PACKAGES) {
    expect(files.filter((path) => path.startsWith(`packages/${name}/`)).length, name).toBeGreaterThan(1);
  }
  const offenders = files.flatMap((path) => {
    const text = withoutTexts(readFileSync(join(out, "types", path), "utf8"));
    // A property may have that name.
    return /\bany\b(?!\??:)/.test(text) ? [path] : [];
  });
  expect(offenders).toEqual([]);
});

function declarationsOf(names: readonly string[]): object {
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
    include: names.flatMap(entryPoints),
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
