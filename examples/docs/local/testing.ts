// #region test
import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox } from "@agentfense/sdk";
import { MockEngine } from "@agentfense/sdk/testing";

/** What is under test: it takes any sandbox. */
async function report(sandbox: Sandbox): Promise<boolean> {
  const { success, stdout } = await sandbox.run("npm test");
  await sandbox.files.writeFile("/output/report.txt", stdout);
  return success;
}

test("a failing run is reported", async () => {
  await using engine = MockEngine.withFiles({ "src/a.ts": "export {};\n", "output/.keep": "", ".env": "TOKEN=x\n" });
  engine.onCommand("npm test", { stdout: "2 failed\n", exitCode: 1 });
  await using sandbox = await Sandbox.fromLocal(".", { engine, preset: "agent-safe" });

  assert.equal(await report(sandbox), false);
  assert.deepEqual(
    engine.calls.map(({ command }) => command),
    ["npm test"],
  );
  assert.deepEqual(
    (await sandbox.changes().toArray()).map(({ kind, path }) => `${kind} ${path}`),
    ["added /output/report.txt"],
  );
  await assert.rejects(sandbox.files.readFile(".env"), { code: "FILE_NOT_FOUND" }); // the rules are the real ones
});
// #endregion

// #region answers
test("an answer can look at the command and change files", async () => {
  await using engine = MockEngine.withFiles({ "package.json": "{}\n" });
  engine.onCommand(/^npm install (\S+)$/, ({ command }, files) => {
    files.write("/package.json", `{ "${command.split(" ")[2]}": "*" }\n`);
    return "added 1 package\n";
  });
  await using sandbox = await Sandbox.fromLocal(".", { engine, preset: "development" });

  assert.equal((await sandbox.run("npm install left-pad")).stdout, "added 1 package\n");
  await sandbox.apply();
  assert.deepEqual(engine.filesOf(sandbox.codebaseId), { "package.json": '{ "left-pad": "*" }\n' });
});
// #endregion
