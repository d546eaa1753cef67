import { expect, test } from "vitest";
import type { CommandEvent } from "../../src/model/records.ts";
import { begun, codeOf, openMock } from "./support.ts";

test("commands of a session say so, and are answered as others are", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  const session = await client.createSession(id, { env: { MODE: "test" }, workdir: "src" });
  expect(session).toMatchObject({ sandboxId: id, status: "active", shell: "/bin/bash", closeReason: "" });
  engine.onCommand("npm test", "ok\n");
  expect(await client.sessionExec(session.id, "npm test")).toMatchObject({ stdout: "ok\n", sessionClosed: false });
  const events: CommandEvent[] = [];
  for await (const event of client.sessionExecStream(session.id, "npm test")) events.push(event);
  expect(events).toMatchObject([{ kind: "stdout" }, { kind: "exit", end: { exitCode: 0 } }]);
  const call = { command: "npm test", sessionId: session.id, workdir: "/workspace/src", env: { MODE: "test" } };
  expect(engine.calls).toMatchObject([call, call]);
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
  const { client, id, engine } = mock;
  engine.onCommand("slow", { delayMs: 100_000 }).onCommand("true", {});
  const session = await client.createSession(id);
  const result = await client.sessionExec(session.id, "slow", { timeoutMs: 50 });
  expect(result).toMatchObject({ exitCode: 130, signal: "SIGINT", timedOut: true, sessionClosed: false });
  expect((await client.sessionExec(session.id, "true")).exitCode).toBe(0);
});

test("callers take turns", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  engine.onCommand("first", () => finished.then(() => "1")).onCommand("second", "2");
  const session = await client.createSession(id);
  const both = [client.sessionExec(session.id, "first"), client.sessionExec(session.id, "second")];
  await begun(mock, 1);
  expect(engine.calls.map(({ command }) => command)).toEqual(["first"]);
  finish();
  expect((await Promise.all(both)).map(({ stdout }) => stdout)).toEqual(["1", "2"]);
});

test("a stopped sandbox closes its sessions", async () => {
  await using mock = await openMock();
  const { client, id } = mock;
  const session = await client.createSession(id, { shell: "sh" });
  expect(await codeOf(client.createSession(id, { shell: "fish" }))).toBe("INVALID_ARGUMENT");
  await client.stopSandbox(id);
  expect((await client.getSession(session.id)).closeReason).toBe("stopped");
  expect(await codeOf(client.createSession(id))).toBe("SANDBOX_NOT_RUNNING");
});

test("a session that is closed under its commands refuses those that run and those that wait", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  engine.onCommand("slow", { delayMs: 100_000 });
  const closed = await client.createSession(id);
  const stopped = await client.createSession(id);
  const calls = [closed, closed, stopped].map((session) => codeOf(client.sessionExec(session.id, "slow")));
  await begun(mock, 2);
  await client.destroySession(closed.id);
  await client.stopSandbox(id);
  expect(await Promise.all(calls)).toEqual(["SESSION_NOT_FOUND", "SESSION_NOT_FOUND", "SESSION_CLOSED"]);
});

test("aborting a command keeps the session", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  engine.onCommand("slow", { delayMs: 100_000 }).onCommand("true", {});
  const session = await client.createSession(id);
  const leaving = new AbortController();
  const running = client.sessionExec(session.id, "slow", { signal: leaving.signal });
  void begun(mock, 1).then(() => leaving.abort(new Error("enough")));
  await expect(running).rejects.toThrow("enough");
  expect((await client.sessionExec(session.id, "true")).exitCode).toBe(0);
});
