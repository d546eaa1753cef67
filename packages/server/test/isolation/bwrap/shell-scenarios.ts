import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { aWhile } from "../../../../../test/support/eventually.ts";
import type { ShellProcess } from "../../../src/isolation/backend/backend.ts";
import { TICK_MS } from "../../../src/isolation/bwrap/host-processes.ts";
import { hold, steal, swallow } from "../session/thieves.ts";
import { shell, textOf } from "./fixture.ts";
import type { Scenario } from "./scenarios.ts";
import { codeOf } from "./scenarios.ts";

const quick = { env: {}, workdir: "/workspace" } as const;

/** Shells, terminals and the options of a box. */
export const MORE_SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a shell reads commands from descriptor 0 and reports on descriptor 3": {
    run: async (place) => {
      const opened = await place.box.openShell({ ...quick, argv: ["/bin/bash"] });
      opened.commands.end("echo out; echo err >&2; echo status >&3; exit 3\n");
      const outputs = [opened.status, opened.stdout, opened.stderr].map((stream) => textOf(stream));
      return [...(await Promise.all(outputs)), (await opened.exit).exitCode];
    },
    expected: ["status\n", "out\n", "err\n", 3],
  },
  "the foreground of a shell is signalled, earlier background jobs and the shell are not": {
    run: async (place) => {
      const opened = await place.box.openShell({ ...quick, argv: ["/bin/bash"] });
      const answers = lines(opened);
      opened.commands.write("sleep 101 & echo ready >&3\n");
      const ready = await answers.next();
      await aWhile(3 * TICK_MS); // processes are told apart by the tick they began in
      const since = performance.now();
      opened.commands.write("sh -c 'sleep 102 & echo asleep >&3; wait; true'; echo code $? >&3; jobs -r | wc -l >&3\n");
      await answers.next();
      const signalled = await opened.signalForeground("SIGINT", since);
      const [code, jobs] = [await answers.next(), await answers.next()];
      await aWhile(3 * TICK_MS);
      const none = await opened.signalForeground("SIGTERM", performance.now());
      await opened.signalShell(9);
      return [ready, signalled, code, jobs, none, (await opened.exit).exitCode];
    },
    expected: ["ready", 2, "code 130", "1", 0, 137],
  },
  "output that is still on its way is counted": {
    run: async (place) => {
      const opened = await place.box.openShell({ ...quick, argv: ["/bin/bash"] });
      const answers = lines(opened);
      opened.commands.write("head -c 5000 /dev/zero; printf abc >&2; echo done >&3\n");
      await answers.next();
      const owed = await opened.pendingOutput();
      opened.stdout.resume();
      opened.stderr.resume();
      let later = await opened.pendingOutput();
      while (later.stdout + later.stderr > 0) {
        await aWhile(5);
        later = await opened.pendingOutput();
      }
      opened.kill();
      return [owed, later, (await opened.exit).exitCode];
    },
    expected: [{ stdout: 5000, stderr: 3 }, { stdout: 0, stderr: 0 }, 137],
  },
  "a subshell that reads the next command in its shell's place ends the session": {
    run: ({ box, directory }) => steal({ box, workspace: directory, shell: "bash" }, swallow),
    expected: ["taken", "SESSION_CLOSED", "hijacked"],
  },
  "a program that opens its shell's channels ends the session; those of root's server it cannot open": {
    run: async ({ box, directory }) => {
      const outcomes: unknown[] = [];
      for (const name of ["bash", "dash", "zsh"]) {
        outcomes.push(await steal({ box, workspace: directory, shell: name }, hold));
      }
      const expected = process.getuid?.() === 0 ? ["refused", 9, undefined] : ["held", "SESSION_CLOSED", "hijacked"];
      return outcomes.filter((outcome) => String(outcome) !== String(expected));
    },
    expected: [],
  },
  "a terminal has job control, a size that changes, and ends quietly": {
    run: async (place) => {
      const terminal = await place.box.openTerminal({
        ...quick,
        argv: ["/bin/bash", "--norc", "-i"],
        env: { PS1: "" },
        size: { columns: 80, rows: 24 },
      });
      const asleep = Promise.withResolvers<void>();
      let text = "";
      terminal.output.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes("asleep-43")) asleep.resolve();
      });
      const ended = once(terminal.output, "end");
      // Printed by the program itself, so that it is in the foreground when the interrupt comes.
      terminal.input.write("stty size; set -m; sh -c 'echo asleep-$((40+3)); exec sleep 100'\n");
      await asleep.promise;
      terminal.input.write("\x03");
      await terminal.resize({ columns: 132, rows: 50 });
      terminal.input.write("echo code $?; stty size; exit 5\n");
      const { exitCode } = await terminal.exit;
      await ended;
      return [
        text.includes("24 80"),
        text.includes("code 130"),
        text.includes("50 132"),
        /no job control/.test(text),
        exitCode,
      ];
    },
    expected: [true, true, true, false, 5],
  },
  "a terminal tells of a missing program, and can be killed": {
    run: async (place) => {
      const size = { columns: 80, rows: 24 };
      const missing = await codeOf(place.box.openTerminal({ ...quick, argv: ["/no/such"], size }));
      const terminal = await place.box.openTerminal({ ...quick, argv: ["/bin/sleep", "100"], size });
      terminal.output.resume();
      terminal.kill();
      return [missing, (await terminal.exit).exitCode];
    },
    expected: ["PROGRAM_NOT_FOUND", 137],
  },
  "a flood of input to a terminal that nobody reads does not block the server": {
    run: async (place) => {
      const argv = ["/bin/sh", "-c", "stty raw -echo; echo ready; sleep 100"] as const;
      const terminal = await place.box.openTerminal({ ...quick, argv: [...argv], size: { columns: 80, rows: 24 } });
      await once(terminal.output, "data");
      // Were a write to block, this thread would never come to the kill.
      for (let i = 0; i < 100; i++) terminal.input.write("x".repeat(1000));
      await aWhile(20);
      terminal.kill();
      return (await terminal.exit).exitCode;
    },
    expected: 137,
  },
  "read-only paths are shown at their place, impossible ones refused": {
    run: async (place) => {
      const box = await place.anotherBox({ readOnlyPaths: ["/opt", "/etc/hostname"] });
      const seen = await shell(box, "ls -d /opt; touch /opt/x 2>&1 | grep -o Read-only");
      await box.destroy();
      const refused = [
        "/",
        "/proc",
        "/proc/1",
        "/sys/fs",
        "/dev/kmsg",
        "/etc",
        "/root",
        "/no/such",
        "relative",
        "/opt/../etc",
      ];
      const codes = await Promise.all(refused.map((path) => codeOf(place.anotherBox({ readOnlyPaths: [path] }))));
      return [seen.stdout, new Set(codes).size, codes[0]];
    },
    expected: ["/opt\nRead-only\n", 1, "INVALID_ARGUMENT"],
  },
  "a root directory replaces the host's programs; accounts are added when it has none": {
    run: async (place) => {
      const root = await mkdtemp(join(tmpdir(), "agentfense-root-"));
      await chmod(root, 0o755);
      const libraries = execFileSync("/usr/bin/ldd", ["/bin/sh"], { encoding: "utf8" }).match(/\/\S+/g) ?? [];
      for (const file of ["/bin/sh", "/bin/cat", ...libraries]) {
        await mkdir(join(root, dirname(file)), { recursive: true });
        await copyFile(file, join(root, file));
      }
      await mkdir(join(root, "etc"));
      await writeFile(join(root, "etc/motd"), "hello\n");
      const box = await place.anotherBox({ rootDirectory: root });
      const argv = [
        "/bin/sh",
        "-c",
        "for name in *; do echo $name; done; cat /etc/motd /etc/group; echo x > /tmp/x; cat /tmp/x",
      ] as const;
      const seen = await shell(box, "", { argv: [...argv], workdir: "/" });
      const shells = await box.shells();
      await box.destroy();
      await rm(root, { recursive: true });
      return [seen.stdout.split("\n").filter((name) => name !== "lib" && name !== "lib64"), shells];
    },
    expected: [
      [
        ...["bin", "dev", "etc", "proc", "run", "tmp", "var", "workspace"],
        ...["hello", "root:x:0:", "tty:x:5:", "agent:x:1000:", "nogroup:x:65534:", "x", ""],
      ],
      ["/bin/sh"],
    ],
  },
  "several mounts appear at their targets": {
    run: async (place) => {
      const mounts = [
        { source: place.directory, target: "/workspace" },
        { source: place.directory, target: "/data/second" },
      ];
      const box = await place.anotherBox({ mounts });
      const seen = await shell(box, "echo x > /data/second/both; cat both");
      await box.destroy();
      return seen.stdout;
    },
    expected: "x\n",
  },
  "the host's network is there by name only": {
    run: async (place) => {
      const box = await place.anotherBox({ network: "host" });
      const seen = await shell(box, "readlink /proc/self/ns/net");
      await box.destroy();
      return seen.stdout.trim() === readlinkSync("/proc/self/ns/net");
    },
    expected: true,
  },
};

/** What the shell says on its channel, line by line. */
function lines(opened: ShellProcess): { next(): Promise<string> } {
  const iterator = opened.status[Symbol.asyncIterator]();
  let rest = "";
  return {
    async next() {
      while (!rest.includes("\n")) {
        const { value, done } = await iterator.next();
        if (done) return rest;
        rest += String(value);
      }
      const end = rest.indexOf("\n");
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      return line;
    },
  };
}
