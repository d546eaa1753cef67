import { expect, test } from "vitest";
import { aWhile, eventually } from "../../../../test/support/eventually.ts";
import type { CommandEvent } from "../../src/model/records.ts";
import { begun, codeOf, type Opened, openMock, text } from "./support.ts";

async function run({ client }: Opened, sessionId: string, command: string): Promise<string> {
  const { stdout, stderr } = await client.sessionExec(sessionId, command);
  return stdout + stderr;
}

test("a session keeps its directory and variables", async () => {
  await using mock = await openMock({ env: { FROM: "sandbox" } });
  const { client, id } = mock;
  const session = await client.createSession(id, { env: { MODE: "test" }, workdir: "src" });
  expect(session).toMatchObject({ sandboxId: id, status: "active", shell: "/bin/bash", closeReason: "" });
  expect(await run(mock, session.id, "pwd; echo $MODE $FROM")).toBe("/workspace/src\ntest sandbox\n");
  await run(mock, session.id, "cd ../out; X=1; export Y=2; false");
  expect(await run(mock, session.id, "echo $? $X; pwd; env | grep ^[XY]=")).toBe("1 1\n/workspace/out\nY=2\n");
  expect((await client.exec(id, "pwd")).stdout).toBe("/workspace\n");
});

test("exit ends the session", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const session = await client.createSession(id);
  expect(await client.sessionExec(session.id, "echo a; exit 3")).toMatchObject({
    stdout: "a\n",
    exitCode: 3,
    sessionClosed: true,
  });
  expect(await client.getSession(session.id)).toMatchObject({ status: "closed", closeReason: "exited" });
  expect(await codeOf(client.sessionExec(session.id, "true"))).toBe("SESSION_CLOSED");
});

test("a session that its client closed is unknown", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const session = await client.createSession(id);
  expect((await client.listSessions(id)).map((one) => one.id)).toEqual([session.id]);
  await client.destroySession(session.id);
  expect(await client.listSessions(id)).toEqual([]);
  expect(await codeOf(client.sessionExec(session.id, "true"))).toBe("SESSION_NOT_FOUND");
});

test("a timeout interrupts the command and keeps the session", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const session = await client.createSession(id);
  await run(mock, session.id, "X=kept");
  const result = await client.sessionExec(session.id, "echo a; sleep 100", { timeoutMs: 50 });
  expect(result).toMatchObject({
    stdout: "a\n",
    exitCode: 130,
    signal: "SIGINT",
    timedOut: true,
    sessionClosed: false,
  });
  expect(await run(mock, session.id, "echo $X $?")).toBe("kept 130\n");
});

test("callers take turns", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const session = await client.createSession(id);
  const both = [client.sessionExec(session.id, "sleep 0.05; X=1"), client.sessionExec(session.id, "echo $X")];
  expect((await Promise.all(both)).map(({ stdout }) => stdout)).toEqual(["", "1\n"]);
});

test("a session streams, and prepared answers serve it", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  const session = await client.createSession(id);
  engine.onCommand("npm test", "ok\n");
  const events: CommandEvent[] = [];
  for await (const event of client.sessionExecStream(session.id, "npm test")) events.push(event);
  expect(events).toMatchObject([{ kind: "stdout" }, { kind: "exit", end: { exitCode: 0 } }]);
  expect(engine.calls).toMatchObject([{ command: "npm test", sessionId: session.id, workdir: "/workspace" }]);
});

test("an idle session closes by itself, a stopped sandbox closes all", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const idle = await client.createSession(id, { idleTimeoutMs: 20 });
  const other = await client.createSession(id, { shell: "sh" });
  expect(await codeOf(client.createSession(id, { shell: "fish" }))).toBe("INVALID_ARGUMENT");
  await eventually(async () => expect((await client.getSession(idle.id)).closeReason).toBe("idle"));
  await client.stopSandbox(id);
  expect((await client.getSession(other.id)).closeReason).toBe("stopped");
  expect(await codeOf(client.createSession(id))).toBe("SANDBOX_NOT_RUNNING");
});

test("a session that is closed under its commands refuses those that run and those that wait", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const closed = await client.createSession(id);
  const stopped = await client.createSession(id);
  const calls = [closed, closed, stopped].map((session) => codeOf(client.sessionExec(session.id, "sleep 100")));
  await begun(mock, 2);
  await client.destroySession(closed.id);
  await client.stopSandbox(id);
  expect(await Promise.all(calls)).toEqual(["SESSION_NOT_FOUND", "SESSION_NOT_FOUND", "SESSION_CLOSED"]);
});

test("aborting a command keeps the session", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const session = await client.createSession(id);
  await run(mock, session.id, "X=kept");
  const leaving = new AbortController();
  void aWhile(20).then(() => leaving.abort(new Error("enough")));
  await expect(client.sessionExec(session.id, "sleep 100", { signal: leaving.signal })).rejects.toThrow("enough");
  expect(await run(mock, session.id, "echo $X")).toBe("kept\n");
});

/** Reads on until the text is there. */
function reader(output: AsyncIterable<Uint8Array>): (until: string) => Promise<string> {
  const iterator = output[Symbol.asyncIterator]();
  return async (until) => {
    let seen = "";
    while (!seen.endsWith(until)) {
      const { done, value } = await iterator.next();
      if (done === true) throw new Error(`the output ended with ${JSON.stringify(seen)}`);
      seen += text(value);
    }
    return seen;
  };
}

test("a terminal echoes what is typed, runs lines and ends with exit", async () => {
  await using mock = await openMock();
  const terminal = await mock.client.openTerminal(mock.id, { columns: 80, rows: 24 });
  const until = reader(terminal.output);
  expect(await until("$ ")).toBe("$ ");
  await terminal.write("cd srx\u007fc\r");
  expect(await until("$ ")).toBe("cd srx\b \bc\r\n$ ");
  await terminal.resize({ columns: 100, rows: 30 });
  await terminal.write("pwd\r");
  expect(await until("$ ")).toBe("pwd\r\n/workspace/src\r\n$ ");
  await terminal.write("exit 7\r");
  await expect(until("never")).rejects.toThrow("exit 7\\r\\n");
  expect(await terminal.exit).toEqual({ exitCode: 7 });
});

test("a program in a terminal reads lines, ^C ends it and ^D ends the shell", async () => {
  await using mock = await openMock();
  const terminal = await mock.client.openTerminal(mock.id, { columns: 80, rows: 24 });
  const until = reader(terminal.output);
  await until("$ ");
  await terminal.write("cat\r");
  await until("cat\r\n");
  await terminal.write("hello\r");
  expect(await until("hello\r\nhello\r\n")).toBe("hello\r\nhello\r\n");
  await terminal.write("\u0003");
  expect(await until("$ ")).toBe("^C\r\n$ ");
  await terminal.write("echo $?\r");
  expect(await until("$ ")).toBe("echo $?\r\n130\r\n$ ");
  await terminal.write("\u0004");
  await expect(until("never")).rejects.toThrow("exit\\r\\n");
  expect(await terminal.exit).toEqual({ exitCode: 0 });
});

test("a terminal for a program ends with it", async () => {
  await using mock = await openMock();
  const argv = ["head", "-n", "1"] as const;
  const terminal = await mock.client.openTerminal(mock.id, { argv, columns: 80, rows: 24 });
  await terminal.write("a\r");
  let seen = "";
  for await (const data of terminal.output) seen += text(data);
  expect(seen).toBe("a\r\na\r\n");
  expect(await terminal.exit).toEqual({ exitCode: 0 });
});
