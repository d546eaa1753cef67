import { execFileSync } from "node:child_process";
import { afterAll, describe, expect, test } from "vitest";
import { type Architecture, SYSCALL_NUMBERS } from "../../../src/isolation/seccomp/numbers.ts";
import { NOT_GRANTED, POLICY } from "../../../src/isolation/seccomp/policy.ts";
import { Box, reasonAgainstBox, reasonWithout } from "./box.ts";
import { verdictOf } from "./calls.ts";
import type { Call } from "./interpreter.ts";

// The filter in the kernel: what it refuses is refused, and the tools of a developer do not notice it.

const reason = reasonAgainstBox();
const architecture = process.arch as Architecture;
const numbers = SYSCALL_NUMBERS[architecture];
const box = new Box(architecture);
afterAll(() => box[Symbol.dispose]());

// Makes the calls it reads and prints the errno of each, 0 for a success.
const PROBE = `
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
results = []
for number, args in json.load(open("calls.json")):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_ulong(int(arg)) for arg in args])
    results.append(ctypes.get_errno() if result == -1 else 0)
print(json.dumps(results))
`;

// The kernel keeps these two from filters: only the code it put at a probe may call them, all others get SIGILL.
const PAST_ALL_FILTERS = new Set(["uprobe", "uretprobe"]);

function isRefused(name: string): boolean {
  return typeof (POLICY.get(name) ?? NOT_GRANTED) === "number";
}

async function errnosOf(calls: readonly Call[]): Promise<number[]> {
  const input = JSON.stringify(calls.map(({ number, args }) => [number, args.map(String)]));
  const { code, stdout, stderr } = await box.run("/usr/bin/python3 probe.py", {
    "probe.py": PROBE,
    "calls.json": input,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as number[];
}

function call(name: string, ...args: (number | bigint)[]): Call {
  const padded = [...args, 0, 0, 0, 0, 0, 0].slice(0, 6).map((arg) => BigInt.asUintN(64, BigInt(arg)));
  return { number: numbers.get(name)!, args: padded };
}

describe.skipIf(reason !== "")(`the kernel with our filter${reason}`, () => {
  test("refuses every call that is not in the policy", async () => {
    const names = [...numbers.keys()].filter((name) => isRefused(name) && !PAST_ALL_FILTERS.has(name));
    const calls = names.map((name) => call(name));
    const errnos = await errnosOf(calls);
    expect(names.map((name, index) => [name, errnos[index]])).toEqual(
      names.map((name, index) => [name, verdictOf(calls[index]!, architecture)]),
    );
    expect(names.length).toBeGreaterThan(80);
  });

  test("refuses by arguments, whatever is in the bits the kernel ignores", async () => {
    const high = 0x1_0000_0000n;
    const calls = [
      ...[0x1000_0011, 0x0002_0011, 0x2000_0011, 0x4000_0011, 0x0800_0011, 0x0400_0011, 0x0200_0011].flatMap(
        (flags) => [call("clone", flags), call("clone", high | BigInt(flags))],
      ),
      ...[0x5412, 0x541c, 0x5423].flatMap((request) => [
        call("ioctl", 0, request),
        call("ioctl", 0, high | BigInt(request)),
      ]),
      call("personality", 0x0040000),
      call("prctl", 62, 1),
      call("mknodat", -100, 0, 0o020600),
      call("socket", 2, 3, 1),
      call("socket", 16, 3, 12),
      call("socket", 17, 3, 0x300),
      call("socket", 38, 5),
      call("socket", 40, 1),
      call("socket", high | 40n, 1),
      call("socketpair", 30, 5),
    ];
    const expected = calls.map((one) => verdictOf(one, architecture));
    expect(expected).not.toContain("allow");
    expect(await errnosOf(calls)).toEqual(expected);
  });

  test("allows by arguments", async () => {
    const calls = [
      call("socket", 1, 1),
      call("socket", 2, 1 | 0x80000, 6),
      call("socket", 10, 2),
      call("socket", 16, 3, 0),
      call("personality", 0xffff_ffff),
      call("prctl", 3),
      call("ioctl", 1, 0x541b, 0), // FIONREAD, of a pipe, to nowhere
    ];
    expect(await errnosOf(calls)).toEqual([0, 0, 0, 0, 0, 0, 14 /* EFAULT: it got that far */]);
  });

  test("has no unknown numbers, no x32 calls and no call -1", async () => {
    const unknown = [350, 471, 600, 0x4000_0000 | 39, 0xffff_ffff];
    expect(await errnosOf(unknown.map((number) => ({ number, args: [] })))).toEqual(unknown.map(() => 38));
  });

  const compiler = reasonWithout(["gcc"]) || reasonWithoutI386();
  test.skipIf(compiler !== "")(`ends a program that calls as an i386 one${compiler}`, async () => {
    const { code } = await box.run("gcc -o i386 i386.c && ./i386", { "i386.c": I386_GETPID });
    expect(code).toBe(128 + 31); // SIGSYS
  });
});

const I386_GETPID = `int main(void) { long pid; __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20)); return pid <= 0; }`;

function reasonWithoutI386(): string {
  if (process.arch !== "x64") return " (skipped: not an x86-64 machine)";
  try {
    const program = "d=$(mktemp -d) && gcc -x c -o $d/i386 - && $d/i386; code=$?; rm -r $d; exit $code";
    execFileSync("sh", ["-c", program], { input: I386_GETPID, stdio: "pipe" });
    return "";
  } catch {
    return " (skipped: this kernel does not run i386 calls)";
  }
}

interface Tool {
  readonly title: string;
  readonly programs: readonly string[];
  readonly script: string;
  readonly files?: Readonly<Record<string, string>>;
  /** A line that the output must have. */
  readonly says: string | RegExp;
}

const PROGRAM = `
#include <stdio.h>
int twice(int number) { return 2 * number; }
int main(void) { printf("%d\\n", twice(21)); return 0; }
`;

const THREADS = `
import concurrent.futures, multiprocessing, os, socket, subprocess, tempfile
with concurrent.futures.ThreadPoolExecutor(4) as pool: total = sum(pool.map(lambda n: n * n, range(100)))
with multiprocessing.get_context("fork").Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
os.mkfifo("pipe")
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
print(total, subprocess.run(["echo", "child"], capture_output=True, text=True).stdout, socket.if_nameindex())
`;

const WORKERS = `
const { Worker } = require("node:worker_threads");
const { execFileSync } = require("node:child_process");
const child = execFileSync("echo", ["child"], { encoding: "utf8" }).trim();
const interfaces = Object.keys(require("node:os").networkInterfaces());
new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true }).on("message", (answer) =>
  require("node:fs").promises.writeFile("file", "x").then(() => console.log(child, answer, interfaces.join())),
);
`;

const TOOLS: readonly Tool[] = [
  {
    title: "git commits",
    programs: ["git"],
    script: `git init -q repo && cd repo && echo text > file && git add . &&
      git -c user.name=a -c user.email=a@example.org commit -qm first && git log --oneline && git gc -q && git fsck`,
    says: /^[0-9a-f]{7,} first$/m,
  },
  {
    title: "python uses threads, processes and sockets",
    programs: ["python3"],
    script: "/usr/bin/python3 threads.py",
    files: { "threads.py": THREADS },
    says: /^328350 child$/m,
  },
  {
    title: "node uses workers and children",
    programs: [],
    script: `"${process.execPath}" workers.js`,
    files: { "workers.js": WORKERS },
    says: /^child 42 lo$/m,
  },
  {
    title: "make compiles with gcc",
    programs: ["make", "gcc"],
    script: `printf 'program: program.c\\n\\tgcc -g -pipe -o $@ $<\\n' > Makefile && make -j2 && ./program`,
    files: { "program.c": PROGRAM },
    says: /^42$/m,
  },
  {
    title: "gdb stops its child and looks into it",
    programs: ["gdb", "gcc"],
    script: `gcc -g -o program program.c &&
      gdb -nx -batch -ex 'break twice' -ex run -ex 'print number' -ex continue ./program 2>&1`,
    files: { "program.c": PROGRAM },
    says: /\$1 = 21\n.*\n?42\n/s,
  },
  {
    title: "strace follows its children",
    programs: ["strace"],
    script: "strace -f -o trace sh -c '/bin/echo traced; true' && grep -o 'execve(./bin/echo' trace",
    says: /^traced\nexecve\("\/bin\/echo$/m,
  },
  {
    title: "strace makes a call of its child fail",
    programs: ["strace"],
    script: "touch file; strace -qq -o trace -e inject=unlinkat:error=EROFS rm file 2>&1; ls file",
    says: /Read-only file system\nfile\n/,
  },
  {
    title: "tar packs and unpacks",
    programs: ["tar", "gzip"],
    script: `mkdir -p a/b && echo text > a/b/c && ln -s b a/link && tar czf a.tgz a && mkdir out && tar xzf a.tgz -C out &&
      cat out/a/link/c`,
    says: /^text$/m,
  },
  {
    title: "npm packs",
    programs: ["npm"],
    script: `"${process.execPath}" "$(readlink -f "$(command -v npm)")" pack --offline --no-update-notifier 2>&1`,
    // Itself alone: a clone of this repository may be beside it.
    files: { "package.json": JSON.stringify({ name: "packed", version: "1.2.3", files: ["package.json"] }) },
    says: /^packed-1\.2\.3\.tgz$/m,
  },
  {
    title: "bash runs jobs and substitutions",
    programs: [],
    script: `sleep 0.01 & wait $!; cat <(echo one) <(echo two) | sort -r; read -t 1 x <<< here; echo $x; trap 'echo bye' EXIT`,
    says: /^two\none\nhere\nbye$/m,
  },
];

describe.skipIf(reason !== "")(`under our filter${reason}`, () => {
  for (const { title, programs, script, files, says } of TOOLS) {
    const without = reasonWithout(programs);
    test.skipIf(without !== "")(`${title}${without}`, async () => {
      const outcome = await box.run(script, files);
      expect(outcome).toMatchObject({ code: 0, stdout: expect.stringMatching(says) });
    });
  }
});
