import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

test.each(["sdk", "agentfense", "permission", "protocol"])("no any in what %s declares", (name) => {
  const out = mkdtempSync(join(tmpdir(), "agentfense-types-"));
  onTestFinished(() => rmSync(out, { recursive: true }));
  const project = join(out, "tsconfig.json");
  writeFileSync(project, JSON.stringify(declarationsOf(name, out)));
  const { status, stdout } = spawnSync(join(repository, "node_modules/.bin/tsc"), ["-p", project], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  const files = readdirSync(join(out, "types"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".d.ts"),
  );
  expect(files.length).toBeGreaterThan(1);
  const offenders = files.flatMap((path) => {
    const text = withoutTexts(readFileSync(join(out, "types", path), "utf8"));
    // A property may have that name.
    return /\bany\b(?!\??:)/.test(text) ? [path] : [];
  });
  expect(offenders).toEqual([]);
});

function declarationsOf(name: string, out: string): object {
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
    include: entryPoints(name),
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
