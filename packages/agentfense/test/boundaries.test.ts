import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const repository = join(import.meta.dirname, "../../..");

/** importing file, what it imports, and whether the house allows it. */
const IMPORTS: readonly (readonly [from: string, specifier: string, verdict: "allowed" | "refused"])[] = [
  ["packages/permission/src/a.ts", "./rule.ts", "allowed"],
  ["packages/permission/src/glob/a.ts", "../rule.ts", "allowed"],
  ["packages/permission/src/b.ts", "@agentfense/fuse", "refused"],
  ["packages/permission/src/c.ts", "../../fuse/src/index.ts", "refused"],
  ["packages/permission/src/d.ts", "koffi", "refused"],
  ["packages/fuse/src/a.ts", "@agentfense/permission", "refused"],
  ["packages/fuse/src/b.ts", "koffi", "refused"],
  ["packages/fuse/src/native/a.ts", "koffi", "allowed"],
  ["packages/fuse/src/native/b.ts", "@agentfense/server", "refused"],
  ["packages/server/src/isolation/a.ts", "@agentfense/fuse", "allowed"],
  ["packages/server/src/isolation/b.ts", "@agentfense/permission", "allowed"],
  ["packages/server/src/isolation/c.ts", "@agentfense/protocol", "refused"],
  ["packages/server/src/isolation/d.ts", "../runtime/sandbox.ts", "refused"],
  ["packages/server/src/isolation/bwrap/a.ts", "../../service/router.ts", "refused"],
  ["packages/server/src/isolation/bwrap/b.ts", "../backend.ts", "allowed"],
  ["packages/server/src/isolation/e.ts", "koffi", "refused"],
  ["packages/server/src/runtime/a.ts", "../isolation/backend.ts", "allowed"],
  ["packages/server/src/runtime/b.ts", "@agentfense/permission", "allowed"],
  ["packages/server/src/runtime/c.ts", "../service/router.ts", "refused"],
  ["packages/server/src/runtime/d.ts", "@agentfense/fuse", "refused"],
  ["packages/server/src/service/a.ts", "../runtime/sandbox.ts", "allowed"],
  ["packages/server/src/service/b.ts", "@agentfense/protocol", "allowed"],
  ["packages/server/src/service/c.ts", "../isolation/backend.ts", "refused"],
  ["packages/server/src/service/d.ts", "@agentfense/permission", "refused"],
  ["packages/server/src/a.ts", "./isolation/backend.ts", "allowed"],
  ["packages/server/src/b.ts", "agentfense", "refused"],
  ["packages/sdk/src/a.ts", "@agentfense/protocol/sandbox", "allowed"],
  ["packages/sdk/src/b.ts", "@agentfense/permission", "allowed"],
  ["packages/sdk/src/c.ts", "@agentfense/server", "refused"],
  ["packages/sdk/src/d.ts", "agentfense", "refused"],
  ["packages/sdk/src/e.ts", "@agentfense/server/isolation", "refused"],
  ["packages/sdk/src/client/a.ts", "../model/options.ts", "allowed"],
  ["packages/doors/src/a.ts", "@agentfense/sdk/engine", "allowed"],
  ["packages/doors/src/b.ts", "@agentfense/agent", "refused"],
  ["packages/doors/src/c.ts", "@agentfense/server", "refused"],
  ["packages/doors/src/d.ts", "@agentfense/protocol", "refused"],
  ["packages/agent/src/a.ts", "@agentfense/doors/serve", "allowed"],
  ["packages/agent/src/b.ts", "@agentfense/server", "refused"],
  ["packages/agentfense/src/a.ts", "@agentfense/server", "allowed"],
  ["packages/agentfense/src/b.ts", "@agentfense/fuse", "refused"],
  ["packages/agentfense/src/c.ts", "@agentfense/server/isolation", "allowed"],
  ["packages/agentfense/test/a.ts", "../src/cli.ts", "allowed"],
  ["packages/agentfense/test/b.ts", "../../server/src/index.ts", "refused"],
  ["test/integration/a.ts", "@agentfense/server", "allowed"],
  ["test/integration/b.ts", "../../packages/server/src/index.ts", "refused"],
  ["test/integration/c.ts", "koffi", "refused"],
  ["test/support/a.ts", "koffi", "allowed"],
];

test("Biome refuses exactly the imports that go against the one way", async () => {
  const tree = await mkdtemp(join(tmpdir(), "agentfense-boundaries-"));
  try {
    for (const name of ["biome.json", ".gitignore"]) await copyFile(join(repository, name), join(tree, name));
    for (const [from, specifier] of IMPORTS) {
      const file = join(tree, from);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, `import { it } from ${JSON.stringify(specifier)};\nexport const same = it;\n`);
    }

    const refused = await restrictedImports(tree);

    expect(refused).toEqual(
      IMPORTS.filter(([, , verdict]) => verdict === "refused")
        .map(([from]) => from)
        .sort(),
    );
  } finally {
    await rm(tree, { recursive: true });
  }
});

test("Re-exports, type imports and import() are imports too", async () => {
  const tree = await mkdtemp(join(tmpdir(), "agentfense-boundaries-"));
  try {
    for (const name of ["biome.json", ".gitignore"]) await copyFile(join(repository, name), join(tree, name));
    const folder = join(tree, "packages/permission/src");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "a.ts"), `export { it } from "@agentfense/server";\n`);
    await writeFile(join(folder, "b.ts"), `import type { It } from "@agentfense/server";\nexport type Same = It;\n`);
    await writeFile(join(folder, "c.ts"), `export const it = import("@agentfense/server");\n`);

    expect(await restrictedImports(tree)).toEqual(["a", "b", "c"].map((name) => `packages/permission/src/${name}.ts`));
  } finally {
    await rm(tree, { recursive: true });
  }
});

/** The files, sorted, in which Biome's import rule fires. */
async function restrictedImports(tree: string): Promise<string[]> {
  const biome = join(repository, "node_modules/.bin/biome");
  const args = ["lint", "--reporter=json", "--max-diagnostics=none", "--only=style/noRestrictedImports", "."];
  const output = await new Promise<string>((resolve) => {
    execFile(biome, args, { cwd: tree }, (_error, stdout) => resolve(stdout));
  });
  const report = JSON.parse(output) as { diagnostics: { category: string; location: { path: string } }[] };
  const fired = report.diagnostics.filter(({ category }) => category === "lint/style/noRestrictedImports");
  return fired.map(({ location }) => location.path).sort();
}
