import { readdirSync, readlinkSync } from "node:fs";
import { aWhile } from "../../../../../test/support/eventually.ts";
import { IsolationError } from "../../../src/isolation/backend/isolation-error.ts";
import type { BwrapBox } from "../../../src/isolation/bwrap/box.ts";
import { type BoxFixture, freeLimits, openBoxFixture, shell } from "./fixture.ts";

/** What is tried in a box, by root and by an ordinary user, and what must come of it. */
export interface Scenario {
  readonly run: (place: BoxFixture) => Promise<unknown>;
  readonly expected: unknown;
}

const quick = { env: {}, workdir: "/workspace", stdin: false } as const;

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "output, errors and the exit code come back apart": {
    run: (place) => place.sh("echo out; echo err >&2; exit 7"),
    expected: { exitCode: 7, stdout: "out\n", stderr: "err\n" },
  },
  "a command that dies of a signal ends with 128 + n": {
    run: async (place) => [(await place.sh("kill -9 $$")).exitCode, (await place.sh("kill -TERM $$")).exitCode],
    expected: [137, 143],
  },
  "stdin reaches the command and ends; without stdin it reads an end of file": {
    run: async (place) => [(await place.sh("cat", { input: "hello" })).stdout, (await place.sh("cat | wc -c")).stdout],
    expected: ["hello", "0\n"],
  },
  "the environment is the box's, then the command's": {
    run: async (place) => (await place.sh("env | sort", { env: { FOO: "a b\n$c", LANG: "C" } })).stdout,
    expected: [
      ...["EMAIL=agent@sandbox", "FOO=a b", "HOME=/home/agent", "LANG=C", "LOGNAME=agent", "$c"],
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      ...["PWD=/workspace", "SHELL=/bin/bash", "SHLVL=1", "TERM=xterm-256color", "USER=agent", "_=/usr/bin/env"],
    ]
      .sort()
      .join("\n")
      .concat("\n"),
  },
  "arguments arrive as they are, large ones too": {
    run: async (place) => {
      const argv = ["/usr/bin/printf", "%s|", "", " a  b ", "*", "$(id)", "é\n", "x".repeat(100_000)] as const;
      return (await place.sh("", { argv: [...argv] })).stdout.replace(/x{100000}/, "X");
    },
    expected: "| a  b |*|$(id)|é\n|X|",
  },
  "a missing working directory, program or interpreter is told apart from a failing command": {
    run: async (place) => [
      await codeOf(place.sh("true", { workdir: "/nope" })),
      await codeOf(place.sh("true", { workdir: "/etc/passwd" })),
      await codeOf(place.sh("", { argv: ["/no/such/program"] })),
      await codeOf(place.sh("", { argv: ["/etc/passwd"] })),
      await codeOf(place.sh("", { argv: ["/bin/echo", "x".repeat(200_000)] })),
      (await place.sh("exit 1")).exitCode,
    ],
    expected: [
      ...["WORKDIR_UNUSABLE", "WORKDIR_UNUSABLE", "PROGRAM_NOT_FOUND", "PROGRAM_NOT_FOUND", "INVALID_ARGUMENT"],
      1,
    ],
  },
  "a silent command counts as started long before it ends": {
    run: async (place) => {
      const process = await place.box.run({ ...quick, argv: ["/bin/sleep", "1000"] });
      process.kill();
      return (await process.exit).exitCode;
    },
    expected: 137,
  },
  "killing takes a whole tree along, however it hid": {
    run: async (place) => {
      const process = await place.box.run({
        ...quick,
        argv: [
          "/bin/bash",
          "-c",
          "(setsid sh -c 'sleep 100 & setsid sleep 100 & wait' &); trap '' TERM INT; sleep 100 & wait",
        ],
      });
      while (processesOf(place.box) < 7) await aWhile(5); // the keeper, a waiter, bash, sh, three sleeps
      process.kill();
      await process.exit;
      while (processesOf(place.box) > 1) await aWhile(5); // the keeper alone is left, or this never ends
      return "none";
    },
    expected: "none",
  },
  "a daemon that keeps the output open does not delay its command, and outlives it": {
    run: async (place) => [
      await place.sh("setsid sleep 987 & echo done"),
      (await place.sh("until pkill -fx 'sleep 987'; do :; done")).exitCode,
    ],
    expected: [{ exitCode: 0, stdout: "done\n", stderr: "" }, 0],
  },
  "the command has descriptors 0, 1 and 2 only": {
    run: async (place) => (await place.sh("", { argv: ["/bin/ls", "/proc/self/fd"] })).stdout,
    expected: "0\n1\n2\n3\n", // 3 is the listing's own
  },
  "no signal is ignored or blocked, and the command leads a session of its own": {
    run: async (place) => {
      const look =
        "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2 | tr -d '0\\n'; cut -d' ' -f1,5,6 /proc/$$/stat";
      const [pid, group, session] = (await place.sh(look)).stdout.trim().split(" ");
      return [pid !== "", group === pid, session === pid];
    },
    expected: [true, true, true],
  },
  "no capability, no new privileges, a seccomp filter": {
    run: async (place) => (await place.sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")).stdout,
    expected: [
      ...["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}:\t0000000000000000`),
      ...["NoNewPrivs:\t1", "Seccomp:\t2", ""],
    ].join("\n"),
  },
  "every namespace is the box's own": {
    run: async (place) => {
      const kinds = ["user", "pid", "net", "ipc", "uts", "cgroup", "mnt"];
      const inside = (await place.sh(`cd /proc/self/ns; readlink ${kinds.join(" ")}`)).stdout.trim().split("\n");
      return kinds.filter((kind, i) => inside[i] === readlinkSync(`/proc/self/ns/${kind}`));
    },
    expected: [],
  },
  "the user is agent, the host name the given one, and the host knows neither as root": {
    run: async (place) => [(await place.sh("whoami; id -u; hostname; echo ~")).stdout, place.box.owner.uid !== 0],
    expected: ["agent\n1000\nbox\n/home/agent\n", true],
  },
  "process 1 tells nothing of the host": {
    run: async (place) => {
      const words = (await place.sh("tr '\\0' '\\n' < /proc/1/cmdline")).stdout.split("\n");
      // Whether process 1 may be looked at at all depends on how far it is; what can be seen is the box's own.
      const environ = (await place.sh("cat /proc/1/environ 2>/dev/null | wc -c")).stdout;
      const look = 'seen=$(ls -A /proc/1/root 2>/dev/null); [ -z "$seen" ] || [ "$seen" = "$(ls -A /)" ] && echo own';
      const root = (await place.sh(look)).stdout;
      return [words.filter((word) => word.includes(place.directory)), environ, root];
    },
    expected: [[], "0\n", "own\n"],
  },
  "mounts show no path of the host but the system's own": {
    run: async (place) => {
      const text = (await place.sh("cat /proc/self/mountinfo")).stdout;
      const lines = text
        .trim()
        .split("\n")
        .map((line) => line.split(" "));
      const odd = lines.filter(([, , , root, target]) => !isPlainMount(root ?? "", target ?? ""));
      return odd.map(([, , , , target]) => target);
    },
    // The workspace of these tests is a directory of the host; a real one is a file system of its own, mounted at its root.
    expected: ["/workspace"],
  },
  "only the private directories and the workspace can be written": {
    run: async (place) => {
      const tried = [
        "/",
        "/usr",
        "/etc",
        "/dev",
        "/var",
        "/home",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/msgmax",
      ];
      const own = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/workspace"];
      const script = (path: string): string => `[ -d ${path} ] && touch ${path}/x || echo 1 > ${path}`;
      const line = [...tried, ...own].map((path) => `(${script(path)}) 2>/dev/null && echo ${path}`).join("; ");
      return (await place.sh(line)).stdout.trim().split("\n");
    },
    expected: ["/tmp", "/var/tmp", "/dev/shm", "/run", "/workspace"],
  },
  "private directories are full at their size": {
    run: async (place) => {
      const fill = (path: string): string => `head -c 20M /dev/zero > ${path}/f 2>/dev/null; stat -c %s ${path}/f`;
      const sizes = (await place.sh(["/tmp", "/dev/shm"].map(fill).join("; "))).stdout;
      await place.sh("rm /tmp/f /dev/shm/f");
      return sizes.trim().split("\n").map(Number);
    },
    expected: [4, 4].map((size) => size * 1024 * 1024),
  },
  "the host's data in /proc cannot be read": {
    run: async (place) => {
      const names = [
        "keys",
        "key-users",
        "kcore",
        "kmsg",
        "kallsyms",
        "cmdline",
        "partitions",
        "interrupts",
        "timer_list",
      ];
      const line = names.map((name) => `[ -s /proc/${name} ] && head -c1 /proc/${name} && echo ${name}`).join("; ");
      return (await place.sh(`(${line}) 2>/dev/null; ls /sys 2>&1; find /proc/sys -writable 2>/dev/null | wc -l`))
        .stdout;
    },
    expected: "ls: cannot access '/sys': No such file or directory\n0\n",
  },
  "no network device but an own loopback": {
    run: async (place) =>
      (await place.sh("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '; cat /etc/resolv.conf")).stdout,
    expected: "lo\n",
  },
  "compilers, interpreters, git and a debugger work": {
    run: async (place) => {
      const line = [
        "cd /tmp && printf 'int f(int x){return x+1;} int main(){return f(41)-42;}' > a.c && gcc -g -o a a.c && ./a && echo gcc",
        'python3 -c \'import ssl, sqlite3, subprocess; subprocess.run(["true"], check=True); print("python")\'',
        "git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --format=%s",
        "gdb -batch -ex 'break f' -ex run -ex 'print x' ../a 2>&1 | grep '^\\$1'",
        "perl -e 'print \"perl\\n\"'",
      ].join("\n");
      return (await place.sh(line)).stdout;
    },
    expected: "gcc\npython\nx\n$1 = 41\nperl\n",
  },
  "a reader that does not read stops the command": {
    run: async (place) => {
      const process = await place.box.run({ ...quick, argv: ["/bin/sh", "-c", "yes; true"] });
      process.stdout.read(0);
      while (process.stdout.readableLength < 16 * 1024) await aWhile(5);
      for (let turn = 0; turn < 1000; turn++) await new Promise((resolve) => setImmediate(resolve));
      const buffered = process.stdout.readableLength;
      process.kill();
      process.stdout.resume();
      process.stderr.resume();
      return [buffered <= 256 * 1024, (await process.exit).exitCode];
    },
    expected: [true, 137],
  },
  "a cancelled call leaves nothing running": {
    run: async (place) => {
      const abort = new AbortController();
      const starting = codeOf(place.box.run({ ...quick, argv: ["/bin/sleep", "100"] }, { signal: abort.signal }));
      abort.abort();
      return [await starting, await codeOf(place.box.run({ ...quick, argv: ["/bin/true"] }, { signal: abort.signal }))];
    },
    expected: ["CANCELLED", "CANCELLED"],
  },
  "destroy ends what runs and what starts, and is final": {
    run: async (place) => {
      const box = await place.anotherBox();
      const running = await box.run({ ...quick, argv: ["/bin/sleep", "100"] });
      const launching = codeOf(box.run({ ...quick, argv: ["/bin/sleep", "100"] }));
      await Promise.all([box.destroy(), box.destroy()]);
      const ended = (await running.exit).exitCode;
      return [
        ended,
        await launching,
        await codeOf(box.run({ ...quick, argv: ["/bin/true"] })),
        await codeOf(box.start()),
      ];
    },
    expected: [137, "SANDBOX_NOT_RUNNING", "SANDBOX_NOT_RUNNING", "SANDBOX_NOT_RUNNING"],
  },
  "two boxes of one host do not see each other's processes or files in /tmp": {
    run: async (place) => {
      await place.sh("touch /tmp/mine; sleep 985 & until pgrep -fx 'sleep 985'; do :; done");
      const box = await place.anotherBox();
      const seen = await shell(box, "ls -A /tmp; pgrep -fx 'sleep 985'; kill -9 -1 2>/dev/null");
      await box.destroy();
      return [seen.stdout, (await place.sh("pkill -fx 'sleep 985'; rm /tmp/mine")).exitCode];
    },
    expected: ["", 0],
  },
  "fifty commands at once all end": {
    run: async (place) => {
      const all = await Promise.all(Array.from({ length: 50 }, (_, i) => place.sh(`echo ${i}`)));
      return all.every((ended, i) => ended.stdout === `${i}\n` && ended.exitCode === 0);
    },
    expected: true,
  },
  "rlimits are taken on inside, and a missing program is still told": {
    run: async () => {
      const rlimits = [
        { resource: "data", value: 1024 ** 3 },
        { resource: "nproc", value: 64 },
      ] as const;
      const spec = { limits: { memoryBytes: 1024 ** 3 } };
      await using limited = await openBoxFixture({ limits: freeLimits({ rlimits }), instance: "limited", spec });
      const limits = await limited.sh("ulimit -d; ulimit -u");
      return [limits.stdout, await codeOf(limited.box.run({ ...quick, argv: ["/no/such"] }))];
    },
    expected: ["1048576\n66\n", "PROGRAM_NOT_FOUND"], // the keeper and the command's waiter are counted with its processes
  },
};

export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "ok",
    (error: unknown) => (error instanceof IsolationError ? error.code : String(error)),
  );
}

function isPlainMount(root: string, target: string): boolean {
  return root === "/" || root === "/newroot" || target.endsWith(root) || root === "/null";
}

/** How many there are in the box's pid namespace. */
function processesOf(box: BwrapBox): number {
  const namespace = readlinkSync(`/proc/${box.initPid}/ns/pid`);
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/pid`) === namespace;
    } catch {
      return false;
    }
  }).length;
}
