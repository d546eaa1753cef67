import { describe, expect, test } from "vitest";
import { abortedSoon, aWhile, eventually, HANG_MS } from "../../../../../test/support/eventually.ts";
import { growthDuring } from "../../../../../test/support/garbage.ts";
import { heldTimeout } from "../../../../../test/support/held-timeout.ts";
import type { ExecEvent } from "../../../src/isolation/exec/api.ts";
import { openSession, shells } from "./fixture.ts";

const MIB = 1024 * 1024;

async function collect(
  events: AsyncIterable<ExecEvent>,
): Promise<{ out: Buffer; err: Buffer; last: ExecEvent | undefined }> {
  const parts: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
  let last: ExecEvent | undefined;
  for await (const event of events) {
    if (event.kind !== "exit") parts[event.kind].push(event.data);
    last = event;
  }
  return { out: Buffer.concat(parts.stdout), err: Buffer.concat(parts.stderr), last };
}

describe.each(shells)("output of $title", (shell) => {
  test("every byte value arrives as it is, on both streams", async () => {
    await using session = await openSession(shell);
    const all = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    const octal = [...all].map((value) => `\\${value.toString(8).padStart(3, "0")}`).join("");
    const result = await session.session.exec({ command: `printf '${octal}'; printf '${octal}' >&2` });
    expect([result.stdout, result.stderr]).toEqual([all, all]);
  });

  test("is complete when the command ends, whatever the size", async () => {
    await using session = await openSession(shell);
    for (const size of [1, 4_095, 65_536, 65_537, 1_000_003]) {
      const result = await session.session.exec({
        command: `head -c ${size} /dev/zero; head -c ${size} /dev/zero >&2`,
      });
      expect([result.stdout.length, result.stderr.length, result.truncated]).toEqual([size, size, false]);
    }
    for (let round = 0; round < 50; round++) expect(await session.out(`echo ${round}`)).toBe(`${round}\n`);
  });

  test("of 100 MB is cut at the limit, and memory stays flat", async () => {
    await using session = await openSession(shell, { outputBytes: MIB });
    const growth = await growthDuring(async () => {
      const result = await session.session.exec({ command: "head -c 100000000 /dev/zero; echo end >&2; (exit 6)" });
      expect(result).toMatchObject({ exitCode: 6, truncated: true });
      expect([result.stdout.length, result.stderr.toString()]).toEqual([MIB, "end\n"]);
    });
    expect(growth).toBeLessThan(80 * MIB);
    expect(session.events).toEqual([
      {
        kind: "resource_limit_exceeded",
        limit: "output",
        detail: "a command of session session-1 printed more than is kept",
      },
    ]);
    expect(await session.out("echo next")).toBe("next\n");
  });

  test("what background jobs print later belongs to the next command", async () => {
    await using session = await openSession(shell);
    // A subshell that was forked this moment still has all that its shell has, which its session does not bear: the job has begun first.
    const job = "(touch begun; until [ -e go ]; do sleep 0.01; done; echo late) &";
    expect(await session.out(`${job} until [ -e begun ]; do sleep 0.01; done; echo early`)).toBe("early\n");
    let heard = await session.out("touch go; echo next");
    while (!heard.includes("late\n")) heard += await session.out("echo next");
    expect(heard).toMatch(/^(?:next\n)*late\n(?:next\n)?$/);
    await session.run("rm go begun");
  });

  test("of a background flood neither blocks the session nor grows memory", async () => {
    await using session = await openSession(shell);
    await session.run("(head -c 150000000 /dev/zero; touch flooded) &");
    const growth = await growthDuring(async () => {
      await eventually(async () =>
        expect(session.session.closed ?? (await session.out("ls flooded 2>/dev/null | cat")).slice(-8)).toBe(
          "flooded\n",
        ),
      );
    });
    expect(growth).toBeLessThan(80 * MIB);
    expect(await session.run("rm flooded; echo next")).toMatchObject({ code: 0 });
    expect(session.events.some(({ kind }) => kind === "resource_limit_exceeded")).toBe(true);
  });
});

describe("a stream of events", () => {
  const bash = { path: "/bin/bash" };

  test("has all the output and ends with the outcome", async () => {
    await using session = await openSession(bash);
    const { out, err, last } = await collect(
      session.session.execStream({ command: "head -c 3000000 /dev/zero; echo e >&2; (exit 4)" }),
    );
    expect([out.length, err.toString()]).toEqual([3_000_000, "e\n"]);
    expect(last).toMatchObject({ kind: "exit", outcome: { exitCode: 4, timedOut: false, truncated: false } });
  });

  test("arrives while the command runs", async () => {
    await using session = await openSession(bash);
    for await (const event of session.session.execStream({ command: "echo now; sleep 30" })) {
      expect(event).toEqual({ kind: "stdout", data: Buffer.from("now\n") });
      break;
    }
    expect(await session.out("echo next")).toBe("next\n");
  });

  test("makes the command wait for a slow reader", async () => {
    await using session = await openSession(bash);
    const stream = session.session
      .execStream({ command: "head -c 50000000 /dev/zero; echo passed >&2" })
      [Symbol.asyncIterator]();
    await stream.next();
    await aWhile(300);
    expect(session.process.stdout.isPaused()).toBe(true);
    let bytes = 0;
    const growth = await growthDuring(async () => {
      for (let step = await stream.next(); !step.done; step = await stream.next()) {
        if (step.value.kind === "stdout") bytes += step.value.data.length;
      }
    });
    expect(bytes).toBeGreaterThan(50_000_000 - MIB);
    expect(growth).toBeLessThan(80 * MIB);
  });

  test("of a reader that went to sleep does not hold up the next caller for ever", async () => {
    await using session = await openSession(bash, { stageMs: HANG_MS });
    using limit = heldTimeout();
    const stream = session.session.execStream({ command: "yes", timeoutMs: limit.ms })[Symbol.asyncIterator]();
    await stream.next();
    limit.pass();
    expect(await session.out("echo next")).toBe("next\n");
    let last: ExecEvent | undefined;
    for (let step = await stream.next(); !step.done; step = await stream.next()) last = step.value;
    expect(last).toMatchObject({ kind: "exit", outcome: { timedOut: true, exitCode: 130 } });
  });

  test("rejects when it is cancelled, and when the session closes", async () => {
    await using session = await openSession(bash);
    const cancelled = collect(session.session.execStream({ command: "sleep 30" }, { signal: abortedSoon() }));
    await expect(cancelled).rejects.toMatchObject({ code: "CANCELLED" });
    const closed = collect(session.session.execStream({ command: "sleep 30" }));
    void aWhile(50).then(() => session.session.close());
    await expect(closed).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });
});
