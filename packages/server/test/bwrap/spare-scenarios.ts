import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { aWhile, eventually } from "../../../../test/support/eventually.ts";
import type { BoxCommand } from "../../src/isolation/backend/backend.ts";
import type { BwrapBox } from "../../src/isolation/bwrap/box.ts";
import { freeLimits, openPlace, type Place, shell } from "./place.ts";
import type { Scenario } from "./scenarios.ts";

const AWKWARD = "a b\n'\"$(id)`x`\\ \x01é*~=+";

/** What could differ by whether a command had a spare, and must not. */
const LOOKS: Readonly<Record<string, Partial<BoxCommand> & { line?: string; input?: string }>> = {
  "environment of the shell": { line: "tr '\\0' '\\n' < /proc/$$/environ | sort" },
  "environment of its child": { line: "env | sort" },
  "variables of the shell": { line: "declare -p | grep -vE 'BASHPID|PPID|RANDOM|SECONDS|EPOCH'; shopt; echo $-" },
  "variables of the command": {
    line: "tr '\\0' '\\n' < /proc/$$/environ | sort; env | sort",
    env: { A: AWKWARD, PATH: "/usr/bin:/tmp", LANG: "xx_YY", HOME: "/", _X: "", TZ: "UTC", HOSTNAME: "h", order: "o" },
  },
  ...Object.fromEntries(
    Object.entries({
      ...{ SHLVL: "7", PWD: "/etc", OLDPWD: "/usr", _: "x", IFS: ":", LC_ALL: "xx_YY", PS1: "$", POSIXLY_CORRECT: "" },
      ...{ RANDOM: "4", MAPFILE: "m", REPLY: "r", UID: "3", SHELLOPTS: "noglob", CDPATH: "/usr", "odd-name": "1" },
      ...{ BASH_ENV: "/workspace/greeting", ENV: "/workspace/greeting", TERM: "dumb", GLOBIGNORE: "*", TMPDIR: "/x" },
      "BASH_FUNC_ls%%": "() { echo mine; }",
    }).map(([name, value]) => [
      `the variable ${name}`,
      { line: "tr '\\0' '\\n' < /proc/$$/environ | sort; set -o; ls -d /", env: { [name]: value } },
    ]),
  ),
  "working directory": { line: "echo $PWD $OLDPWD; pwd -P", workdir: "/usr/bin/../../tmp/./" },
  "working directory behind a link": { line: "echo $PWD $OLDPWD; pwd -P; cd -; echo $?", workdir: "/var/tmp" },
  descriptors: { line: "ls /proc/$$/fd; readlink /proc/$$/fd/0; cat" },
  signals: { line: "grep -E '^(Sig(Blk|Ign|Cgt|Pnd)|ShdPnd)' /proc/$$/status" },
  "the process": {
    line: "cut -d' ' -f1,2,4-8 /proc/$$/stat; cat /proc/$$/comm /proc/$$/cmdline; umask; echo /proc/[0-9]*",
  },
  limits: { line: "cat /proc/$$/limits /proc/$$/oom_score_adj; ulimit -a" },
  privileges: { line: "grep -E '^(Cap|NoNew|Seccomp|Groups|Uid)' /proc/$$/status; cut -d' ' -f5 /proc/$$/mountinfo" },
  "control group": { line: "cat /proc/$$/cgroup" },
  arguments: { argv: ["/bin/bash", "-c", 'printf "%q\\n" "$0" "$@"', "", " a ", "*", AWKWARD, "x".repeat(50_000)] },
  "arguments too many for a spare": { argv: ["/bin/bash", "-c", 'printf "%s" "$@"', "x", "y".repeat(100_000)] },
  input: { line: "cat; readlink /proc/$$/fd/0 | cut -c1-4", input: "\n\nhello" },
  terminal: { line: "tty; (echo < /dev/tty) 2>&1" },
  "exit code": { line: "exit 127" },
};

export const SPARE_SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a command that had a spare cannot tell": {
    run: async () => {
      await using plain = await openPlace({ keepsSpares: false, instance: "plain" });
      await using spared = await openPlace({ instance: "spared" });
      for (const place of [plain, spared]) await place.sh("echo 'echo greeting' > greeting");
      const different: unknown[] = [];
      for (const [name, { line = "", ...more }] of Object.entries(LOOKS)) {
        await waitingShell(spared.box);
        const [expected, seen] = await Promise.all([plain, spared].map((place) => look(place, line, more)));
        if (expected !== seen) different.push({ name, expected, seen });
      }
      return [spareOf(plain.box), different];
    },
    expected: ["none", []],
  },
  "a spare becomes the command, once, and another one takes its place": {
    run: async (place) => {
      const box = await place.anotherBox();
      const first = await waitingShell(box);
      const running = await box.run({ ...quick, argv: ["/bin/bash", "-c", "echo x > /tmp/x; echo $$; sleep 100; :"] });
      const pid = await firstText(running.stdout);
      const words = commandLine(first.shell);
      const beside = spareOf(box);
      const other = await shell(box, "ls /tmp; ls /proc | grep -c '^[0-9]'");
      running.kill();
      const { exitCode } = await running.exit;
      const second = await waitingShell(box);
      await box.destroy();
      return [pid, words.slice(0, 2), beside, second.init !== first.init, Number(other.stdout) <= 6, exitCode];
    },
    expected: ["2\n", ["/bin/bash", "-c"], "none", true, true, 137],
  },
  "commands at once share no spare": {
    run: async (place) => {
      const box = await place.anotherBox();
      await waitingShell(box);
      const line = "echo $PPID > /tmp/mine; sleep 0.1; ls /tmp; readlink /proc/self/ns/pid";
      const all = await Promise.all(Array.from({ length: 5 }, () => shell(box, line)));
      await box.destroy();
      return [new Set(all.map(({ stdout }) => stdout)).size, all.every(({ stdout }) => stdout.startsWith("mine\n"))];
    },
    expected: [5, true],
  },
  "commands in a row never run twice and never get lost": {
    run: async (place) => {
      const box = await place.anotherBox();
      for (let i = 0; i < 60; i++) await shell(box, `echo ${i} >> row`);
      const { stdout } = await shell(box, "cat row; rm row");
      await box.destroy();
      return stdout === Array.from({ length: 60 }, (_, i) => `${i}\n`).join("");
    },
    expected: true,
  },
  "a spare that is killed is replaced, and a command that was given to it runs": {
    run: async (place) => {
      const box = await place.anotherBox();
      const killed: number[] = [];
      const outputs: string[] = [];
      for (const target of ["init", "shell"] as const) {
        const waiting = await waitingShell(box);
        process.kill(waiting.shell, "SIGSTOP");
        const given = shell(box, "echo given >> times; cat times");
        await aWhile(30);
        process.kill(waiting[target], "SIGKILL");
        outputs.push((await given).stdout);
        const next = await waitingShell(box);
        process.kill(next[target], "SIGKILL");
        // What is given to a shell that is about to die has begun, and dies with it.
        while (isThere(next.shell)) await aWhile(10);
        outputs.push((await shell(box, "echo later")).stdout);
        killed.push(waiting.init, next.init);
      }
      const last = await waitingShell(box);
      await shell(box, "rm times");
      await box.destroy();
      return [outputs, killed.includes(last.init)];
    },
    expected: [["given\n", "later\n", "given\ngiven\n", "later\n"], false],
  },
  "a stopped box has no spare, a started one again": {
    run: async (place) => {
      const box = await place.anotherBox();
      const first = await waitingShell(box);
      await box.stop();
      const afterStop = [spareOf(box), isThere(first.init), isThere(first.shell)];
      await aWhile(250);
      const later = spareOf(box);
      await box.start();
      const second = await waitingShell(box);
      await box.start();
      await Promise.all([box.stop(), box.start().catch(() => {}), box.destroy()]);
      return [afterStop, later, isThere(second.init), spareOf(box)];
    },
    expected: [["none", false, false], "none", false, "none"],
  },
  "LD_PRELOAD and BASH_ENV act on the command they were given with, and on the box's commands alone": {
    run: async (place) => {
      await shell(place.box, "echo 'echo greeting from $0' > greeting");
      const env = { BASH_ENV: "/workspace/greeting", LD_PRELOAD: "/no/such.so" };
      const once = await shell(place.box, "echo $LD_PRELOAD", { env });
      const next = await shell(place.box, "echo $LD_PRELOAD");
      const box = await place.anotherBox({ env });
      const always = await shell(box, "echo $LD_PRELOAD");
      const spare = spareOf(box);
      await box.destroy();
      await shell(place.box, "rm greeting");
      const complaints = (text: string): number => text.split("\n").filter((line) => line.startsWith("ERROR:")).length;
      const seen = [once, next, always].map(({ stdout, stderr }) => [stdout, complaints(stderr)]);
      return [seen, spare];
    },
    expected: [
      [
        ["greeting from /bin/bash\n/no/such.so\n", 1],
        ["\n", 0],
        ["greeting from /bin/bash\n/no/such.so\n", 1],
      ],
      "none",
    ],
  },
  "rlimits are taken on in a spare too": {
    run: async () => {
      const rlimits = [{ resource: "nproc", value: 64 }] as const;
      await using limited = await openPlace({ limits: freeLimits({ rlimits }), instance: "limited-spare" });
      const { shell: waiting } = await waitingShell(limited.box);
      const running = await limited.box.run({ ...quick, argv: ["/bin/bash", "-c", "ulimit -u; sleep 100; :"] });
      const limit = await firstText(running.stdout);
      return [limit, commandLine(waiting).slice(0, 2)];
    },
    expected: ["64\n", ["/bin/bash", "-c"]],
  },
  "a box has no spare beside a command, also not beside one that could not have it": {
    run: async (place) => {
      const box = await place.anotherBox();
      const first = await waitingShell(box);
      const running = await box.run({ ...quick, argv: ["/bin/sh", "-c", "echo runs; sleep 100; :"] });
      await firstText(running.stdout);
      while (isThere(first.init)) await aWhile(5);
      const beside = spareOf(box);
      running.kill();
      await running.exit;
      const second = await waitingShell(box);
      await box.destroy();
      return [beside, first.init === second.init];
    },
    expected: ["none", false],
  },
};

/** Those that need a process in which nothing else opens or closes a descriptor, not even a nest for the next box. */
export const LONE_SCENARIOS: Readonly<Record<string, { run: () => Promise<unknown>; expected: unknown }>> = {
  "boxes that are destroyed while a spare or a command is being made leave no descriptor open": {
    run: async () => {
      await promisify(execFile)("/bin/true"); // with its first stream a process opens a descriptor that it keeps
      const before = descriptors();
      await destroyEarly();
      await eventually(() => descriptors() === before);
      return "as many";
    },
    expected: "as many",
  },
};

const quick = { env: {}, workdir: "/workspace", stdin: false } as const;

async function destroyEarly(): Promise<void> {
  await using place = await openPlace();
  for (let round = 0; round < 3; round++) {
    for (let delay = 0; delay < 12; delay++) {
      const box = await place.anotherBox();
      if (delay % 2 === 1) void shell(box, "sleep 100").catch(() => {});
      await aWhile(delay);
      await box.destroy();
    }
  }
}

async function look(place: Place, line: string, more: Partial<BoxCommand> & { input?: string }): Promise<string> {
  const { exitCode, stdout, stderr } = await place.sh(line, more);
  const own = new RegExp(`pipe:\\[\\d+\\]|${place.directory}`, "g"); // differ from one command to the next
  return JSON.stringify({ exitCode, stdout: stdout.replaceAll(own, "?"), stderr });
}

function spareOf(box: BwrapBox): number | "none" {
  return box.sparePid ?? "none";
}

/** Waits until a spare is ready: process 1 of its box, and the shell in it. */
async function waitingShell(box: BwrapBox): Promise<{ init: number; shell: number }> {
  while (true) {
    const init = box.sparePid;
    const [shellPid] = init === undefined ? [] : childrenOf(init);
    if (init !== undefined && shellPid !== undefined && isReading(shellPid)) return { init, shell: shellPid };
    await aWhile(5);
  }
}

function isReading(pid: number): boolean {
  const isShell = commandLine(pid)[1] === "--norc";
  return isShell && readFileSync(`/proc/${pid}/stat`, "latin1").split(" ")[2] === "S";
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
  } catch {
    return [];
  }
}

function isThere(pid: number): boolean {
  return commandLine(pid).length > 1;
}

function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

async function firstText(stream: AsyncIterable<unknown>): Promise<string> {
  for await (const chunk of stream) return String(chunk);
  return "";
}
