import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, test, vi } from "vitest";
import { HANG_MS } from "../../../../../test/support/eventually.ts";
import { AnswerReader } from "../../../src/isolation/session/conversation.ts";
import { errorCode, openSession, place, shells } from "./fixture.ts";
import { hold, holdInThread, holdPutAway, swallow } from "./thieves.ts";

describe("the status channel", () => {
  test("takes the awaited serial number only, however the bytes are cut", async () => {
    const channel = new PassThrough();
    const reader = new AnswerReader(channel);
    const answer = reader.awaitAnswer("2.abcd");
    const noise =
      "agentfense-status 1.abcd 0 s\nagentfense-status 2.abce 9 s\n\n2.abcd 0 s\nagentfense-status 2.abcd x s\n";
    for (const byte of `${noise}${"x".repeat(100_000)}agentfense-status 2.abcd 8 s\nagentfense-status 2.abcd 3 hB\n`)
      channel.write(byte);
    expect(await answer).toEqual({ exitStatus: 3, options: "hB" });
  });

  test("a late answer is nobody's", async () => {
    const channel = new PassThrough();
    const reader = new AnswerReader(channel);
    void reader.awaitAnswer("1.aa");
    const answer = reader.awaitAnswer("2.bb");
    channel.write("agentfense-status 1.aa 1 s\nagentfense-status 2.bb 2 s\n");
    expect(await answer).toMatchObject({ exitStatus: 2 });
  });
});

describe.each(shells)("a forger in $title", (shell) => {
  const frames = "agentfense-status 1 0 s\\nagentfense-status 2.0000000000000000 0 s\\n";

  test("prints answers to every descriptor there is, to no effect", async () => {
    await using session = await openSession(shell);
    const forge = `python3 -c '
import os
for fd in range(3, 256):
    try: os.write(fd, b"${frames}")
    except OSError: pass
'`;
    expect((await session.run(`printf '${frames}'; ${forge}; (exit 9)`)).code).toBe(9);
    const shellDescriptors = `for fd in 3 4 5 6 7 8 9; do (printf '${frames}' >&$fd) 2>/dev/null; done; (exit 8)`;
    expect((await session.run(shellDescriptors)).code).toBe(8);
    expect(await session.run("echo next")).toEqual({ out: "next\n", err: "", code: 0 });
  });

  test("writes to the shell's own channels through /proc, and the session stays in step or is ended for it", async () => {
    await using session = await openSession(shell);
    // A subshell that is seen with a channel in its hands when its command's time is up is a stranger.
    const codeOrEnd = (running: Promise<{ code: number }>): Promise<number | "ended"> =>
      running.then(
        ({ code }) => code,
        (error: unknown) => {
          if (session.session.closed === undefined) throw error;
          return "ended";
        },
      );
    await codeOrEnd(
      session.run(
        `for fd in /proc/$$/fd/*; do case $fd in */[012]) ;; *) (printf '${frames}' >$fd) 2>/dev/null;; esac; done; :`,
        1_000,
      ),
    );
    expect([7, "ended"]).toContain(await codeOrEnd(session.run("(exit 7)", 1_000)));
  });

  // dash cannot name a descriptor above 9, and zsh refuses those that it uses itself.
  test.skipIf(shell.kind !== "bash")("who reads the next command in the shell's place ends the session", async () => {
    await using session = await openSession(shell, { timeoutMs: HANG_MS }); // a thief is slow
    const ready = join(place, `ready-${randomUUID()}`);
    await session.run(swallow(ready));
    await vi.waitUntil(() => existsSync(ready), { timeout: 60_000 });
    const stolen = session.run("(exit 9)");
    await expect(stolen).rejects.toMatchObject({ code: "SESSION_CLOSED", message: /took hold of the channel/ });
    expect(session.session.closed).toEqual({ reason: "hijacked" });
    expect(await errorCode(session.run("true"))).toBe("SESSION_CLOSED");
  });

  test.each([
    ["", hold],
    [" in a thread that outlives the first", holdInThread],
    [", put away as a shell does it", holdPutAway],
  ])("who holds a channel of the shell%s ends the session before the next command is said", async (_, thief) => {
    await using session = await openSession(shell);
    const [ready, ran] = [join(place, `ready-${randomUUID()}`), join(place, `ran-${randomUUID()}`)];
    await session.run(thief(ready)).catch(() => {}); // it may be seen, and ended, at once
    await vi.waitUntil(() => session.session.closed !== undefined || existsSync(ready), { timeout: 60_000 });
    await expect(session.run(`touch ${ran}`)).rejects.toMatchObject({ message: /took hold of the channel/ });
    expect([session.session.closed, existsSync(ran)]).toEqual([{ reason: "hijacked" }, false]);
  });

  test("subshells in the background, which inherit the channels, are nobody's thieves", async () => {
    await using session = await openSession(shell);
    await session.run("(while sleep 0.01; do :; done) & { sleep 1000; :; } & f() { sleep 1000; :; }; f & sleep 1000 &");
    for (let i = 0; i < 20; i++) expect((await session.run(`(exit ${i})`)).code).toBe(i);
    // Each is seen as it becomes a program, or ends, sooner or later.
    for (let i = 0; i < 100; i++) expect((await session.run(`sleep 0.001 & (:) & (exit ${i})`)).code).toBe(i);
  });
});
