// What code in a subprocess reaches of the machine when its rating was wrong: nothing.

import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { SubprocessExecutor, UnifiedRiskPolicy } from "agentfense/agent";
import { afterAll, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import type { ExecutionTask } from "../../src/executors/executor.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";

const base = mkdtempSync(join(tmpdir(), "agentfense-subprocess-box-"));
afterAll(() => rmSync(base, { recursive: true }));

/** In root's home where that is ours: what is in there is root's alone. */
const secret = join(mkdtempSync(join(process.getuid?.() === 0 ? homedir() : base, ".agentfense-secret-")), "secret");
writeFileSync(secret, "secret of the host", { mode: 0o600 });
afterAll(() => rmSync(join(secret, ".."), { recursive: true }));

function newWorkspace(): AgentWorkspace {
  return new AgentWorkspace("session", { directory: mkdtempSync(join(base, "workspace-")) });
}

const SAFE: Omit<ExecutionTask, "code"> = {
  language: "python",
  risk: { level: "SAFE", detected: [] },
  securityMode: "STRICT",
};

/** Prints, for each attempt, what it got or which error. */
function pythonAttempts(attempts: Readonly<Record<string, string>>): string {
  const lines = Object.entries(attempts).map(
    ([name, attempt]) => `attempt(${JSON.stringify(name)}, lambda: ${attempt})`,
  );
  return `import ctypes, errno, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
results = {}
def call(function, *arguments):
  got = function(*arguments)
  if got < 0: raise OSError(ctypes.get_errno(), '')
  return got
def attempt(name, work):
  try: results[name] = work()
  except OSError as error: results[name] = errno.errorcode[error.errno]
${lines.join("\n")}
print(json.dumps(results))`;
}

async function pythonResults(
  workspace: AgentWorkspace,
  attempts: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  await using executor = new SubprocessExecutor({ workspace });
  const { stdout, stderr } = await executor.execute({ ...SAFE, code: pythonAttempts(attempts) });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

test("files of the machine are neither read nor written, also by way of links in the workspace", async () => {
  const workspace = newWorkspace();
  const outside = mkdtempSync(join(base, "outside-"));
  symlinkSync(secret, join(workspace.directory, "link"));
  symlinkSync(outside, join(workspace.directory, "directory"));
  symlinkSync("../..", join(workspace.directory, "above"));
  const read = (path: string): string => `open(${JSON.stringify(path)}).read()`;
  const write = (path: string): string => `open(${JSON.stringify(path)}, 'w').write('x')`;
  const results = await pythonResults(workspace, {
    readSecret: read(secret),
    readLink: read("link"),
    readShadow: read("/etc/shadow"),
    readHostname: read("/etc/hostname"),
    writeOutside: write(join(outside, "written")),
    writeLink: write("directory/written"),
    writeTmp: write("/tmp/written"),
    writeRoot: write("/written"),
    writeSystem: write("/usr/lib/written"),
    writeDevices: write("/dev/shm/written"),
    home: `os.listdir(${JSON.stringify(homedir())})`,
    above: "sorted(os.listdir('above'))",
    writeInside: write("inside"),
  });
  expect(results).toEqual({
    readSecret: "ENOENT",
    readLink: "ENOENT",
    readShadow: "ENOENT",
    readHostname: "ENOENT",
    writeOutside: "ENOENT",
    writeLink: "ENOENT",
    writeTmp: "ENOENT",
    writeRoot: "EROFS",
    writeSystem: "EROFS",
    writeDevices: "EROFS",
    home: "ENOENT",
    above: ["bin", "dev", "etc", "lib", "lib64", "usr", "workspace"].filter(
      (name) => existsSync(`/${name}`) || name === "workspace",
    ),
    writeInside: 1,
  });
  expect(existsSync(join(outside, "written"))).toBe(false);
  expect(readFileSync(join(workspace.directory, "inside"), "utf8")).toBe("x");
});

test("there are no other processes, no capabilities, no new namespaces, and nothing of the machine's name", async () => {
  const results = await pythonResults(newWorkspace(), {
    proc: "os.listdir('/proc')",
    sys: "os.listdir('/sys')",
    processes: "[pid for pid in range(1, 2000) if pid != os.getpid() and libc.kill(pid, 0) == 0]",
    testProcess: `call(libc.kill, ${process.pid}, 0)`,
    user: "[os.getuid(), os.geteuid(), os.getgid()]",
    bounding: "[number for number in range(41) if libc.prctl(23, number, 0, 0, 0) == 1]",
    noNewPrivileges: "libc.prctl(39, 0, 0, 0, 0)",
    seccomp: "libc.prctl(21, 0, 0, 0, 0)",
    newUserNamespace: "call(libc.unshare, 0x10000000)",
    mount: "call(libc.mount, b'none', b'/workspace', b'tmpfs', 0, None)",
    becomeRoot: "call(libc.setuid, 0)",
    traceInit: "call(libc.ptrace, 16, 1, 0, 0)",
    name: "os.uname().nodename",
    variables: "dict(os.environ)",
  });
  expect(results).toEqual({
    proc: "ENOENT",
    sys: "ENOENT",
    processes: [1],
    testProcess: "ESRCH",
    user: [1000, 1000, 1000],
    bounding: [],
    noNewPrivileges: 1,
    seccomp: 2,
    newUserNamespace: "EPERM",
    mount: "EPERM",
    becomeRoot: "EINVAL",
    traceInit: "EPERM",
    name: "sandbox",
    variables: { HOME: "/workspace", LANG: "C.UTF-8", PATH: "/usr/local/bin:/usr/bin:/bin", PWD: "/workspace" },
  });
  expect(hostname()).not.toBe("sandbox");
});

test("no socket of the machine is reached: no address, no path, no abstract name", async () => {
  const name = `agentfense-box-${process.pid}`;
  const workspace = newWorkspace();
  const path = join(base, "outside.sock");
  const visits: string[] = [];
  const listeners = await Promise.all(
    [{ host: "127.0.0.1", port: 0 }, { path: `\0${name}` }, { path }].map(async (where) => {
      const listener = createServer((socket) => {
        visits.push(JSON.stringify(where));
        socket.destroy();
      }).listen(where);
      await once(listener, "listening");
      return listener;
    }),
  );
  try {
    const { port } = listeners[0]!.address() as { port: number };
    symlinkSync(path, join(workspace.directory, "socket"));
    const results = await pythonResults(workspace, {
      address: `socket.socket().connect(('127.0.0.1', ${port}))`,
      elsewhere: `socket.socket().connect(('192.0.2.1', 80))`,
      abstract: `socket.socket(socket.AF_UNIX).connect('\\0${name}')`,
      path: `socket.socket(socket.AF_UNIX).connect(${JSON.stringify(path)})`,
      link: `socket.socket(socket.AF_UNIX).connect('socket')`,
    });
    expect(results).toEqual({
      address: "ECONNREFUSED",
      elsewhere: "ENETUNREACH",
      abstract: "ECONNREFUSED",
      path: "ENOENT",
      link: "ENOENT",
    });
    expect(visits).toEqual([]);
  } finally {
    for (const listener of listeners) listener.close();
  }
});

test("descriptors that this process was started with are not the code's", async () => {
  const workspace = newWorkspace();
  const program = `
import { AgentWorkspace, SubprocessExecutor } from "agentfense/agent";
import { fstatSync } from "node:fs";
const executor = new SubprocessExecutor({ workspace: new AgentWorkspace("s", { directory: process.argv[1] }) });
const code = \`import os
def is_open(fd):
  try: os.fstat(fd); return True
  except OSError: return False
print([fd for fd in range(256) if is_open(fd)])\`;
const task = { code, language: "python", risk: { level: "SAFE", detected: [] }, securityMode: "STRICT" };
const { stdout } = await executor.execute(task);
console.log(fstatSync(40).isFile(), stdout.trim());`;
  const script = `exec 40<"$1" 250<"$1"; exec "$2" --input-type=module -e "$3" "$4"`;
  const { stdout } = await promisify(execFile)(
    "bash",
    ["-c", script, "bash", secret, process.execPath, program, workspace.directory],
    { cwd: import.meta.dirname },
  );
  expect(stdout).toBe("true [0, 1, 2]\n");
});

test("what the code started ends with it, and holds up nobody", async () => {
  await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
  const mark = `600.${randomInt(1e9, 1e10)}${randomInt(1e9, 1e10)}`;
  const code = `require("node:child_process").spawn("sleep", ["${mark}"], { detached: true, stdio: "inherit" }).unref();
console.log("left")`;
  const outcome = await executor.execute({ ...SAFE, code, language: "javascript" });
  expect(outcome).toMatchObject({ stdout: "left\n", stderr: "", exitCode: 0, timedOut: false });
  await eventually(() => expect(commandLinesWith(mark)).toEqual([]));
});

function commandLinesWith(mark: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1");
      } catch {
        return "";
      }
    })
    .filter((line) => line.startsWith("sleep") && line.includes(mark));
}

test("javascript is in the same box", async () => {
  const workspace = newWorkspace();
  symlinkSync(secret, join(workspace.directory, "link"));
  await using executor = new SubprocessExecutor({ workspace });
  const code = `const fs = require("node:fs"); const { execFileSync } = require("node:child_process");
const attempts = {
  secret: () => fs.readFileSync(${JSON.stringify(secret)}, "utf8"),
  link: () => fs.readFileSync("link", "utf8"),
  write: () => fs.writeFileSync(${JSON.stringify(join(base, "written"))}, "x"),
  child: () => execFileSync("cat", [${JSON.stringify(secret)}], { encoding: "utf8", stdio: "pipe" }),
  place: () => [process.cwd(), process.execPath, process.getuid()].join(),
  variables: () => Object.keys(process.env).join(),
};
for (const [name, attempt] of Object.entries(attempts)) {
  try { console.log(name, attempt()) } catch (error) { console.log(name, error.code ?? error.status) }
}`;
  const { stdout, stderr } = await executor.execute({ ...SAFE, code, language: "javascript" });
  expect(stderr).toBe("");
  expect(stdout.trim().split("\n")).toEqual([
    "secret ENOENT",
    "link ENOENT",
    "write ENOENT",
    "child 1",
    "place /workspace,/node,1000",
    "variables PATH,HOME,LANG,PWD",
  ]);
  expect(existsSync(join(base, "written"))).toBe(false);
});

/** Ways past a rating by what is written: an attribute that another module evaluates, a name that is not a number. */
const BYPASSES = {
  python: (path: string, target: string) => `from dataclasses import dataclass, fields
@dataclass
class A:
  x: int = 0
for f in fields(A):
  f.name = """x, print(__import__('os').path.exists('${path}')),
    print(__import__('os').path.exists(__import__('os').path.dirname('${target}')))"""
@dataclass(init=False, repr=False)
class B(A):
  pass
B() == B()`,
  javascript: (path: string, target: string) => `const [a, k] = [...["x", "constructor"], 1];
const [b, load] = [...["x", "getBuiltinModule"], 1];
const fs = [][k][k]("return process")()[load]("node:fs");
console.log(fs.existsSync("${path}"));
try { fs.writeFileSync("${target}", "x"); console.log(true) } catch { console.log(false) }`,
} as const;

test.each(["python", "javascript"] as const)(
  "code of %s that is not what it looks like is not SAFE, and reaches nothing when it is run as if it were",
  async (language) => {
    const target = join(base, "written-by-bypass");
    const code = BYPASSES[language](secret, target);
    expect((await UnifiedRiskPolicy.assess(code, language)).level).not.toBe("SAFE");
    await using executor = new SubprocessExecutor({ workspace: newWorkspace() });
    const { stdout, stderr } = await executor.execute({ ...SAFE, code, language });
    expect(stderr).toBe("");
    // Twice the answer to each comparison in Python, once in JavaScript.
    expect(
      stdout
        .toLowerCase()
        .split("\n")
        .filter((line) => line !== "")
        .every((line) => line === "false"),
    ).toBe(true);
    expect(stdout).not.toBe("");
    expect(existsSync(target)).toBe(false);
  },
);

test.each(["python", "javascript"] as const)(
  "on the machine itself, the same code of %s gets there",
  async (language) => {
    const target = join(base, `written-on-host-${language}`);
    await using executor = new SubprocessExecutor({ workspace: newWorkspace(), isolation: "none" });
    const { stdout } = await executor.execute({ ...SAFE, code: BYPASSES[language](secret, target), language });
    expect(stdout.toLowerCase()).toContain("true");
  },
);
