import { once } from "node:events";
import { expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { MOST_LEFT } from "../../../src/isolation/backend/leftovers.ts";
import { bash, describeDocker, finish, output } from "./arena.ts";

const OK = { exitCode: 0, outOfMemory: false };
const SIZE = { columns: 80, rows: 24 };
/** Process 1, what keeps it alive, and the helper. */
const IDLE_PIDS = 3;

describeDocker("what a command leaves in the background of a container", (arena) => {
  test("lives on, however it was detached, and the command does not wait for it", async () => {
    const box = await arena.box();
    expect(await output(box, "sleep 8881 & setsid sleep 8882 & (setsid sleep 8883 &); echo left; exit 3")).toEqual({
      exitCode: 3,
      outOfMemory: false,
      stdout: "left\n",
      stderr: "",
    });
    await eventually(async () =>
      expect(await output(box, "ps -eo args= | grep -c '^sleep 888'")).toMatchObject({ stdout: "3\n" }),
    );
  });

  test("goes on printing: nobody hears it, and it neither dies nor stands still", async () => {
    const box = await arena.box();
    const printer =
      "import os\nline = b'x' * 1023 + b'\\n'\nfor i in range(1024):\n  for fd in (1, 2): os.write(fd, line)\n" +
      "open('/tmp/all', 'w').close()";
    const run = await bash(
      box,
      `echo out; echo err >&2; python3 -c "${printer}" & until [ -e /tmp/go ]; do sleep 0.01; done`,
    );
    const finished = finish(run);
    await output(box, "touch /tmp/go");
    expect(await finished).toMatchObject(OK);
    // More than all pipes on the way can hold.
    await eventually(async () => expect((await output(box, "[ -e /tmp/all ]")).exitCode).toBe(0));
  });

  test("reads the end of the input that its command had", async () => {
    const box = await arena.box();
    const run = await bash(box, "(cat <&3 >/dev/null; touch /tmp/end) 3<&0 & exit 0", { stdin: true });
    expect((await finish(run)).exitCode).toBe(0);
    await eventually(async () => expect((await output(box, "[ -e /tmp/end ]")).exitCode).toBe(0));
  });

  test("outlives a terminal and the shell of a session", async () => {
    const box = await arena.box();
    const terminal = await box.openTerminal({
      argv: ["/bin/bash", "-c", "nohup sleep 8884 >/dev/null & echo on the terminal; exit 7"],
      env: {},
      workdir: "/",
      size: SIZE,
    });
    let shown = "";
    for await (const chunk of terminal.output) shown += String(chunk);
    expect(shown).toContain("on the terminal");
    expect(await terminal.exit).toEqual({ exitCode: 7, outOfMemory: false });
    const shell = await box.openShell({ argv: ["/bin/bash"], env: {}, workdir: "/" });
    for (const stream of [shell.stdout, shell.stderr, shell.status]) stream.resume();
    shell.commands.end("sleep 8885 &\nexit 8\n");
    expect(await shell.exit).toEqual({ exitCode: 8, outOfMemory: false });
    await eventually(async () =>
      expect(await output(box, "ps -eo args= | grep -c '^sleep 888[45]'")).toMatchObject({ stdout: "2\n" }),
    );
  });

  test("takes with it, when it ends, what was ours around it", async () => {
    const box = await arena.box();
    expect((await box.usage()).pids).toBe(IDLE_PIDS);
    await output(box, "until [ -e /tmp/end ]; do sleep 0.01; done &");
    await output(box, "touch /tmp/end");
    await eventually(async () => expect((await box.usage()).pids).toBe(IDLE_PIDS));
  });

  test("counts against the limit on processes, and what is ours around it does not", async () => {
    const box = await arena.box({ limits: { pids: 20 } });
    for (let i = 0; i < 6; i++) await output(box, "sleep 8886 &");
    const most =
      "import os\nn = 1\ntry:\n  while True:\n    if os.fork() == 0: os.execv('/bin/sleep', ['sleep', '8887'])\n    n += 1\nexcept OSError: print(n)";
    const run = await box.run({ argv: ["/usr/bin/python3", "-c", most], env: {}, workdir: "/", stdin: false });
    expect((await finish(run)).stdout).toBe("14\n");
  });

  test(`of more than ${MOST_LEFT} commands is not wanted: the next is refused, until some of it has ended`, async () => {
    const box = await arena.box({ limits: {} });
    const other = await bash(box, "until [ -e /tmp/end ]; do sleep 0.01; done; kill $(cat /tmp/pid)");
    const leave = () => output(box, "sleep 8888 & echo $! >/tmp/pid");
    for (let i = 0; i < MOST_LEFT / 8; i++) await Promise.all(Array.from({ length: 8 }, leave));
    await expect(output(box, "true")).rejects.toMatchObject({ code: "RESOURCES_EXHAUSTED" });
    const neighbour = await arena.box();
    expect(await output(neighbour, "true")).toMatchObject(OK);
    other.kill();
    await once(other.stdout.resume(), "end");
    await box.destroy();
    expect(await output(neighbour, "true")).toMatchObject(OK);
  });
});
