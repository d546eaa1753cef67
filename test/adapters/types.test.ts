import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
  const { status, stdout } = spawnSync(join(repository, "node_modules/.bin/tsc"), ["-p", project, "--listFilesOnly"], {
    encoding: "utf8",
  });
  expect(status).toBe(0);
  expect(stdout).toContain(`/node_modules/${version}/dist/index.d.ts`);
  expect(stdout).not.toContain("/node_modules/ai/dist/");
  const check = spawnSync(join(repository, "node_modules/.bin/tsc"), ["-p", project], { encoding: "utf8" });
  expect({ status: check.status, stdout: check.stdout }).toEqual({ status: 0, stdout: "" });
});
