import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");

test("every message, field, enum value and method of the earlier client is in our contract, with its number and type", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentfense-descriptors-"));
  try {
    const set = join(folder, "contract.binpb");
    execFileSync(join(repository, "node_modules/.bin/buf"), ["build", "--output", set], { cwd: repository });
    const script = join(repository, "test/python/earlier_contract.py");
    const output = execFileSync(join(repository, ".cache/python/bin/python"), [script, set], { encoding: "utf8" });
    const lines = output.trim().split("\n");
    expect(lines.slice(0, -1)).toEqual([]);
    expect(Number(lines.at(-1)?.replace("compared ", ""))).toBeGreaterThan(100);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
