import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import { heldBytes } from "../../../../../test/support/garbage.ts";
import { bash, describeDocker, finish, output } from "./arena.ts";

const OK = { exitCode: 0, outOfMemory: false };

describeDocker("a command in a container", (arena) => {
  test("has stdout and stderr apart, a working directory, and an environment built from nothing", async () => {
    process.env.AGENTFENSE_SECRET = "of the server";
    const box = await arena.box({ env: { BOX: "1", BOTH: "box" } });
    const run = await box.run({
      argv: ["/usr/bin/env"],
      env: { CALL: "2", BOTH: "call" },
      workdir: "/workspace",
      stdin: false,
    });
    const { stdout, ...rest } = await finish(run);
    expect(rest).toEqual({ ...OK, stderr: "" });
    expect(
      stdout
        .split("\n")
        .filter((line) => !/^(SHLVL|_|HOSTNAME)=/.test(line))
        .sort(),
    ).toEqual([
      "",
      "BOTH=call",
      "BOX=1",
      "CALL=2",
      "EMAIL=agent@sandbox",
      "HOME=/home/agent",
      "LANG=C.UTF-8",
      "LOGNAME=agent",
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "PWD=/workspace",
      "TERM=xterm-256color",
      "USER=agent",
    ]);
    expect(await output(box, "echo out; echo err >&2; pwd; exit 3")).toEqual({
      exitCode: 3,
      outOfMemory: false,
      stdout: "out\n/workspace\n",
      stderr: "err\n",
    });
  });

  test("without stdin reads an end of file, with stdin whatever is written, to the end", async () => {
    const box = await arena.box();
    expect(await output(box, "cat; echo end")).toEqual({ ...OK, stdout: "end\n", stderr: "" });
    const run = await bash(box, "wc -c; echo done", { stdin: true });
    const finished = finish(run);
    for (let i = 0; i < 200; i++) if (!run.stdin!.write(Buffer.alloc(65_536, 7))) await once(run.stdin!, "drain");
    run.stdin!.end();
    expect((await finished).stdout).toBe(`${200 * 65_536}\ndone\n`);
  });

  test("may leave its stdin unread: writers wait, and its end frees them", async () => {
    const box = await arena.box();
    const run = await bash(box, "sleep 0.5; exit 4", { stdin: true });
    let written = 0;
    const writing = (async () => {
      while (!run.stdin!.destroyed && written < 1e9) {
        written += 65_536;
        if (!run.stdin!.write(Buffer.alloc(65_536)))
          await Promise.race([once(run.stdin!, "drain"), once(run.stdin!, "close")]);
      }
    })();
    expect((await finish(run)).exitCode).toBe(4);
    await writing;
    expect(written).toBeLessThan(50e6);
  });

  test("that dies of a signal has 128 + n as its exit code, and nobody comments on it", async () => {
    const box = await arena.box();
    const run = await box.run({ argv: ["/bin/sh", "-c", "kill -SEGV $$"], env: {}, workdir: "/", stdin: false });
    expect(await finish(run)).toEqual({ exitCode: 139, outOfMemory: false, stdout: "", stderr: "" });
  });

  test("keeps every byte of its output, also those that look like ours", async () => {
    const box = await arena.box();
    const script =
      "import sys,os\nb=bytes(range(256))*4096\nfor i in range(16): sys.stdout.buffer.write(b); sys.stderr.buffer.write(b[::-1])";
    const run = await box.run({ argv: ["/usr/bin/python3", "-c", script], env: {}, workdir: "/", stdin: false });
    const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    run.stdout.on("data", (chunk: Buffer) => chunks.stdout.push(chunk));
    run.stderr.on("data", (chunk: Buffer) => chunks.stderr.push(chunk));
    expect(await run.exit).toEqual(OK);
    await Promise.all(
      [run.stdout, run.stderr].map((stream) => (stream.readableEnded ? undefined : once(stream, "end"))),
    );
    const pattern = Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i));
    const expected = Buffer.concat(Array.from({ length: 4096 * 16 }, () => pattern));
    expect(Buffer.concat(chunks.stdout).equals(expected)).toBe(true);
    expect(Buffer.concat(chunks.stderr).equals(Buffer.from(expected).reverse())).toBe(true);
  });

  test("whose working directory or program is missing is refused as what it is", async () => {
    const box = await arena.box();
    const attempt = (argv: [string, ...string[]], workdir: string) => box.run({ argv, env: {}, workdir, stdin: false });
    await expect(attempt(["/bin/true"], "/nowhere")).rejects.toMatchObject({ code: "WORKDIR_UNUSABLE" });
    await expect(attempt(["/bin/true"], "/etc/passwd")).rejects.toMatchObject({ code: "WORKDIR_UNUSABLE" });
    await expect(attempt(["/bin/nothing"], "/")).rejects.toMatchObject({ code: "PROGRAM_NOT_FOUND" });
    await expect(attempt(["/etc"], "/")).rejects.toMatchObject({ code: "PROGRAM_NOT_FOUND" });
    expect((await output(box, "exit 127")).exitCode).toBe(127);
    expect((await output(box, "no-such-thing")).stderr).toContain("not found");
  });

  test("stops while nobody reads, and the server's memory with it; nothing is lost to a slow reader", async () => {
    const box = await arena.box();
    const run = await bash(box, "head -c 200000000 /dev/zero; echo x >&2");
    run.stderr.resume();
    const before = heldBytes();
    await vi.waitUntil(() => run.stdout.readableLength > 0, { timeout: 60_000 });
    expect(heldBytes() - before).toBeLessThan(50e6); // of 200
    let bytes = 0;
    for await (const chunk of run.stdout) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(200_000_000);
    expect(await run.exit).toEqual(OK);
  });

  test("that has ended loses nothing to a reader who comes seconds later", async () => {
    const box = await arena.box();
    const run = await bash(box, "head -c 1500000 /dev/zero");
    run.stderr.resume();
    await aWhile(4000);
    let bytes = 0;
    for await (const chunk of run.stdout) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(1_500_000);
    expect(await run.exit).toEqual(OK);
  });

  test("can be cancelled before it has started", async () => {
    const box = await arena.box();
    const command = { argv: ["/bin/sleep", "4321"] as [string, string], env: {}, workdir: "/", stdin: false };
    await expect(box.run(command, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "CANCELLED" });
    const controller = new AbortController();
    const cancelled = box.run(command, { signal: controller.signal });
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: "CANCELLED" });
    // It is killed as soon as the engine says that it has started.
    await eventually(async () =>
      expect((await output(box, "ps -eo args | grep -c '^/bin/sleep 4321'")).stdout).toBe("0\n"),
    );
  });
});
