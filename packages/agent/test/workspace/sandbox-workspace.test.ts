import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "agentfense";
import { expect, test } from "vitest";
import { SandboxWorkspace } from "../../src/workspace/sandbox-workspace.ts";
import { describeWorkspace, failing } from "./contract.ts";

describeWorkspace("SandboxWorkspace", async () => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-workspace-"));
  const sandbox = await Sandbox.fromLocal(directory, { permissions: [{ pattern: "/**", permission: "write" }] });
  return {
    workspace: new SandboxWorkspace(sandbox),
    small: new SandboxWorkspace(sandbox, { maxFileBytes: 1000, maxListEntries: 5 }),
    directory,
    mode: async (path) => (await sandbox.files.stat(path)).mode & 0o7777,
    close: async () => {
      await sandbox[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
});

test("the rules apply: what is hidden is not there, what may be read is not written", async () => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-workspace-"));
  try {
    await using sandbox = await Sandbox.fromLocal(directory, {
      permissions: [
        { pattern: "/**", permission: "read" },
        { pattern: "/only.txt", permission: "write" },
        { pattern: "/secrets/**", permission: "none" },
      ],
    });
    const workspace = new SandboxWorkspace(sandbox);
    mkdirSync(join(directory, "secrets"));
    writeFileSync(join(directory, "secrets/key"), "secret");
    writeFileSync(join(directory, "readable.txt"), "text");
    writeFileSync(join(directory, "only.txt"), "old");
    expect(await failing(workspace.readFile("secrets/key"))).toBe("NOT_FOUND");
    expect(await failing(workspace.stat("secrets"))).toBe("NOT_FOUND");
    expect((await workspace.list("", { recursive: true })).map(({ path }) => path)).toEqual([
      "only.txt",
      "readable.txt",
    ]);
    expect(await failing(workspace.writeFile("readable.txt", "x"))).toBe("NOT_PERMITTED");
    expect(await failing(workspace.delete("readable.txt"))).toBe("NOT_PERMITTED");
    expect(await failing(workspace.writeFile("new.txt", "x"))).toBe("NOT_PERMITTED");
    // Nothing may be written beside it: it is written in place.
    await workspace.writeFile("only.txt", "new");
    expect(await workspace.readFile("only.txt")).toBe("new");
    expect(readFileSync(join(directory, "only.txt"), "utf8")).toBe("old");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
