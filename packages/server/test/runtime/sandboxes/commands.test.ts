import { describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import type { ExecPart } from "../../../src/runtime/sandboxes/api.ts";
import { ALICE, line, refusal, SandboxesFixture, type SandboxesFixtureOptions } from "./fixture.ts";

async function running(options: SandboxesFixtureOptions = {}): Promise<{ place: SandboxesFixture; id: string }> {
  const place = await SandboxesFixture.open(options);
  const { id } = await place.sandboxes.create(ALICE, place.request());
  await place.sandboxes.start(ALICE, id);
  return { place, id };
}

const SCRIPT: SandboxesFixtureOptions = {
  answer: (command) => {
    if (command === "fail") return { stdout: "out", stderr: "err", exitCode: 3 };
    if (command === "hang") return { stdout: "begun", durationMs: Number.POSITIVE_INFINITY };
    return { stdout: command };
  },
};

describe("a command", () => {
  test("that fails is a result, and is in the audit log", async () => {
    const seen: unknown[] = [];
    const { place, id } = await running({ ...SCRIPT, observe: { exec: (_ms, outcome) => seen.push(outcome) } });
    await using _place = place;
    const { durationMs, ...answer } = await place.sandboxes.exec(ALICE, id, line("fail"));
    expect(answer).toEqual({
      exitCode: 3,
      timedOut: false,
      truncated: false,
      outOfMemory: false,
      sessionClosed: false,
      syncedVersion: 0,
      syncProblems: [],
      stdout: Buffer.from("out"),
      stderr: Buffer.from("err"),
    });
    const [event] = await place.events("command_executed");
    expect(event).toMatchObject({
      ownerId: "alice",
      keyId: "key_a",
      sandboxId: id,
      data: { command: "fail", exit_code: 3, duration_ms: Math.round(durationMs), timed_out: false },
    });
    expect(seen).toEqual(["exited"]);
  });

  test("that takes too long is an answer too, and so is a limit that is no limit", async () => {
    const { place, id } = await running(SCRIPT);
    await using _place = place;
    const answer = await place.sandboxes.exec(ALICE, id, line("hang", { timeoutMs: 30 }));
    expect(answer).toMatchObject({ timedOut: true, stdout: Buffer.from("begun") });
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e300]) {
      expect((await place.sandboxes.exec(ALICE, id, line("x", { timeoutMs }))).exitCode).toBe(0);
    }
    expect((await place.events("resource_limit_exceeded"))[0]?.data).toMatchObject({ limit: "time" });
  });

  test("that is cancelled ends as CANCELLED", async () => {
    const { place, id } = await running(SCRIPT);
    await using _place = place;
    const leaving = new AbortController();
    void aWhile(30).then(() => leaving.abort());
    const { signal } = leaving;
    expect((await refusal(place.sandboxes.exec(ALICE, id, line("hang", { signal })))).code).toBe("CANCELLED");
    expect((await place.events("command_executed"))[0]?.data).toMatchObject({ error: "CANCELLED" });
  });

  test("streams, and ends with its exit", async () => {
    const { place, id } = await running(SCRIPT);
    await using _place = place;
    const parts: ExecPart[] = [];
    for await (const part of place.sandboxes.execStream(ALICE, id, line("fail"))) parts.push(part);
    expect(parts.map(({ kind }) => kind).sort()).toEqual(["exit", "stderr", "stdout"]);
    expect(parts.at(-1)).toMatchObject({ kind: "exit", end: { exitCode: 3, sessionClosed: false } });
  });

  test("whose reader leaves is killed and told once", async () => {
    const { place, id } = await running(SCRIPT);
    await using _place = place;
    for await (const part of place.sandboxes.execStream(ALICE, id, line("hang"))) {
      expect(part).toEqual({ kind: "stdout", data: Buffer.from("begun") });
      break;
    }
    const events = await place.events("command_executed");
    expect(events.map(({ data }) => data.error)).toEqual(["CANCELLED"]);
  });

  test.each([
    ["", "command is required"],
    [" \n", "command is required"],
    ["a\0b", "command contains a NUL character"],
    ["x".repeat(200_000), "command is longer than 131071 bytes"],
  ])("that is none is refused (%#)", async (command, message) => {
    const { place, id } = await running();
    await using _place = place;
    expect(await refusal(place.sandboxes.exec(ALICE, id, line(command)))).toEqual({
      code: "INVALID_ARGUMENT",
      message,
    });
  });

  test("keeps its first 4 KiB in the audit log", async () => {
    const { place, id } = await running();
    await using _place = place;
    await place.sandboxes.exec(ALICE, id, line("é".repeat(5000)));
    expect((await place.events("command_executed"))[0]?.data.command).toBe(`${"é".repeat(2048)}…`);
  });
});

describe("a session", () => {
  const SESSION = { shell: "", env: {}, workdir: "" };
  const NOT_FOUND = { code: "SESSION_NOT_FOUND", message: "session not found" };

  test("lives from command to command until it is closed, and then never was", async () => {
    const { place, id } = await running(SCRIPT);
    await using _place = place;
    const { sandboxes } = place;
    const session = await sandboxes.createSession(ALICE, id, SESSION);
    expect(session).toMatchObject({ status: "ACTIVE", shell: "/bin/bash", sandboxId: id });
    expect(await sandboxes.getSession(ALICE, session.id)).toEqual(session);
    expect((await sandboxes.sessionExec(ALICE, session.id, { command: "fail" })).exitCode).toBe(3);
    const parts: ExecPart[] = [];
    for await (const part of sandboxes.sessionExecStream(ALICE, session.id, { command: "hello" })) parts.push(part);
    expect(parts.at(-1)).toMatchObject({ kind: "exit", end: { exitCode: 0, sessionClosed: false } });
    expect(await sandboxes.listSessions(ALICE, id)).toHaveLength(1);
    await sandboxes.destroySession(ALICE, session.id);
    for (const call of [
      sandboxes.getSession(ALICE, session.id),
      sandboxes.destroySession(ALICE, session.id),
      sandboxes.sessionExec(ALICE, session.id, { command: "x" }),
    ]) {
      expect(await refusal(call)).toEqual(NOT_FOUND);
    }
    expect(await sandboxes.listSessions(ALICE, id)).toEqual([]);
    const types = (await place.events("session_created", "session_closed", "session_duration")).map(({ type }) => type);
    expect(types).toEqual(["session_created", "session_closed", "session_duration"]);
  });

  test("ends with its sandbox, and says so", async () => {
    const { place, id } = await running();
    await using _place = place;
    const { sandboxes } = place;
    const session = await sandboxes.createSession(ALICE, id, SESSION);
    await sandboxes.stop(ALICE, id);
    expect(await sandboxes.getSession(ALICE, session.id)).toMatchObject({ status: "CLOSED", closeReason: "stopped" });
    expect(await refusal(sandboxes.sessionExec(ALICE, session.id, { command: "x" }))).toEqual({
      code: "SESSION_CLOSED",
      message: "session is closed: its sandbox was stopped",
    });
  });

  test("that nobody asks anything ends by itself", async () => {
    const { place, id } = await running();
    await using _place = place;
    const { sandboxes } = place;
    const session = await sandboxes.createSession(ALICE, id, { ...SESSION, idleTimeoutMs: 20 });
    await eventually(async () =>
      expect(await sandboxes.getSession(ALICE, session.id)).toMatchObject({
        status: "CLOSED",
        closeReason: "idle",
      }),
    );
    await sandboxes.destroySession(ALICE, session.id);
  });

  test("is one of a limited number", async () => {
    const { place, id } = await running({ defaults: { maxSessionsPerSandbox: 2 } });
    await using _place = place;
    const { sandboxes } = place;
    const made = await Promise.allSettled([1, 2, 3].map(() => sandboxes.createSession(ALICE, id, SESSION)));
    expect(made.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect(made[2]).toMatchObject({ reason: { code: "LIMIT_EXCEEDED" } });
    const [first] = await sandboxes.listSessions(ALICE, id);
    await sandboxes.destroySession(ALICE, first!.id);
    expect((await sandboxes.createSession(ALICE, id, SESSION)).status).toBe("ACTIVE");
  });

  test("takes no shell that is none", async () => {
    const { place, id } = await running();
    await using _place = place;
    for (const shell of ["-c", "/etc/passwd", "../bash"]) {
      expect((await refusal(place.sandboxes.createSession(ALICE, id, { ...SESSION, shell }))).code).toBe(
        "INVALID_ARGUMENT",
      );
    }
  });
});
