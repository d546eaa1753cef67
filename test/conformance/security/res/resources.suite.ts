import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type BoxedWorkspace,
  type ExecResult,
  type Isolation,
  removeTree,
  type SandboxEvent,
  type SandboxSpec,
} from "@agentfense/server/isolation";
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { heldBytes } from "../../../support/garbage.ts";
import { rounds } from "../../../support/rounds.ts";

// RES: one sandbox uses all it can get. Its limits hold, the server answers others meanwhile, and it can be destroyed.

export interface ResourceOptions {
  open(): Promise<Isolation>;
  readonly spec: Pick<SandboxSpec, "runtime" | "image">;
  /** Why a process may be made less likely to be killed for memory than its sandbox was; absent where it may not. */
  readonly whyOomScoreIsFree?: string | undefined;
}

/** Much more than the memory that may be taken for it, and 3 GB when there is time. */
const FLOOD_BYTES = Math.min(3_000_000_000, rounds(1) * 300_000_000);
/** Of a mebibyte each. */
const INPUT_PIECES = Math.min(2_000, rounds(1) * 250);
const MANY = Math.min(20_000, rounds(1) * 2_000);
const MIB = 1024 * 1024;
const RULES = [{ pattern: "**/*", permission: "write" }] as const;
/** Longer than anything here takes that does not hang. */
const HANG_MS = 60_000;

export function describeResources(name: string, options: ResourceOptions): void {
  describe(`resource attacks in ${name}`, () => {
    let isolation: Isolation;
    let home: string;
    let project: string;
    let neighbour: BoxedWorkspace;

    beforeAll(async () => {
      home = await mkdtemp(join(tmpdir(), "agentfense-resources-"));
      project = join(home, "project");
      await mkdir(project);
      await writeFile(join(project, "file"), "content\n");
      isolation = await options.open();
      neighbour = await running();
    });

    afterAll(async () => {
      await isolation?.close();
      await removeTree(home);
    });

    async function running(extra: Partial<SandboxSpec> = {}): Promise<BoxedWorkspace> {
      const delta = await mkdtemp(join(home, "delta-"));
      const workspaces = [{ lowers: [project], delta, rules: RULES }];
      const sandbox = await isolation.create({ ...options.spec, workspaces, ...extra });
      await sandbox.start();
      return sandbox;
    }

    /** A sandbox for one test, gone after it. */
    async function attacker(extra: Partial<SandboxSpec> = {}): Promise<BoxedWorkspace> {
      const sandbox = await running(extra);
      onTestFinished(() => sandbox.destroy());
      return sandbox;
    }

    /** Runs the attack; a neighbour's commands are answered meanwhile, one after the other. */
    async function attack(sandbox: BoxedWorkspace, command: string, timeoutMs: number): Promise<ExecResult> {
      let over = false;
      const result = sandbox.exec({ command, timeoutMs }).finally(() => {
        over = true;
      });
      do {
        const { exitCode, stdout } = await neighbour.exec({ command: "cat file", timeoutMs: HANG_MS });
        expect([exitCode, stdout.toString()]).toEqual([0, "content\n"]);
      } while (!over);
      return await result;
    }

    /** Starts a command that says when it is where the test wants it. */
    async function begun(sandbox: BoxedWorkspace, command: string): Promise<{ readonly ended: Promise<number> }> {
      const events = sandbox.execStream({ command, timeoutMs: 2 * HANG_MS })[Symbol.asyncIterator]();
      const first = await events.next();
      expect(first.value).toMatchObject({ kind: "stdout" });
      const rest = async (): Promise<number> => {
        for (let event = await events.next(); !event.done; event = await events.next()) {
          if (event.value.kind === "exit") return event.value.outcome.exitCode;
        }
        throw new Error("the command has no end");
      };
      return { ended: rest() };
    }

    /** What this host cannot enforce cannot be tried; the host's own sentence is the reason. */
    function skipWithout(context: TestContext, limit: RegExp): void {
      const degradation = isolation.degradations.find((sentence) => limit.test(sentence));
      if (degradation === undefined) return;
      process.stdout.write(`skipped (${name}): ${context.task.name}: ${degradation}\n`);
      context.skip();
    }

    const python = (code: string): string => `python3 -c '${code}'`;

    test("RES-01 a fork bomb ends at the limit, threads included, and the sandbox recovers", async () => {
      const sandbox = await attacker({ limits: { pids: 60 } });
      // python takes its shell's place, so that it is all that counts: it has exactly what was asked for.
      const threads = python(
        "import threading\nn, go = 1, threading.Event()\ntry:\n  while n < 500: threading.Thread(target=go.wait, daemon=True).start(); n += 1\nexcept RuntimeError: pass\nprint(n)",
      );
      const count = async (): Promise<number> =>
        Number((await sandbox.exec({ command: threads, timeoutMs: HANG_MS })).stdout.toString());
      expect(await count()).toBe(60);
      // Right after another command, of which something may linger and count, it has no more than that.
      for (let round = 0; round < 5; round += 1) expect(await count()).toBeLessThanOrEqual(60);
      await attack(sandbox, "bomb() { bomb | bomb & }; bomb; sleep 30", 2_000);
      expect(await count()).toBeLessThanOrEqual(60);
      expect((await sandbox.exec({ command: "echo ok" })).stdout.toString()).toBe("ok\n");
    });

    test("RES-02 a memory hog is killed at the limit", async () => {
      const sandbox = await attacker({ limits: { memoryBytes: 64 * MIB } });
      const result = await attack(sandbox, python("x = bytearray(1 << 30)\nprint(len(x))"), 20_000);
      expect([result.stdout.toString(), result.exitCode === 0]).toEqual(["", false]);
      if (isolation.degradations.length === 0) expect(result.outOfMemory).toBe(true);
    });

    test("RES-02 memory that is not a process's own is no way round the limit", async () => {
      const sandbox = await attacker({ limits: { memoryBytes: 96 * MIB }, tmpBytes: 512 * MIB });
      const ways = {
        shared: "hold(mmap.mmap(-1, SIZE))",
        zero: 'hold(mmap.mmap(os.open("/dev/zero", os.O_RDWR), SIZE))',
        memfd: 'f = os.memfd_create("x")\nos.truncate(f, SIZE)\nhold(mmap.mmap(f, SIZE))',
        stack: "hold(mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100))",
        systemV:
          "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\ni = c.shmget(0, SIZE, 0o600)\nif i < 0: raise OSError\nctypes.memset(c.shmat(i, None, 0), 1, SIZE)",
        "own and a file": `held = bytearray(b"x") * (${60 * MIB})\nf = os.open("/dev/shm/f", os.O_CREAT | os.O_RDWR)\nfor i in range(SIZE >> 20):\n  if os.write(f, bytes(${MIB})) < ${MIB}: raise OSError`,
      };
      for (const [way, code] of Object.entries(ways)) {
        const program = `import mmap, os\nSIZE = ${90 * MIB}\nkept = bytearray(b"x") * (${20 * MIB})\ndef hold(m):\n  for i in range(0, SIZE, 4096): m[i] = 1\ntry:\n  ${code.replaceAll("\n", "\n  ")}\n  print("had it")\nexcept (OSError, MemoryError): pass`;
        const { stdout } = await sandbox.exec({ command: python(program), timeoutMs: HANG_MS });
        expect([way, stdout.toString()]).toEqual([way, ""]);
      }
    });

    test("RES-03 memory in the shape of files is bounded everywhere", async () => {
      const sandbox = await attacker({ limits: { memoryBytes: 128 * MIB }, tmpBytes: 16 * MIB });
      const places = "/tmp /dev/shm /dev /run /home /var/tmp / /etc /usr /proc /mnt";
      const fill = `for place in ${places}; do head -c 200000000 /dev/zero > $place/fill 2>/dev/null; stat -c "%n %s" $place/fill 2>/dev/null; rm -f $place/fill; done; true`;
      const { stdout } = await attack(sandbox, fill, 30_000);
      for (const line of stdout.toString().split("\n").filter(Boolean)) {
        expect([line, Number(line.split(" ")[1]) <= 64 * MIB]).toEqual([line, true]);
      }
    });

    test("RES-03 files in memory stay within the limit on memory, all places together", async () => {
      const sandbox = await attacker({ limits: { memoryBytes: 96 * MIB } });
      const places = "/tmp /dev/shm /var/tmp /run";
      const fill = `for place in ${places}; do head -c 200000000 /dev/zero > $place/fill 2>/dev/null; stat -c "%b %B" $place/fill 2>/dev/null; done; true`;
      const { stdout } = await attack(sandbox, fill, HANG_MS);
      const sizes = stdout.toString().split("\n").filter(Boolean);
      const bytes = sizes.map((line) => line.split(" ").reduce((product, word) => product * Number(word), 1));
      expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(96 * MIB);
    });

    test("RES-04 busy loops are held to the quota", async (context) => {
      skipWithout(context, /cpu/i);
      const sandbox = await attacker({ limits: { cpuQuota: 30_000 } });
      const used = async (): Promise<number> => ((await sandbox.usage()).cpuMicros ?? 0) / 1000;
      const beganMs = performance.now();
      const before = await used();
      await attack(
        sandbox,
        "for i in 1 2 3 4; do (while :; do :; done) & done; sleep 2; kill $(jobs -p); wait",
        HANG_MS,
      );
      const spent = (await used()) - before;
      // A share of whatever time it took, and one period's worth for each end.
      const elapsed = performance.now() - beganMs;
      expect(spent).toBeGreaterThan(0);
      expect(spent / (elapsed + 200)).toBeLessThan(0.3 * 1.25);
    });

    test("RES-05 the disk is filled to the quota and no further, and freeing works", async () => {
      // What all sandboxes of this file keep on the host; the disk itself others write to as well.
      const used = (): number => Number.parseInt(execFileSync("du", ["-sxB1", home]).toString(), 10);
      const before = used();
      const sandbox = await attacker({ limits: { diskBytes: 8 * MIB } });
      const result = await attack(
        sandbox,
        "for big in big ~/big; do head -c 500000000 /dev/zero > $big; echo $?; stat -c %s $big; rm -f $big; done; echo ok > small; cat small",
        60_000,
      );
      const [, first, second] = /^1\n(\d+)\n1\n(\d+)\nok\n$/.exec(result.stdout.toString()) ?? [];
      for (const size of [Number(first), Number(second)]) expect(size).toBeLessThanOrEqual(8 * MIB);
      expect(used() - before).toBeLessThan(8 * MIB);
    });

    test("RES-06 files without content are counted", async () => {
      const sandbox = await attacker({ limits: { diskFiles: 500 } });
      const { stdout } = await attack(
        sandbox,
        "i=0; while [ $i -lt 5000 ] && : > f$i; do i=$((i+1)); done 2>/dev/null; echo $i",
        60_000,
      );
      expect(Number(stdout.toString())).toBeLessThanOrEqual(500);
    });

    test("RES-07 a sparse giant costs what it holds, and has an end", async () => {
      const sandbox = await attacker({ limits: { diskBytes: 8 * MIB } });
      const { stderr } = await sandbox.exec({
        command: python(
          'import os\nfor size in 7 << 60, 20 << 40:\n  with open("giant", "w") as f:\n    os.truncate(f.fileno(), size)',
        ),
      });
      expect(stderr.toString()).toMatch(/File too large|quota|No space/);
    });

    test("RES-08 a directory with very many entries stays usable", async () => {
      const sandbox = await attacker();
      const { exitCode } = await attack(
        sandbox,
        `mkdir many && cd many && seq ${MANY} | xargs touch && ls | wc -l > /tmp/n && [ "$(cat /tmp/n)" = ${MANY} ]`,
        120_000,
      );
      expect(exitCode).toBe(0);
    });

    test("RES-09 a path deeper than PATH_MAX can be made, left and destroyed", async () => {
      const sandbox = await attacker();
      const dig =
        'import os\nfor i in range(300):\n  os.mkdir("d" * 40)\n  os.chdir("d" * 40)\nopen("f", "w").write("x")\nprint("deep")';
      const { stdout } = await sandbox.exec({ command: python(dig), timeoutMs: 60_000 });
      expect(stdout.toString()).toBe("deep\n");
      await sandbox.destroy();
    });

    test("RES-11 appending a byte to a large file is counted before the file is copied", async () => {
      const codebase = await mkdtemp(join(home, "large-"));
      await writeFile(join(codebase, "large"), "");
      await truncate(join(codebase, "large"), 200 * MIB);
      const delta = await mkdtemp(join(home, "delta-"));
      const sandbox = await attacker({
        workspaces: [{ lowers: [codebase], delta, rules: RULES }],
        limits: { diskBytes: 8 * MIB },
      });
      const { exitCode, stderr } = await attack(sandbox, "echo x >> large", 20_000);
      expect([exitCode === 0, /quota|No space/i.test(stderr.toString())]).toEqual([false, true]);
    });

    test("RES-12 a flood of output costs the server no memory", async () => {
      const sandbox = await attacker();
      const before = heldBytes();
      const result = await attack(
        sandbox,
        `head -c ${FLOOD_BYTES} /dev/zero; head -c 50000000 /dev/zero >&2; exit 4`,
        60_000,
      );
      expect(result).toMatchObject({ exitCode: 4, truncated: true });
      expect([result.stdout.length, result.stderr.length]).toEqual([10 * MIB, 10 * MIB]);
      expect(heldBytes() - before).toBeLessThan(150 * MIB);
    });

    test("RES-13 gigabytes of input to a command that does not read, or reads and answers, neither hang nor grow", async () => {
      const sandbox = await attacker();
      async function* gigabytes(): AsyncGenerator<Uint8Array> {
        const piece = Buffer.alloc(MIB);
        for (let i = 0; i < INPUT_PIECES; i += 1) yield piece;
      }
      const before = heldBytes();
      expect(await sandbox.exec({ command: "sleep 1", stdin: gigabytes() })).toMatchObject({ exitCode: 0 });
      const echoed = await sandbox.exec({ command: "cat | tail -c 5 | wc -c", stdin: gigabytes(), timeoutMs: 60_000 });
      expect(echoed.stdout.toString().trim()).toBe("5");
      expect(heldBytes() - before).toBeLessThan(150 * MIB);
    });

    test("RES-14 a command that ignores every signal dies of its timeout", async () => {
      const sandbox = await attacker();
      const deaf = `trap "" INT TERM HUP QUIT USR1 USR2; ${python("import signal, time\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n  except Exception: pass\ntime.sleep(60)")}; sleep 60`;
      const result = await attack(sandbox, deaf, 1_000);
      expect(result).toMatchObject({ timedOut: true, exitCode: 137 });
    });

    test("RES-15 a daemon behind setsid and two forks holds nothing up and ends with the sandbox", async () => {
      const sandbox = await attacker();
      const mark = `daemon ${randomUUID()}`;
      const daemon = python(
        `import os, time # ${mark}\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(300)\n  os._exit(0)\nprint("parent")`,
      );
      // Nobody waits for the five minutes of the daemon: the command would run out of its own time first.
      const result = await attack(sandbox, daemon, HANG_MS);
      expect([result.stdout.toString(), result.timedOut]).toEqual(["parent\n", false]);
      await sandbox.destroy();
      expect(processesNaming(mark)).toEqual([]);
    });

    test("RES-16 stopped processes and a pile of zombies do not hold up destroy", async () => {
      const sandbox = await attacker();
      const pile = python(
        'import os, time, signal\nfor i in range(30):\n  if os.fork() == 0: os._exit(0)\nfor i in range(5):\n  p = os.fork()\n  if p == 0:\n    time.sleep(300)\n  os.kill(p, signal.SIGSTOP)\nprint("piled", flush=True)\ntime.sleep(300)',
      );
      const { ended } = await begun(sandbox, pile);
      await sandbox.destroy();
      expect(await ended).toBe(137);
    });

    test("RES-17 a flood of file-system requests leaves the neighbour its turn", async () => {
      const sandbox = await attacker();
      const flood = python(
        'import os, threading\ndef go():\n  for i in range(2000):\n    try: os.stat("missing%d" % i)\n    except OSError: pass\nfor _ in range(16): threading.Thread(target=go).start()',
      );
      await attack(sandbox, flood, 30_000);
    });

    test("RES-18 thousands of open files run out for the sandbox, not for the server", async () => {
      const sandbox = await attacker();
      const open = python(
        'import os\nheld = []\ntry:\n  for i in range(200000): held.append(os.open("f%d" % (i % 500), os.O_CREAT | os.O_RDWR))\nexcept OSError as e: print(e.strerror)\nprint(len(held) > 100)',
      );
      const { stdout } = await attack(sandbox, open, 60_000);
      expect(stdout.toString()).toMatch(/Too many open files[\s\S]*True/);
      expect((await sandbox.exec({ command: "cat file" })).exitCode).toBe(0);
    });

    test("RES-21 locks that are never let go hold up no end of a sandbox", async () => {
      const workspaces = [{ lowers: [project], delta: await mkdtemp(join(home, "delta-")), rules: RULES }];
      const sandbox = await attacker({ workspaces });
      const lock = python(
        'import fcntl, time\nf = open("file", "r+")\nfcntl.flock(f, fcntl.LOCK_EX)\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint("locked", flush=True)\ntime.sleep(300)',
      );
      const { ended } = await begun(sandbox, lock);
      await sandbox.destroy();
      expect(await ended).toBe(137);
      const next = await attacker({ workspaces });
      expect((await next.exec({ command: "cat file" })).exitCode).toBe(0);
    });

    test("RES-22 no priority can be raised and no limit lifted", async () => {
      const sandbox = await attacker();
      const raise = python(
        'import os, resource\ndef t(n, f):\n  try: f(); print(n, "allowed")\n  except (OSError, ValueError): print(n, "refused")\ndef oom(value):\n  f = os.open("/proc/self/oom_score_adj", os.O_WRONLY)\n  os.write(f, b"%d" % value)\nbefore = int(open("/proc/self/oom_score_adj").read())\nt("nice", lambda: os.nice(-5))\nt("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)))\nt("core", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30)))\nt("files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 22, 1 << 22)))\nfor value in -500, 0, before - 1: t("oom", lambda: oom(value))\ntry: oom(before + 1)\nexcept OSError: pass\nprint(before, int(open("/proc/self/oom_score_adj").read()) >= before)',
      );
      const lines = (await sandbox.exec({ command: raise })).stdout.toString().split("\n");
      expect(lines.slice(0, 5)).toEqual(["nice", "realtime", "core", "files", "oom"].map((what) => `${what} refused`));
      if (options.whyOomScoreIsFree === undefined) {
        expect(lines.slice(5)).toEqual(["oom refused", "oom refused", "500 True", ""]);
      } else process.stdout.write(`skipped (${name}): a lower oom_score_adj: ${options.whyOomScoreIsFree}\n`);
    });

    test("RES-23 a sandbox that takes long to stop holds up no other", async () => {
      const sandboxes = await Promise.all(Array.from({ length: 4 }, () => attacker()));
      await Promise.all(
        sandboxes.map((sandbox) => Promise.all([sandbox.destroy(), attack(neighbour, "true", HANG_MS)])),
      );
    });

    test("RES-24 memory of the kernel is charged to the sandbox", async (context) => {
      skipWithout(context, /memory/i);
      const sandbox = await attacker({ limits: { memoryBytes: 48 * MIB, pids: 200 } });
      const pin = python(
        "import os\nheld = []\nfor i in range(900):\n  try:\n    r, w = os.pipe()\n    os.set_blocking(w, False)\n    try: os.write(w, bytes(1 << 20))\n    except BlockingIOError: pass\n    held += [r, w]\n  except OSError: break\nprint(len(held))",
      );
      const result = await attack(sandbox, `for i in 1 2 3 4 5 6; do ${pin} & done; wait`, 30_000);
      const usage = await sandbox.usage();
      expect(usage.memoryBytes ?? 0).toBeLessThanOrEqual(48 * MIB);
      expect(result.timedOut).toBe(false);
    });

    test("RES-25 thousands of refused probes are a handful of events", async () => {
      const events: SandboxEvent[] = [];
      const delta = await mkdtemp(join(home, "delta-"));
      const rules = [{ pattern: "**/*", permission: "view" }] as const;
      const sandbox = await attacker({
        workspaces: [{ lowers: [project], delta, rules }],
        onEvent: (event) => events.push(event),
      });
      const probe = 'for i in range(20000):\n  try: open("/workspace/file")\n  except OSError: pass';
      await sandbox.exec({ command: python(probe), timeoutMs: 30_000 });
      const denials = events.filter(({ kind }) => kind === "permission_denied");
      expect(denials.length).toBeGreaterThan(0);
      expect(denials.length).toBeLessThan(2_000); // 50 at once and 20 a second, however long it took
    });
  });
}

/** Processes of the whole host that have these words on their command line. */
function processesNaming(words: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(words);
    } catch {
      return false; // it ended while we looked
    }
  });
}
