import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

// The types of all frameworks are those that `tsc` checks this repository with; here the older versions of one of them.
test.each(["ai-v5", "ai-v6"])("the adapter and its program have the types of %s", (version) => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-adapter-types-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const project = join(directory, "tsconfig.json");
  const settings = {
    extends: join(repository, "tsconfig.json"),
    compilerOptions: {
      typeRoots: [join(repository, "node_modules/@types")],
      paths: { ai: [join(import.meta.dirname, "node_modules", version, "dist/index.d.ts")] },
    },
    include: [join(import.meta.dirname, "programs/ai.ts")],
  };
  writeFileSync(project, JSON.stringify(settings));
  const { status, stdout } = spawnSync(join(repository, "node_modules/.bin/tsc"), ["-p", project, "--listFiles"], {
    encoding: "utf8",
  });
  const lines = stdout.trim().split("\n");
  const files = lines.filter((line) => existsSync(line));
  expect({ status, complaints: lines.filter((line) => !files.includes(line)) }).toEqual({ status: 0, complaints: [] });
  expect(files).toContain(join(import.meta.dirname, "node_modules", version, "dist/index.d.ts"));
  expect(files.filter((file) => file.includes("/node_modules/ai/dist/"))).toEqual([]);
});
