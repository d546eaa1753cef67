import { once } from "node:events";
import { expect, test, vi } from "vitest";
import type { Box } from "../../../src/isolation/backend/backend.ts";
import { bash, describeDocker, finish, output } from "./arena.ts";

const OK = { exitCode: 0, outOfMemory: false };

async function countOf(box: Box, args: string): Promise<number> {
  return Number((await output(box, `ps -eo args | grep -c '^${args}'`)).stdout);
}

/** Waits until so many processes have these arguments. */
async function untilCount(box: Box, args: string, count: number): Promise<void> {
  await vi.waitUntil(async () => (await countOf(box, args)) === count, { timeout: 60_000 });
}

describeDocker("killing in a container", (arena) => {
  test("reaches what ignores signals, what called setsid, and what forked twice; partial output stays", async () => {
    const box = await arena.box();
    const run = await bash(
      box,
      "trap '' INT TERM HUP; (setsid setsid sleep 5551 &); python3 -c 'import os,signal,time\n" +
        "[signal.signal(s, signal.SIG_IGN) for s in (1,2,3,15)]\n" +
        'if os.fork()==0:\n os.setsid()\n if os.fork()==0: os.execv("/bin/sleep",["/bin/sleep","5552"])\n os._exit(0)\n' +
        'print("partial",flush=True)\ntime.sleep(1000)\'',
    );
    await untilCount(box, "sleep 5551", 1);
    await untilCount(box, "/bin/sleep 5552", 1);
    await once(run.stdout, "readable");
    run.kill();
    run.kill();
    expect(await finish(run)).toEqual({ exitCode: 137, outOfMemory: false, stdout: "partial\n", stderr: "" });
    expect(await countOf(box, "sleep 5551")).toBe(0);
    expect(await countOf(box, "/bin/sleep 5552")).toBe(0);
  });

  test("ends only the one command", async () => {
    const box = await arena.box();
    const [one, other] = [await bash(box, "sleep 5555"), await bash(box, "sleep 1; echo fine")];
    one.kill();
    expect((await finish(one)).exitCode).toBe(137);
    expect(await finish(other)).toEqual({ ...OK, stdout: "fine\n", stderr: "" });
  });

  test("resolves `exit` although nobody reads a flood of output", async () => {
    const box = await arena.box();
    const run = await bash(box, "yes");
    await vi.waitUntil(() => run.stdout.readableLength > 0, { timeout: 60_000 });
    run.kill();
    expect(await run.exit).toEqual({ exitCode: 137, outOfMemory: false });
  });

  test("ends a fork bomb at its limit of processes, and the box works again", async () => {
    const box = await arena.box({ limits: { pids: 100 } });
    await output(box, "setsid sleep 5563 &");
    const run = await bash(box, "bomb() { bomb | bomb & }; bomb; sleep 100");
    run.stdout.resume();
    run.stderr.resume();
    await vi.waitUntil(async () => ((await box.usage()).pids ?? 0) > 90, { timeout: 60_000 });
    expect((await box.usage()).pids).toBeLessThanOrEqual(107);
    run.kill();
    await run.exit;
    expect(await countOf(box, "sleep 5563"), "of the command before").toBe(1);
  });

  test("by a command of everything it may kill ends itself, not the box", async () => {
    const box = await arena.box();
    const victim = await bash(box, "sleep 5556");
    expect((await output(box, "kill -9 -1; sleep 5557")).exitCode).toBe(137);
    expect((await finish(victim)).exitCode).toBe(137);
    expect(await output(box, "ps -e -o args= | grep -c '^sleep 555'")).toMatchObject({ stdout: "0\n" });
  });

  test("works when the helper was stopped, and does not reach what an earlier command left", async () => {
    const box = await arena.box();
    await output(box, "setsid sleep 5559 &");
    const run = await bash(
      box,
      "for p in /proc/[0-9]*; do grep -q '^PPid:.0' $p/status && kill -STOP $(basename $p); done; echo stopped; sleep 5558",
    );
    await once(run.stdout, "readable");
    run.kill();
    expect((await finish(run)).exitCode).toBe(137);
    expect(await countOf(box, "sleep 555[89]")).toBe(1);
  });

  test("ends one that kills every helper it sees, if need be with the whole container, and the box works again", async () => {
    const box = await arena.box();
    const hunter =
      "import os, signal\nown = {os.getpid(), os.getppid(), 1}\nos.write(1, b'hunts')\n" +
      "while True:\n  for p in filter(str.isdigit, os.listdir('/proc')):\n    if int(p) in own: continue\n    try:\n" +
      "      if b'helper' in open(f'/proc/{p}/cmdline', 'rb').read(): os.kill(int(p), signal.SIGKILL)\n    except OSError: pass";
    const run = await box.run({ argv: ["/usr/bin/python3", "-c", hunter], env: {}, workdir: "/", stdin: false });
    await once(run.stdout, "readable");
    run.kill();
    expect((await finish(run)).exitCode).toBe(137);
    expect(await countOf(box, "/usr/bin/python3")).toBe(0);
  });

  test("reaches a process that forks and ends for ever, faster than anybody can look at it", async () => {
    const box = await arena.box();
    await output(box, "setsid sleep 5562 &");
    const idle = (await box.usage()).pids;
    const run = await bash(box, "perl -e 'while (1) { fork and exit }' & echo flies; sleep 5561");
    await once(run.stdout, "readable");
    run.kill();
    expect((await finish(run)).exitCode).toBe(137);
    await vi.waitUntil(async () => (await box.usage()).pids === idle, { timeout: 60_000 });
    // The last pid that the container gave away: by a process that goes on forking, it would not stay.
    const next = async () => Number((await output(box, "read -r _ _ _ _ last </proc/loadavg; echo $last")).stdout);
    const [first, second] = [await next(), await next()];
    expect(second - first).toBeLessThan(20);
    expect(await countOf(box, "sleep 5562"), "of the command before").toBe(1);
  });

  test("by the kernel for want of memory is told from any other", async () => {
    const box = await arena.box({ limits: { memoryBytes: 128 * 1024 ** 2 } });
    const hog = await box.run({
      argv: ["/usr/bin/python3", "-c", "x = bytearray(1 << 30)"],
      env: {},
      workdir: "/",
      stdin: false,
    });
    expect(await finish(hog)).toMatchObject({ exitCode: 137, outOfMemory: true });
    expect(await output(box, "kill -9 $$")).toMatchObject({ exitCode: 137, outOfMemory: false });
  });
});
