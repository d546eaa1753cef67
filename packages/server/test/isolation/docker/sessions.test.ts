import { once } from "node:events";
import { expect, test } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import type { Box, ShellProcess } from "../../../src/isolation/backend/backend.ts";
import { TICK_MS } from "../../../src/isolation/bwrap/host-processes.ts";
import { hold, steal, swallow } from "../session/thieves.ts";
import { describeDocker, output } from "./arena.ts";

/** Writes commands, collects what comes back. */
class Conversation {
  readonly shell: ShellProcess;
  readonly #lines: string[] = [];
  stdout = Buffer.alloc(0);
  stderr = Buffer.alloc(0);

  constructor(shell: ShellProcess) {
    this.shell = shell;
    const chunks: Buffer[] = [];
    shell.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    shell.stderr.on("data", (chunk: Buffer) => {
      this.stderr = Buffer.concat([this.stderr, chunk]);
    });
    let text = "";
    shell.status.on("data", (chunk: Buffer) => {
      this.stdout = Buffer.concat([this.stdout, ...chunks.splice(0)]);
      text += chunk.toString();
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      this.#lines.push(...lines);
      shell.status.emit("line");
    });
  }

  static async open(box: Box, shell = "/bin/bash"): Promise<Conversation> {
    return new Conversation(await box.openShell({ argv: [shell], env: {}, workdir: "/workspace" }));
  }

  say(command: string): void {
    this.shell.commands.write(`${command}\n`);
  }

  /** The next line of status, and the output from before it. */
  async hear(): Promise<{ status: string; stdout: string; stderr: string }> {
    while (this.#lines.length === 0) await once(this.shell.status, "line");
    const heard = { status: this.#lines.shift()!, stdout: this.stdout.toString(), stderr: this.stderr.toString() };
    this.stdout = this.stderr = Buffer.alloc(0);
    return heard;
  }

  async ask(command: string): Promise<{ status: string; stdout: string; stderr: string }> {
    this.say(`${command}\nprintf 'done %s\\n' $? >&3`);
    return await this.hear();
  }
}

describeDocker("a shell in a container", (arena) => {
  test.each(["/bin/bash", "/bin/sh", "/bin/dash", "/bin/zsh"])(
    "%s keeps its state, and a status comes after all the output from before it",
    async (shell) => {
      const box = await arena.box();
      const talk = await Conversation.open(box, shell);
      expect(await talk.ask("cd /tmp; X=kept; echo out; echo err >&2; false")).toEqual({
        status: "done 1",
        stdout: "out\n",
        stderr: "err\n",
      });
      expect(await talk.ask("pwd; echo $X")).toEqual({ status: "done 0", stdout: "/tmp\nkept\n", stderr: "" });
      for (let i = 0; i < 20; i++) {
        const { stdout, stderr } = await talk.ask("head -c 300000 /dev/zero | tr '\\0' a; head -c 70000 /dev/zero >&2");
        expect([stdout.length, stderr.length]).toEqual([300_000, 70_000]);
      }
      expect(await talk.shell.pendingOutput()).toEqual({ stdout: 0, stderr: 0 });
      talk.say("exit 7");
      expect(await talk.shell.exit).toEqual({ exitCode: 7, outOfMemory: false });
    },
  );

  test("has its foreground interrupted, not itself and not earlier background jobs", async () => {
    const box = await arena.box();
    const talk = await Conversation.open(box);
    await talk.ask("sleep 6661 &");
    await aWhile(3 * TICK_MS); // processes are told apart by the tick they began in
    const since = performance.now();
    talk.say("sleep 6662 | sleep 6665; printf 'code %s\\n' $? >&3");
    await eventually(async () => (await output(box, "ps -eo args | grep -c '^sleep 666[25]'")).stdout === "2\n");
    expect(await talk.shell.signalForeground("SIGINT", since)).toBe(2);
    expect((await talk.hear()).status).toBe("code 130");
    expect((await talk.ask("jobs")).stdout).toContain("Running");
    expect(await talk.shell.signalForeground("SIGKILL", performance.now())).toBe(0);
    await talk.shell.signalShell(9);
    expect(await talk.shell.exit).toEqual({ exitCode: 137, outOfMemory: false });
    expect((await output(box, "ps -eo args | grep -c '^sleep 666'")).stdout, "the background job").toBe("1\n");
  });

  test("is killed with everything it ever started", async () => {
    const box = await arena.box();
    const talk = await Conversation.open(box);
    await talk.ask("(setsid sleep 6663 &); sleep 6664 &");
    talk.shell.kill();
    expect((await talk.shell.exit).exitCode).toBe(137);
    expect((await output(box, "ps -eo args | grep -c '^sleep 666'")).stdout).toBe("0\n");
  });

  test("whose channels somebody else takes ends its session; subshells that only inherit them do not", async () => {
    const workspace = await arena.directory();
    const box = await arena.box({ mounts: [{ source: workspace, target: "/workspace" }] });
    const harmless = (ready: string) => `(echo waits > ${ready}; sleep 1000; :) &`;
    for (const name of ["bash", "dash", "zsh"]) {
      const place = { box, workspace, shell: name };
      expect([name, await steal(place, harmless)]).toEqual([name, ["waits", 9, undefined]]);
      expect([name, await steal(place, hold)]).toEqual([name, ["held", "SESSION_CLOSED", "hijacked"]]);
    }
    // The other two cannot name the descriptors that they have put away.
    expect(await steal({ box, workspace, shell: "bash" }, swallow)).toEqual(["taken", "SESSION_CLOSED", "hijacked"]);
  });

  test("in a box that is destroyed reports its end", async () => {
    const box = await arena.box();
    const talk = await Conversation.open(box);
    await talk.ask("true");
    await box.destroy();
    expect((await talk.shell.exit).exitCode).toBe(137);
  });
});

describeDocker("a terminal in a container", (arena) => {
  test("has its size from the start, takes a new one, and is a terminal", async () => {
    const box = await arena.box();
    const terminal = await box.openTerminal({
      argv: ["/bin/bash", "--norc", "-i"],
      env: { PS1: "> " },
      workdir: "/workspace",
      size: { columns: 101, rows: 33 },
    });
    let text = "";
    terminal.output.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    terminal.input.write("stty size; test -t 0 && echo 'is a' terminal\n");
    await expect.poll(() => text, { timeout: 60_000 }).toContain("is a terminal\r\n");
    expect(text).toContain("33 101\r\n");
    await terminal.resize({ columns: 55, rows: 22 });
    // One program says its size and sleeps, so that it is in the foreground when the interrupt comes.
    terminal.input.write("sh -c 'stty size; exec sleep 7771'\n");
    await expect.poll(() => text, { timeout: 60_000 }).toContain("22 55\r\n");
    terminal.input.write("\x03exit 9\n");
    expect(await terminal.exit).toEqual({ exitCode: 9, outOfMemory: false });
    expect(text).not.toContain("\x1e");
  });

  test("is killed with everything on it; what cannot start is refused", async () => {
    const box = await arena.box();
    const size = { columns: 80, rows: 24 };
    const terminal = await box.openTerminal({
      argv: ["/bin/bash", "-c", "trap '' HUP INT TERM; (setsid sleep 7772 &); while :; do sleep 7773; done"],
      env: {},
      workdir: "/workspace",
      size,
    });
    terminal.output.resume();
    await eventually(async () => (await output(box, "ps -eo args | grep -c '^sleep 777'")).stdout === "2\n");
    terminal.kill();
    expect((await terminal.exit).exitCode).toBe(137);
    expect((await output(box, "ps -eo args | grep -c '^sleep 777'")).stdout).toBe("0\n");
    const missing = { argv: ["/bin/nothing"] as [string], env: {}, workdir: "/workspace", size };
    await expect(box.openTerminal(missing)).rejects.toMatchObject({ code: "PROGRAM_NOT_FOUND" });
    await expect(box.openTerminal({ ...missing, workdir: "/no" })).rejects.toMatchObject({ code: "WORKDIR_UNUSABLE" });
  });
});
