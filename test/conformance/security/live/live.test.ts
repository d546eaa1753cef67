import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { eventually, withoutHanging } from "../../../support/eventually.ts";
import { type BoxedSandbox, describeBoxes } from "../esc/boxes.ts";

// A sandbox is one box, and many commands live in it: attacks of one command on the next, on another that runs, and on what
// runs them.

/** A line that a program of Python carries out, without a quote of one kind in it. */
const python = (program: string, ...words: string[]): [string, ...string[]] => ["python3", "-c", program, ...words];

/** Something of every kind that a sandbox could share with another by mistake, named after its argument; stays until the end. */
const BELONGINGS = `
import os, socket, sys, time
name = sys.argv[1]
for place in ("/tmp", "/dev/shm", os.path.expanduser("~")): open(f"{place}/{name}", "w").write(name)
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0" + name); abstract.listen()
path = socket.socket(socket.AF_UNIX); path.bind(f"/tmp/{name}.sock"); path.listen()
port = socket.socket(); port.bind(("127.0.0.1", 4712)); port.listen()
time.sleep(3600)`;

/** What of that is found, but for those who carry out the search. */
const SEARCH = `
import glob, os, socket, sys
name = sys.argv[1]
found = [place for place in ("/tmp", "/dev/shm", os.path.expanduser("~")) if os.path.exists(f"{place}/{name}")]
def reached(family, address):
    one = socket.socket(family)
    try: one.connect(address); return True
    except OSError: return False
if reached(socket.AF_UNIX, "\\0" + name): found.append("abstract socket")
if reached(socket.AF_UNIX, f"/tmp/{name}.sock"): found.append("socket")
if reached(socket.AF_INET, ("127.0.0.1", 4712)): found.append("port")
own, at = set(), str(os.getpid())
while at != "0" and at not in own:
    own.add(at)
    at = open(f"/proc/{at}/stat").read().rpartition(")")[2].split()[1]
for each in glob.glob("/proc/[0-9]*/cmdline"):
    try: words = open(each, "rb").read().split(b"\\0")
    except OSError: continue
    if each.split("/")[2] not in own and name.encode() in words: found.append("process")
print("|".join(found))`;

/**
 * Ways to outlive a kill, each with the argument among its words: a daemon behind setsid and two forks, one that ignores what it can, a
 * child of a leader that has ended, and a chain of processes each of which is gone before somebody can look at it twice.
 */
const OUTLIVE = `
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0: os._exit(0)
    time.sleep(3600)
if os.fork() == 0:
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    time.sleep(3600)
if os.fork() == 0:
    if os.fork() > 0: os._exit(0)
    os.setpgid(0, 0)
    time.sleep(3600)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork() > 0: os._exit(0)
print("all begun", flush=True)
time.sleep(3600)`;

/** All that a command could find changed by the one before it. */
const SURROUNDINGS = [
  "env | grep -v -e ^_= -e ^SHLVL= | sort",
  "umask; ulimit -a; pwd; id; trap -p; alias; set -o; shopt; type ls cat python3",
  "grep -E '^(Sig|Shd|NoNewPrivs|Seccomp:|Umask)' /proc/self/status | grep -v SigQ",
  "ls -l /proc/self/fd | grep -o ' [0-9]* -> [a-z/]*' | grep -v proc; cat /proc/self/oom_score_adj; cut -d' ' -f18,19 /proc/self/stat",
].join("; ");

/** Leaves something for the next command in every place that a shell, a loader or an interpreter looks at. */
const PREPARE = [
  "echo 'echo planted; PATH=/tmp/bin:$PATH; umask 0' | tee ~/.bashrc ~/.profile ~/.bash_profile ~/.bash_login ~/.bash_env ~/.shrc ~/.zshenv ~/.pam_environment > /dev/null",
  "mkdir -p /tmp/bin ~/bin ~/.local/bin; for name in ls cat id bash sh env; do for d in /tmp/bin ~/bin ~/.local/bin; do printf '#!/bin/sh\\necho planted\\n' > $d/$name; chmod +x $d/$name; done; done",
  "mkdir -p ~/.config/environment.d; echo LD_PRELOAD=/tmp/x.so | tee ~/.config/environment.d/x.conf /tmp/ld.so.preload > /dev/null",
  "export BASH_ENV=/tmp/bin/bash ENV=/tmp/bin/sh LD_PRELOAD=/nowhere.so PATH=/tmp/bin:$PATH PROMPT_COMMAND='echo planted' 2> /dev/null",
  "umask 0777; ulimit -S -n 16; ulimit -S -c 0; trap '' TERM INT HUP; alias ls='echo planted'; exec 7< /etc/passwd 8> /dev/null; cd /; true",
].join("\n");

const marker = (): string => `marker-${randomBytes(6).toString("hex")}`;

/** How many processes have this among their words. */
async function living(sandbox: BoxedSandbox, name: string): Promise<number> {
  const { stdout } = await sandbox.exec({ command: python(SEARCH, name) });
  return stdout
    .trim()
    .split("|")
    .filter((word) => word === "process").length;
}

describeBoxes("LIVE: many commands in one box", (box) => {
  test("LIVE-01 nothing that one sandbox has, runs or listens at is found in another, and all of it by its own next command", async () => {
    const name = marker();
    const other = await box.another();
    const staying = other.exec({ command: python(BELONGINGS, name) }).catch(() => {});
    const found = async (by: BoxedSandbox) =>
      new Set((await by.exec({ command: python(SEARCH, name) })).stdout.trim().split("|"));
    const own = ["/tmp", "/dev/shm", "/home/agent", "abstract socket", "socket", "port", "process"];
    await eventually(async () => expect(await found(other)).toEqual(new Set(own)));
    expect(await found(box.sandbox)).toEqual(new Set([""]));
    await other.destroy();
    await staying;
  });

  test("LIVE-02 a command that stops or fills all it can leaves neighbours alone, and its own sandbox answers or says why not", async () => {
    const victim = await box.another();
    const fill =
      "import os, signal, time\\nwhile True:\\n  try:\\n    if os.fork() == 0:\\n      signal.pause()\\n  except OSError: break";
    await victim.exec({ command: `python3 -c "$(printf '${fill}')"; kill -STOP -1`, timeoutMs: 2_000 }).catch(() => {});
    expect((await box.sandbox.exec({ command: "echo neighbour" })).stdout).toBe("neighbour\n");
    const next = await withoutHanging(() =>
      victim.exec({ command: "echo next", timeoutMs: 2_000 }).then(
        ({ exitCode, stdout }) => (exitCode === 0 ? stdout : `exit code ${exitCode}`),
        ({ code }: { code?: string }) => code,
      ),
    );
    expect(["next\n", "exit code 137", "RESOURCES_EXHAUSTED"]).toContain(next);
    await withoutHanging(() => victim.destroy());
    expect((await box.sandbox.exec({ command: "echo still" })).stdout).toBe("still\n");
  });

  test("LIVE-05 LIVE-06 when its time is up nothing that a command started is left, however it hid, and another command goes on", async () => {
    const [victim, witness] = [marker(), marker()];
    const sandbox = await box.another();
    const waiting = sandbox.exec({
      command: ["bash", "-c", 'until [ -e /tmp/over ]; do read -t 0.05 < <(:) || :; done; echo "$0" goes on', witness],
    });
    const { exitCode, stdout } = await sandbox.exec({ command: python(OUTLIVE, victim), timeoutMs: 3_000 });
    expect({ exitCode, stdout }).toEqual({ exitCode: 137, stdout: "all begun\n" });
    await eventually(async () => expect(await living(sandbox, victim)).toBe(0));
    expect(await living(sandbox, witness)).toBeGreaterThanOrEqual(1);
    await sandbox.exec({ command: "touch /tmp/over" });
    expect(await waiting).toMatchObject({ exitCode: 0, stdout: `${witness} goes on\n` });
  });

  test("LIVE-07 the next command has the environment, signals, limits and descriptors that it is given, whatever the one before left", async () => {
    const sandbox = await box.another();
    const before = await sandbox.exec({ command: SURROUNDINGS, env: { GIVEN: "1" } });
    expect(before).toMatchObject({ exitCode: 0, stderr: "" });
    expect(before.stdout).toContain("GIVEN=1");
    await sandbox.exec({ command: PREPARE, env: { SET_BEFORE: "1" } });
    // What was left is there, and nobody looked at it.
    expect((await sandbox.exec({ command: "cat ~/.bashrc | head -c 12" })).stdout).toBe("echo planted");
    expect(await sandbox.exec({ command: SURROUNDINGS, env: { GIVEN: "1" } })).toMatchObject(before);
  });
});
