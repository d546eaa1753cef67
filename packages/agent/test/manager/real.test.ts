// Managers with what they have by default, and with a pool of sandboxes: real code in real sandboxes.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { SandboxManager } from "agentfense/agent";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AutoApproveConfirmationService } from "../../src/confirmation/callback.ts";
import type { SandboxSource } from "../../src/executors/sandboxed/sandbox-source.ts";
import type { ManagerEvent } from "../../src/manager/events.ts";
import { fensePool } from "../../src/pool/sandboxes.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";

let base: string;
let engine: EmbeddedEngine;
let sandboxes: SandboxSource;
beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), "agentfense-managers-"));
  engine = await EmbeddedEngine.open();
  sandboxes = { fromLocal: (directory, options) => Sandbox.fromLocal(directory, { ...options, engine }) };
});
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  rmSync(base, { recursive: true, force: true });
});

function newWorkspace(): AgentWorkspace {
  return new AgentWorkspace("real", { directory: mkdtempSync(join(base, "workspace-")) });
}

test("harmless code runs in a subprocess in a box, all other code in a sandbox, on the same files", async () => {
  const workspace = newWorkspace();
  await using manager = new SandboxManager({ sessionId: "real", workspace, sandboxes });
  expect(await manager.execute({ code: "print(6 * 7)", language: "python" })).toMatchObject({
    success: true,
    stdout: "42\n",
    sandboxType: "subprocess",
    risk: { level: "SAFE" },
  });
  const code = "import os\nopen('out.txt', 'w').write(os.getcwd())\nprint(open('in.txt').read())";
  expect(await manager.execute({ code, language: "python", files: { "in.txt": "given" } })).toMatchObject({
    success: true,
    stdout: "given\n",
    sandboxType: "fense",
  });
  expect(await manager.workspace.readFile("out.txt")).toBe("/workspace");
  expect(readFileSync(join(workspace.directory, "in.txt"), "utf8")).toBe("given");
  await workspace.writeFile("later.txt", "from outside");
  expect(await manager.execute({ code: "cat later.txt", language: "command" })).toMatchObject({
    stdout: "from outside",
    sandboxType: "fense",
  });
});

const confirmation = new AutoApproveConfirmationService();

test("what isolated code leaves behind does not get out by way of harmless code", async () => {
  const workspace = newWorkspace();
  await using manager = new SandboxManager({ sessionId: "real", workspace, sandboxes, confirmation });
  const evil = "open('escaped', 'w').write('x'); print('escaped')";
  const names = ["json.py", "math.py", "sitecustomize.py", "usercustomize.py", "encodings.py", "__init__.py"];
  const plant = `${names.map((name) => `echo "${evil}" > ${name}`).join("\n")}
echo "console.log('escaped')" > index.js; cp index.js .noderc.js
mkdir -p node_modules/node:util; cp index.js node_modules/node:util/
echo '{ "type": "commonjs", "main": "index.js" }' > package.json`;
  expect(await manager.execute({ code: plant, language: "bash" })).toMatchObject({
    success: true,
    sandboxType: "fense",
  });
  expect(await workspace.readFile("json.py")).toContain("escaped");
  const programs = [
    { code: "print(len([1.5]))", language: "python" },
    { code: "console.log(1)", language: "javascript" },
  ] as const;
  for (const program of programs) {
    const result = await manager.execute(program);
    expect(result).toMatchObject({ sandboxType: "subprocess", success: true, stdout: "1\n", stderr: "" });
  }
  await expect(workspace.stat("escaped")).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("every language runs", async () => {
  await using manager = new SandboxManager({ sessionId: "real", workspace: newWorkspace(), sandboxes });
  const programs = {
    python: "import os; print('python')",
    javascript: "import os from 'node:os'; console.log('javascript')",
    typescript: "import os from 'node:os'; const word: string = 'typescript'; console.log(word)",
    bash: "for word in bash; do echo $word; done",
    command: "echo command | cat",
  } as const;
  for (const [language, code] of Object.entries(programs)) {
    // With a file, none of them is SAFE.
    const files = { "a.txt": "" };
    const result = await manager.execute({ code, language: language as keyof typeof programs, files });
    expect(result, language).toMatchObject({ success: true, stdout: `${language}\n`, sandboxType: "fense" });
  }
});

test("code that takes too long is ended, and one that was aborted too", async () => {
  await using manager = new SandboxManager({ sessionId: "real", workspace: newWorkspace(), sandboxes });
  expect(await manager.execute({ code: "sleep 600", language: "bash", timeoutMs: 300 })).toMatchObject({
    success: false,
    errorCode: "TIMEOUT",
    sandboxType: "fense",
  });
  const ending = new AbortController();
  manager.subscribe(({ type }) => type === "started" && ending.abort(new Error("enough")));
  await expect(manager.execute({ code: "sleep 600", language: "bash" }, { signal: ending.signal })).rejects.toThrow(
    "enough",
  );
});

test("sessions of a pool have files of their own, which go with them", async () => {
  await using pool = fensePool({ sandboxes, min: 1, max: 2 });
  await pool.start();
  {
    await using one = new SandboxManager({ sessionId: "one", pool });
    await using two = new SandboxManager({ sessionId: "two", pool });
    expect(await one.execute({ code: "echo one > mark; pwd", language: "bash" })).toMatchObject({
      stdout: "/workspace\n",
      sandboxType: "fense",
    });
    expect(await one.execute({ code: "print(open('mark').read())", language: "python" })).toMatchObject({
      stdout: "one\n\n",
    });
    await one.workspace.writeFile("seen.txt", "by both");
    expect(await one.execute({ code: "cat seen.txt", language: "command" })).toMatchObject({ stdout: "by both" });
    expect(await two.workspace.list()).toEqual([]);
  }
  await using next = new SandboxManager({ sessionId: "one", pool });
  expect(await next.workspace.list()).toEqual([]);
});

test("a session whose sandbox was ended by somebody goes on with another one", async () => {
  const events: ManagerEvent[] = [];
  await using pool = fensePool({ sandboxes, max: 1 });
  await pool.start();
  await using manager = new SandboxManager({ sessionId: "one", pool, onEvent: (event) => events.push(event) });
  await manager.execute({ code: "true", language: "bash" });
  const { sandbox } = await pool.acquire("one");
  await sandbox.destroy();
  expect(await manager.execute({ code: "echo again", language: "bash" })).toMatchObject({ stdout: "again\n" });
  expect(events.filter(({ type }) => type === "sandbox_unavailable")).toHaveLength(1);
  expect((await pool.acquire("one")).sandbox.id).not.toBe(sandbox.id);
});
