import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identityOf, reasonAgainst } from "../../../../../test/support/identity.ts";
import { removeTree } from "../../../src/isolation/filesystem/remove-tree.ts";

const reason = reasonAgainst("user");

function place(): string {
  return mkdtempSync(join(tmpdir(), "agentfense-remove-"));
}

test("a tree deeper than PATH_MAX, with names that are no text, goes", async () => {
  const home = place();
  const dig = `import os; os.chdir(${JSON.stringify(home)})
for i in range(1200):
  os.mkdir(b"d" * 40); os.mkdir(b"carried-%d" % i); open(b"\\xff\\xfe", "w").close(); os.chdir(b"d" * 40)`;
  execFileSync("python3", ["-c", dig]);
  await removeTree(home);
  expect(existsSync(home)).toBe(false);
});

test("links are removed, not followed; files and absent places are fine", async () => {
  const home = place();
  const outside = place();
  writeFileSync(join(outside, "kept"), "x");
  mkdirSync(join(home, "a/b"), { recursive: true });
  symlinkSync(outside, join(home, "a/link"));
  symlinkSync(outside, join(home, "a/b/link"));
  symlinkSync(outside, join(home, "top"));
  await removeTree(join(home, "top"));
  await removeTree(home);
  await removeTree(home);
  await removeTree("/agentfense-no-such-directory/x");
  expect([existsSync(home), existsSync(join(outside, "kept"))]).toEqual([false, true]);
  await removeTree(outside);
});

test.skipIf(reason !== undefined)(`modes do not stop an ordinary user${reason ? ` (skipped: ${reason})` : ""}`, () => {
  const code = `
    import { mkdtempSync, mkdirSync, writeFileSync, chmodSync, existsSync } from "node:fs";
    import { removeTree } from ${JSON.stringify(join(import.meta.dirname, "../../../src/isolation/filesystem/remove-tree.ts"))};
    const home = mkdtempSync("/tmp/agentfense-remove-");
    mkdirSync(home + "/a/b/c", { recursive: true });
    writeFileSync(home + "/a/b/c/file", "x");
    for (const path of ["/a/b/c", "/a/b", "/a", ""]) chmodSync(home + path, 0);
    await removeTree(home);
    process.stdout.write(String(existsSync(home)));`;
  const args = ["--input-type=module", "-e", code];
  const output = execFileSync(process.execPath, args, { ...identityOf("user"), cwd: import.meta.dirname });
  expect(output.toString()).toBe("false");
});
