import { expect, test, vi } from "vitest";
import { aWhile, eventually } from "../../../../test/support/eventually.ts";
import { CommandTimeoutError } from "../../src/errors.ts";
import type { CommandEvent } from "../../src/model/records.ts";
import { Sandbox } from "../../src/sandbox/sandbox.ts";
import { MockEngine } from "../../src/testing/index.ts";
import { begun, codeOf, openMock, text } from "./support.ts";

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
    { command: "build all", env: { MODE: "fast" }, stdin: "in", workdir: "/workspace/src", sandboxId: id },
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

test("a prepared answer also serves a single command of a longer line", async () => {
  await using mock = await openMock();
  const { engine, client, id } = mock;
  const seen: string[] = [];
  engine.onCommand("npm test", ({ workdir }) => {
    seen.push(workdir);
    return { stdout: "b\na\n", exitCode: 0 };
  });
  expect(await client.exec(id, "cd src && npm test | sort")).toMatchObject({ stdout: "a\nb\n" });
  expect(seen).toEqual(["/workspace/src"]);
  expect(engine.calls.map(({ command }) => command)).toEqual(["cd src && npm test | sort"]);
});

test("a matcher is asked once about a command that is a line of its own", async () => {
  await using mock = await openMock();
  const matcher = vi.fn(() => false);
  mock.engine.onCommand(matcher, "");
  await mock.client.exec(mock.id, "true");
  expect(matcher).toHaveBeenCalledTimes(1);
});

test("an error of a test's own function is an internal error", async () => {
  await using mock = await openMock();
  mock.engine.onCommand("x", () => {
    throw new Error("the test is wrong");
  });
  await expect(mock.client.exec(mock.id, "x")).rejects.toThrow("the mock engine failed: the test is wrong");
});

test("a timeout is a result with what was printed, and an error when it is checked", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  const result = await client.exec(id, "echo before; sleep 100; echo after", { timeoutMs: 50 });
  expect(result).toMatchObject({
    stdout: "before\n",
    exitCode: 137,
    signal: "SIGKILL",
    timedOut: true,
    success: false,
  });
  engine.onCommand("slow", { stdout: "late", delayMs: 100_000 });
  const checked = client.exec(id, "slow", { timeoutMs: 50, check: true });
  await expect(checked).rejects.toThrow(CommandTimeoutError);
  expect(await eventsOf(client.execStream(id, "echo a; sleep 100", { timeoutMs: 50 }))).toEqual({
    stdout: "a\n",
    stderr: "",
    exitCode: 137,
  });
});

test("a function that pays no heed is left behind when the time is up", async () => {
  await using mock = await openMock();
  mock.engine.onCommand("hang", () => new Promise(() => {}));
  expect(await mock.client.exec(mock.id, "hang", { timeoutMs: 50 })).toMatchObject({ timedOut: true });
});

test("a program that prints for ever meets its timeout, and the output is cut", async () => {
  await using mock = await openMock({ resources: { outputBytes: 1000 } });
  const result = await mock.client.exec(mock.id, "yes", { timeoutMs: 100 });
  expect(result).toMatchObject({ timedOut: true, truncated: true });
  expect(result.stdoutBytes.length).toBe(1000);
  expect(await mock.client.exec(mock.id, "yes > out/y", { timeoutMs: 100 })).toMatchObject({ timedOut: true });
});

test("aborting ends the command, and throws the reason", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
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

test("a reader that does not read stops the command, and one that leaves kills it", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  // What is in the file is what the command got rid of.
  const events = client.execStream(id, "yes | tee out/copy");
  const first = await events.next();
  expect(first.value).toMatchObject({ kind: "stdout" });
  // Time enough for much more, if nothing held it.
  await aWhile(300);
  expect((await client.statFile(id, "out/copy")).size).toBeLessThan(1_000_000);
  let bytes = 0;
  for await (const event of events) {
    if (event.kind !== "exit") bytes += event.data.length;
    if (bytes > 2_000_000) break;
  }
  expect((await client.statFile(id, "out/copy")).size).toBeGreaterThan(2_000_000);
  await eventually(async () => {
    const [ended] = await client.listEvents({ sandboxId: id, types: ["command_executed"] }).toArray();
    expect(ended?.data).toMatchObject({ command: "yes | tee out/copy", error: "CANCELLED" });
  });
});

test("input comes while the command runs", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  async function* typed() {
    yield Buffer.from("one\n");
    await aWhile(10);
    yield Buffer.from("two\n");
  }
  expect(await eventsOf(client.execInteractive(id, "cat | grep -n .", { stdin: typed() }))).toEqual({
    stdout: "1:one\n2:two\n",
    stderr: "",
    exitCode: 0,
  });
});

test("a command that reads no input ends while its input is open", async () => {
  await using mock = await openMock();
  await using sandbox = await Sandbox.connect(mock.id, { engine: mock.engine });
  mock.engine.onCommand("npm test", "ok\n");
  const execution = await sandbox.exec("npm test");
  expect(await execution.wait()).toMatchObject({ stdout: "ok\n", exitCode: 0 });
  const echo = await sandbox.exec("head -n 1");
  await echo.sendStdin("a line\nanother\n");
  expect(await echo.wait()).toMatchObject({ stdout: "a line\n" });
  const killed = await sandbox.exec("sleep 100");
  await begun(mock, 3);
  await killed.kill();
  await eventually(async () => {
    const events = await sandbox.client.listEvents({ sandboxId: mock.id, types: ["command_executed"] }).toArray();
    expect(events.at(-1)?.data).toMatchObject({ command: "sleep 100", error: "CANCELLED" });
  });
});

test("stopping a sandbox ends what runs in it", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
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
  expect(await codeOf(client.exec(id, "true", { env: { "a b": "c" } }))).toBe("INVALID_ARGUMENT");
  expect(await codeOf(client.exec("sb_0000000000000000", "true"))).toBe("SANDBOX_NOT_FOUND");
  expect(await codeOf(client.exec("nonsense", "true"))).toBe("INVALID_ARGUMENT");
});

test("reset makes the engine as new", async () => {
  const engine = MockEngine.withFiles({ a: "a" });
  await using mock = await openMock({ engine });
  const { client, id, codebaseId } = mock;
  engine.onCommand("x", "y");
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
