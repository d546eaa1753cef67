import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { abortedSoon, aWhile, eventually, HANG_MS } from "../../../../../test/support/eventually.ts";
import { type HeldTimeout, heldTimeout } from "../../../../../test/support/held-timeout.ts";
import type { ExecOutcome } from "../../../src/isolation/exec/api.ts";
import type { BoxSession } from "../../../src/isolation/session/api.ts";
import { errorCode, openSession, place, shells } from "./fixture.ts";
import { childrenOf, isRunning, stateOf } from "./local-shell.ts";

/** Runs a command whose time is up as soon as the condition holds, which must come true unless the command ends by itself. */
async function execUntil(
  session: BoxSession,
  command: string,
  limit: HeldTimeout,
  isTime: (soFar: { readonly stdout: string }) => boolean,
): Promise<Partial<ExecOutcome> & { stdout: string }> {
  const soFar = { stdout: "" };
  let outcome: ExecOutcome | undefined;
  const running = (async () => {
    for await (const event of session.execStream({ command, timeoutMs: limit.ms })) {
      if (event.kind === "stdout") soFar.stdout += String(event.data);
      else if (event.kind === "exit") outcome = event.outcome;
    }
  })();
  await Promise.race([running, eventually(() => outcome !== undefined || isTime(soFar))]);
  if (outcome === undefined) limit.pass();
  await running;
  return { ...outcome, ...soFar };
}

const PATIENT = "trap '' INT; echo ready; while :; do sleep 0.05; done";
const STUBBORN = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done";

describe.each(shells)("time in a session with $title", (shell) => {
  // What is to be interrupted says itself that it runs: a signal that comes while the shell starts it may be lost on both.
  test.each([
    ["a program", "sh -c 'echo partial; exec sleep 30'; echo not reached"],
    ["a loop of the shell", "echo partial; while :; do :; done; echo not reached\necho nor this"],
    [
      "nested functions",
      "echo partial; f() { sleep 0.01; }; g() { while :; do f; done; }; while :; do g; done; echo not reached",
    ],
    ["wait", "echo partial; sleep 30 & wait; echo not reached"],
    ["a pipeline", "sh -c 'echo partial; exec sleep 30' | cat; echo not reached"],
    ["a substitution", "{ x=$(echo partial >&9; while :; do :; done); } 9>&1; echo not reached"],
    ["a subshell", "(echo partial; while :; do :; done); echo not reached"],
    ["an inner eval", "echo partial; eval 'while :; do :; done'; echo not reached"],
  ])("%s is interrupted, its output kept, and the shell stays", async (_what, command) => {
    await using session = await openSession(shell, { stageMs: HANG_MS });
    await session.run("kept=1");
    using limit = heldTimeout();
    const result = await execUntil(session.session, command, limit, ({ stdout }) => stdout === "partial\n");
    expect(result).toMatchObject({ exitCode: 130, signal: "SIGINT", timedOut: true, stdout: "partial\n" });
    expect(session.session.closed).toBeUndefined();
    expect(await session.run("echo $? $kept")).toEqual({ out: "130 1\n", err: "", code: 0 });
    expect(session.events).toEqual([
      {
        kind: "resource_limit_exceeded",
        limit: "time",
        detail: `a command of session session-1 ran longer than ${limit.ms} ms`,
      },
    ]);
  });

  test("a stopped shell is continued", async () => {
    await using session = await openSession(shell);
    expect(await session.session.exec({ command: "kill -STOP $$; echo no", timeoutMs: 300 })).toMatchObject({
      timedOut: true,
      sessionClosed: false,
    });
    expect(await session.out("echo next")).toBe("next\n");
  });

  test("background jobs of earlier commands survive a timeout", async () => {
    await using session = await openSession(shell);
    await session.run("sleep 30 & job=$!");
    await aWhile(50); // processes are told apart by the tick they began in
    await session.session.exec({ command: "sleep 30", timeoutMs: 100 });
    await session.session.exec({ command: "wait", timeoutMs: 100 });
    expect(await session.out("kill -0 $job && echo alive")).toBe("alive\n");
  });

  test("timeouts that race with the end never hurt the next command", async () => {
    await using session = await openSession(shell);
    for (let round = 0; round < 40; round++) {
      await session.session.exec({ command: "sleep 0.01; :; :; :", timeoutMs: 10 + (round % 5) });
      expect(await session.run(`echo ${round}`)).toEqual({ out: `${round}\n`, err: "", code: 0 });
    }
  });

  test("a cancelled command is interrupted and the call rejects", async () => {
    await using session = await openSession(shell);
    const signal = abortedSoon();
    expect(await errorCode(session.session.exec({ command: "sleep 30; touch not-reached" }, { signal }))).toBe(
      "CANCELLED",
    );
    expect(await session.out("echo next; ls not-reached 2>/dev/null")).toBe("next\n");
  });
});

// These wait for seconds, so all shells wait together.
describe.concurrent.each(shells)("patience with $title", (shell) => {
  test("who ignores SIGINT gets SIGTERM, who ignores that gets SIGKILL", async () => {
    await using patient = await openSession(shell);
    await using stubborn = await openSession(shell);
    using limit = heldTimeout();
    using another = heldTimeout();
    const isReady = ({ stdout }: { stdout: string }): boolean => stdout === "ready\n";
    const [first, second] = await Promise.all([
      execUntil(patient.session, `sh -c "${PATIENT}"`, limit, isReady),
      execUntil(stubborn.session, `sh -c "${STUBBORN}"`, another, isReady),
    ]);
    expect([first.exitCode, first.signal, second.exitCode, second.signal]).toEqual([143, "SIGTERM", 137, "SIGKILL"]);
    expect(await stubborn.out("echo next")).toBe("next\n");
    expect(childrenOf(stubborn.process.pid)).toEqual([]);
  });

  test("a stopped program is killed, and the shell goes on", async () => {
    await using session = await openSession(shell);
    using limit = heldTimeout();
    // zsh tells at once that its job was suspended, and goes on without it.
    const waits = shell.kind !== "zsh";
    const isStopped = (): boolean => waits && childrenOf(session.process.pid).some((pid) => stateOf(pid) === "T");
    const result = await execUntil(session.session, "sh -c 'kill -STOP $$'", limit, isStopped);
    const expected = !waits ? { exitCode: 147, timedOut: false } : { exitCode: 137, timedOut: true };
    expect(result).toMatchObject(expected);
    expect(session.session.closed).toBeUndefined();
    expect(await session.out("echo next")).toBe("next\n");
  });

  test("a shell that does not come back is killed, and the session says so", async () => {
    await using session = await openSession(shell);
    using limit = heldTimeout();
    const isReading = ({ stdout }: { stdout: string }): boolean => stdout === "partial\n";
    const result = await execUntil(session.session, "echo partial; read x </dev/zero", limit, isReading);
    expect(result).toMatchObject({ exitCode: 137, timedOut: true, stdout: "partial\n" });
    expect(session.session.closed).toEqual({ reason: "killed" });
    expect(session.ends).toEqual([{ reason: "killed" }]);
    await expect(session.run(":")).rejects.toThrow("the shell was killed because it did not come back");
  });
});

describe.each(shells)("the end of a session with $title", (shell) => {
  test.each([
    ["exit 3", 3],
    ["false; exit", 1],
    ["exec sh -c 'exit 5'", 5],
    ["kill -9 $$", 137],
    ["set -e; false; echo not reached", 1],
    ["set -e\ntrue\n(exit 9)\necho not reached", 9],
  ])("%j is the shell's end, with its exit code", async (command, exitCode) => {
    await using session = await openSession(shell);
    const waiting = errorCode(
      session.session.exec({ command: "echo before" }).then(() => session.session.exec({ command: "echo x" })),
    );
    await waiting;
    const result = await session.session.exec({ command: `echo last; ${command}` });
    expect(result).toMatchObject({ exitCode, timedOut: false, sessionClosed: true });
    expect(result.stdout.toString()).toBe("last\n");
    expect(session.session.closed).toEqual({ reason: "exited", exitCode });
    expect(session.ends).toEqual([{ reason: "exited", exitCode }]);
    await expect(session.run("echo later")).rejects.toThrow(`the shell ended with exit code ${exitCode}`);
    expect(await errorCode(session.run("echo later"))).toBe("SESSION_CLOSED");
  });

  test("`set -e` lets commands that succeed pass", async () => {
    await using session = await openSession(shell);
    await session.run("set -e");
    expect(await session.out("if false; then :; fi; false || echo fine")).toBe("fine\n");
    expect(await session.session.exec({ command: "ls /nowhere" })).toMatchObject({ exitCode: 2, sessionClosed: true });
  });

  test("the end of the shell takes its background jobs along", async () => {
    const session = await openSession(shell);
    const pid = Number(await session.out("sleep 30 >/dev/null & echo $!"));
    await session.run("exit 0");
    await session.session.close();
    await eventually(() => !isRunning(pid));
  });

  test("a shell that dies between two commands closes the session", async () => {
    await using session = await openSession(shell);
    await session.run("(sleep 0.05; kill -9 $$) &");
    await eventually(() => expect(session.session.closed).toEqual({ reason: "exited", exitCode: 137 }));
    expect(await errorCode(session.run(":"))).toBe("SESSION_CLOSED");
  });

  test("close ends what runs and what waits, and can be called twice", async () => {
    const session = await openSession(shell);
    const calls = [session.run("sleep 30"), session.run("echo queued")].map(errorCode);
    await aWhile(50);
    await Promise.all([session.session.close(), session.session.close()]);
    expect(await Promise.all(calls)).toEqual(["SESSION_CLOSED", "SESSION_CLOSED"]);
    expect(session.ends).toEqual([{ reason: "closed" }]);
    await session.session.close();
    expect(await errorCode(session.run(":"))).toBe("SESSION_CLOSED");
    expect(await session.process.exit).toEqual({ exitCode: 137, outOfMemory: false });
  });

  test("an idle session closes itself, a busy one does not", async () => {
    await using session = await openSession(shell, { request: { idleTimeoutMs: 150 } });
    await session.run("sleep 0.3");
    expect(session.session.closed).toBeUndefined();
    await eventually(() => expect(session.session.closed).toEqual({ reason: "idle" }));
    await expect(session.run(":")).rejects.toThrow("nothing was asked of the session for 150 ms");
  });
});

describe("turns", () => {
  test("200 callers are served in the order they came", async () => {
    await using session = await openSession({ path: "/bin/bash" });
    const order: number[] = [];
    const calls = Array.from({ length: 200 }, async (_, index) => {
      const result = await session.run(`n=$((n + 1)); echo $n ${index}`);
      order.push(index);
      return result.out;
    });
    const outputs = await Promise.all(calls);
    expect(outputs).toEqual(Array.from({ length: 200 }, (_, index) => `${index + 1} ${index}\n`));
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  test("a queued call whose signal aborts leaves the queue and never runs", async () => {
    await using session = await openSession({ path: "/bin/bash" });
    const marker = join(place, "must-not-exist");
    const controller = new AbortController();
    const first = session.run("sleep 0.2; echo first");
    const second = errorCode(session.session.exec({ command: `touch '${marker}'` }, { signal: controller.signal }));
    const third = session.out("echo third");
    controller.abort();
    expect(await second).toBe("CANCELLED");
    expect([(await first).out, await third, existsSync(marker)]).toEqual(["first\n", "third\n", false]);
    expect(await errorCode(session.session.exec({ command: ":" }, { signal: AbortSignal.abort() }))).toBe("CANCELLED");
  });

  test("a longer timeout than allowed is refused, and waiting for a turn costs none", async () => {
    await using session = await openSession({ path: "/bin/bash" });
    const go = join(place, "go");
    using limit = heldTimeout();
    const slow = session.session.exec({ command: `until [ -e '${go}' ]; do sleep 0.01; done` });
    const next = session.session.exec({ command: ":", timeoutMs: limit.ms });
    await aWhile(50);
    expect(() => limit.pass()).toThrow("no such time limit has begun");
    writeFileSync(go, "");
    expect([(await slow).timedOut, (await next).timedOut]).toEqual([false, false]);
    await expect(session.session.exec({ command: ":", timeoutMs: HANG_MS + 1 })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: "timeout is at most 60 s",
      hint: "the test raises that",
    });
    expect((await session.session.exec({ command: ":", timeoutMs: HANG_MS })).timedOut).toBe(false);
  });
});

describe("a box that breaks", () => {
  test.each(["pendingOutput", "signalForeground", "signalShell"] as const)(
    "under %s ends the session with what it was",
    async (method) => {
      await using session = await openSession({ path: "/bin/bash" });
      const cause = new Error("no such container");
      Object.assign(session.process, { [method]: () => Promise.reject(cause) });
      const call = session.session.exec({ command: method === "pendingOutput" ? ":" : "sleep 30", timeoutMs: 50 });
      await expect(call).rejects.toMatchObject({ code: "INTERNAL", cause });
      expect(session.session.closed).toEqual({ reason: "killed" });
    },
  );
});
