import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { CommandTimeoutError } from "../../src/errors.ts";
import type { CommandEvent } from "../../src/model/records.ts";
import { Sandbox } from "../../src/sandbox/sandbox.ts";
import { MockEngine } from "../../src/testing/index.ts";
import { begun, codeOf, openMock, text } from "./support.ts";

const SLOW = { delayMs: 100_000 };

async function eventsOf(
  events: AsyncIterable<CommandEvent>,
): Promise<{ stdout: string; stderr: string; exitCode: number }> {
  const seen = { stdout: "", stderr: "", exitCode: -1 };
  for await (const event of events) {
    if (event.kind === "exit") seen.exitCode = event.end.exitCode;
    else seen[event.kind] += text(event.data);
  }
  return seen;
}

test("a prepared answer is what the command prints and does", async () => {
  await using mock = await openMock();
  const { engine, client, id } = mock;
  engine.onCommand("npm test", "all passed\n");
  engine.onCommand(/^git /, { stderr: "not a repository\n", exitCode: 128 });
  engine.onCommand(({ argv }) => argv?.[0] === "node", { signal: "SIGSEGV" });
  expect(await client.exec(id, "npm test")).toMatchObject({ stdout: "all passed\n", exitCode: 0, success: true });
  expect(await client.exec(id, "git status")).toMatchObject({ stderr: "not a repository\n", exitCode: 128 });
  expect(await client.exec(id, ["node", "x.js"])).toMatchObject({ exitCode: 139, signal: "SIGSEGV" });
  expect(await client.exec(id, "npm tests")).toMatchObject({ exitCode: 127 });
});

test("the last answer that matches counts", async () => {
  await using mock = await openMock();
  const { engine, client, id } = mock;
  engine.onCommand(/test/, "first").onCommand(/test$/g, "second");
  for (const _ of [1, 2]) expect((await client.exec(id, "npm test")).stdout).toBe("second");
  expect((await client.exec(id, "npm test -- x")).stdout).toBe("first");
});

test("a function sees the command, its input and the files under the rules", async () => {
  await using mock = await openMock({ env: { LEVEL: "1" } });
  const { engine, client, id } = mock;
  engine.onCommand(/^build/, async (command, files) => {
    files.write("out/deep/report.txt", `${command.env.MODE} ${await command.readInput()} ${files.list("src")}`);
    expect(files.exists("secrets/private.key")).toBe(false);
    expect(() => files.read("docs/plan.md")).toThrow("Permission denied");
    expect(() => files.write("src/a.ts", "x")).toThrow("Permission denied");
    return { stdout: files.read("src/a.ts").slice(0, 3) };
  });
  const result = await client.exec(id, "build all", { env: { MODE: "fast" }, stdin: "in", workdir: "src" });
  expect(result.stdout).toBe("one");
  expect(text(await client.readFileBytes(id, "out/deep/report.txt"))).toBe("fast in a.ts");
  expect(engine.calls).toMatchObject([
    { command: "build all", env: { LEVEL: "1", MODE: "fast" }, stdin: "in", workdir: "/workspace/src", sandboxId: id },
  ]);
});

test("an answer leaves files behind, as far as the rules allow", async () => {
  await using mock = await openMock();
  const { engine, client, id } = mock;
  engine.onCommand("make", { stdout: "made\n", files: { "out/dist/a.js": "a", "out/old.txt": null, "src/a.ts": "x" } });
  expect(await client.exec(id, "make")).toMatchObject({
    stdout: "made\n",
    stderr: "/bin/bash: line 1: src/a.ts: Permission denied\n",
    exitCode: 1,
  });
  const changes = await client.listChanges(id).toArray();
  expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "added /out/dist",
    "added /out/dist/a.js",
    "deleted /out/old.txt",
  ]);
});

test("an error of a test's own function is an internal error", async () => {
  await using mock = await openMock();
  mock.engine.onCommand("x", () => {
    throw new Error("the test is wrong");
  });
  await expect(mock.client.exec(mock.id, "x")).rejects.toThrow("the mock engine failed: the test is wrong");
});

test("what no answer was prepared for is not found, with what to do", async () => {
  await using mock = await openMock();
  const result = await mock.client.exec(mock.id, "cat src/a.ts");
  expect(result).toMatchObject({ stdout: "", exitCode: 127 });
  expect(result.stderr).toBe("command not found: the mock engine has no answer to it; prepare one with onCommand\n");
});

test("a timeout is a result, and an error when it is checked", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  engine.onCommand("slow", { stdout: "late", delayMs: 100_000 });
  const killed = { stdout: "", exitCode: 137, signal: "SIGKILL", timedOut: true, success: false };
  expect(await client.exec(id, "slow", { timeoutMs: 50 })).toMatchObject(killed);
  const checked = client.exec(id, "slow", { timeoutMs: 50, check: true });
  await expect(checked).rejects.toThrow(CommandTimeoutError);
  const streamed = await eventsOf(client.execStream(id, "slow", { timeoutMs: 50 }));
  expect(streamed).toEqual({ stdout: "", stderr: "", exitCode: 137 });
});

test("a function that pays no heed is left behind when the time is up", async () => {
  await using mock = await openMock();
  mock.engine.onCommand("hang", () => new Promise(() => {}));
  expect(await mock.client.exec(mock.id, "hang", { timeoutMs: 50 })).toMatchObject({ timedOut: true });
});

test("aborting ends the command, and throws the reason", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  mock.engine.onCommand("sleep 100", SLOW);
  const reason = new Error("enough");
  const controller = new AbortController();
  const running = client.exec(id, "sleep 100", { signal: controller.signal });
  running.catch(() => {}); // looked at below
  await begun(mock, 1);
  controller.abort(reason);
  await expect(running).rejects.toBe(reason);
  await eventually(async () => {
    const events = await client.listEvents({ sandboxId: id, types: ["command_executed"] }).toArray();
    expect(events.map(({ data }) => data)).toMatchObject([{ command: "sleep 100", exit_code: -1, error: "CANCELLED" }]);
  });
});

test("input comes while the command runs", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  engine.onCommand("wc -l", async ({ readInput }) => `${(await readInput()).split("\n").length - 1}\n`);
  async function* typed() {
    yield Buffer.from("one\n");
    await begun(mock, 1);
    yield Buffer.from("two\n");
  }
  const events = client.execInteractive(id, "wc -l", { stdin: typed() });
  expect(await eventsOf(events)).toEqual({ stdout: "2\n", stderr: "", exitCode: 0 });
});

test("a command that reads no input ends while its input is open", async () => {
  await using mock = await openMock();
  await using sandbox = await Sandbox.connect(mock.id, { engine: mock.engine });
  mock.engine.onCommand("npm test", "ok\n").onCommand("sleep 100", SLOW);
  const execution = await sandbox.exec("npm test");
  expect(await execution.wait()).toMatchObject({ stdout: "ok\n", exitCode: 0 });
  const killed = await sandbox.exec("sleep 100");
  await begun(mock, 2);
  await killed.kill();
  await eventually(async () => {
    const events = await sandbox.client.listEvents({ sandboxId: mock.id, types: ["command_executed"] }).toArray();
    expect(events.at(-1)?.data).toMatchObject({ command: "sleep 100", error: "CANCELLED" });
  });
});

test("stopping a sandbox ends what runs in it", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  mock.engine.onCommand("sleep 100", SLOW);
  const running = client.exec(id, "sleep 100");
  await begun(mock, 1);
  await client.stopSandbox(id);
  expect(await running).toMatchObject({ exitCode: 137, signal: "SIGKILL", timedOut: false });
});

test("what cannot be right is refused", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  expect(await codeOf(client.exec(id, " "))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.exec(id, "true", { workdir: "nope" }))).toBe("WORKDIR_UNUSABLE");
  expect(await codeOf(client.exec("sb_0000000000000000", "true"))).toBe("SANDBOX_NOT_FOUND");
});

test("reset makes the engine as new", async () => {
  const engine = MockEngine.withFiles({ a: "a" });
  await using mock = await openMock({ engine });
  const { client, id, codebaseId } = mock;
  engine.onCommand("x", "y").onCommand("sleep 100", SLOW);
  const running = client.exec(id, "sleep 100");
  const ended = running.catch((error: unknown) => error);
  await begun(mock, 1);
  await client.exec(id, "x");
  engine.reset();
  expect(await ended).toMatchObject({ exitCode: 137 });
  expect(engine.calls).toEqual([]);
  expect(await codeOf(client.getSandbox(id))).toBe("SANDBOX_NOT_FOUND");
  expect(await codeOf(client.getCodebase(codebaseId))).toBe("CODEBASE_NOT_FOUND");
  expect(await client.listEvents().toArray()).toEqual([]);
  const again = await openMock({ engine });
  expect(await client.exec(again.id, "x")).toMatchObject({ exitCode: 127 });
  expect(engine.filesOf(await engine.openDirectory("/wherever"))).toEqual({ a: "a" });
});
