import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { ExecutorError } from "../../src/errors.ts";
import type { ExecutionTask, Executor } from "../../src/executors/executor.ts";
import type { ExecutionOutcome, Language, SandboxType } from "../../src/types.ts";

interface ExecutorSubject {
  readonly type: SandboxType;
  /** What it says it can run; the suite runs no other. */
  readonly languages: readonly Language[];
  /** A new one on a workspace of its own. */
  readonly open: () => Promise<Executor>;
  /** What `open` limits a whole sandbox to. */
  readonly limits?: { readonly memoryBytes?: number | undefined; readonly pids?: number | undefined } | undefined;
  /** By the title of a test, why it is left out. */
  readonly skip?: Readonly<Record<string, string>> | undefined;
}

const GREETINGS: Readonly<Record<Language, string>> = {
  python: "print('hello from', 'python')",
  javascript: "console.log(['hello from', 'javascript'].join(' '))",
  typescript: "const words: readonly string[] = ['hello from', 'typescript']; console.log(words.join(' '))",
  bash: "[[ bash == b* ]] && echo hello from bash",
  command: "echo hello from COMMAND | tr A-Z a-z",
};

/** What every executor promises. Python is spoken by all of them. */
export function describeExecutor(name: string, subject: ExecutorSubject): void {
  const { languages, limits = {}, skip = {}, type } = subject;
  const promise = (title: string, body: () => Promise<void>): void => {
    const reason = skip[title];
    if (reason !== undefined) process.stdout.write(`skipped (${name}): ${title}: ${reason}\n`);
    test.skipIf(reason !== undefined)(title, body);
  };
  const speaks = (language: Language, title: string, body: () => Promise<void>): void => {
    if (languages.includes(language)) promise(title, body);
  };

  // Side by side: executions do not disturb each other, and the suite takes half of the time.
  describe.concurrent(`${name}: what every executor promises`, () => {
    let executor: Executor;
    beforeAll(async () => {
      executor = await subject.open();
    });
    afterAll(async () => await executor?.[Symbol.asyncDispose]());

    const run = (code: string, rest: Partial<ExecutionTask> = {}, signal?: AbortSignal): Promise<ExecutionOutcome> =>
      executor.execute(taskOf(type, { code, ...rest }), { signal });

    promise("tells what it is", async () => {
      expect(executor.type).toBe(type);
      expect([...executor.languages].sort()).toEqual([...languages].sort());
      await executor.check();
    });

    for (const language of languages) {
      promise(`${language} prints`, async () => {
        expect(await run(GREETINGS[language], { language })).toEqual({
          stdout: `hello from ${language}\n`,
          stderr: "",
          exitCode: 0,
          timedOut: false,
          outOfMemory: false,
          truncated: false,
          durationMs: expect.any(Number),
        });
      });
    }

    promise("a language it does not speak is refused", async () => {
      const klingon = "klingon" as Language;
      await expect(run("1", { language: klingon })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    });

    promise("code reads nothing from its input", async () => {
      expect(await run("import sys; print(repr(sys.stdin.read()))")).toMatchObject({ stdout: "''\n", exitCode: 0 });
    });

    speaks("bash", "a script of bash reads nothing from its input", async () => {
      expect(await run("cat; read line || echo end", { language: "bash" })).toMatchObject({ stdout: "end\n" });
    });

    promise("exit codes are results", async () => {
      expect(await run("import sys; print('before'); sys.exit(7)")).toMatchObject({ stdout: "before\n", exitCode: 7 });
    });

    promise("death by a signal is 128 and its number", async () => {
      const outcome = await run("import os; os.kill(os.getpid(), 15)");
      expect(outcome).toMatchObject({ exitCode: 143, timedOut: false });
    });

    promise("stdout and stderr are apart", async () => {
      const outcome = await run("import sys; print('out'); print('err', file=sys.stderr)");
      expect(outcome).toMatchObject({ stdout: "out\n", stderr: "err\n" });
    });

    promise("text of every script arrives as it was written", async () => {
      const text = "Grüße, 世界, שלום, 🦀, \u0001\t|";
      expect(await run(`print(${JSON.stringify(text)})`)).toMatchObject({ stdout: `${text}\n`, stderr: "" });
    });

    promise("bytes that are no text do no harm", async () => {
      const outcome = await run("import sys; sys.stdout.buffer.write(b'a\\xff\\x00\\xfeb')");
      expect(outcome).toMatchObject({ stdout: "a\ufffd\0\ufffdb", exitCode: 0 });
    });

    promise("an uncaught exception has a traceback", async () => {
      const outcome = await run("def divide():\n    return 1 / 0\ndivide()\n");
      expect(outcome.exitCode).toBe(1);
      expect(outcome.stdout).toBe("");
      expect(outcome.stderr).toMatch(/^Traceback[\s\S]*line 2, in divide[\s\S]*ZeroDivisionError/);
    });

    speaks("javascript", "an uncaught exception of javascript has a stack", async () => {
      const outcome = await run("function fail() { throw new Error('on purpose') }\nfail()", {
        language: "javascript",
      });
      expect(outcome.exitCode).toBe(1);
      expect(outcome.stderr).toContain("Error: on purpose");
    });

    speaks("javascript", "javascript may be a module or not", async () => {
      const modern = "import { EOL } from 'node:os'; console.log(JSON.stringify(EOL), await 7)";
      const classic = "const { EOL } = require('node:os'); console.log(JSON.stringify(EOL), typeof module)";
      expect(await run(modern, { language: "javascript" })).toMatchObject({ stdout: '"\\n" 7\n', stderr: "" });
      expect(await run(classic, { language: "javascript" })).toMatchObject({ stdout: '"\\n" object\n', stderr: "" });
    });

    speaks("typescript", "typescript that cannot be read is an outcome", async () => {
      const files = { "with-typescript.txt": "kept" };
      const outcome = await run("const n: number = = 1", { language: "typescript", files });
      expect(outcome).toMatchObject({ exitCode: 1, stdout: "", timedOut: false });
      expect(outcome.stderr).toMatch(/^SyntaxError: Expression expected/);
      expect(await run("print(open('with-typescript.txt').read())")).toMatchObject({ stdout: "kept\n" });
    });

    speaks("typescript", "typescript made to break its parser breaks nothing else", async () => {
      const outcome = await run("(".repeat(400_000), { language: "typescript" });
      expect(outcome).toMatchObject({ exitCode: 1, stderr: "SyntaxError: this cannot be parsed\n" });
      expect(await run("const x: string = = 1", { language: "typescript" })).toMatchObject({
        stderr: expect.stringContaining("Expression expected"),
      });
    });

    speaks("command", "a command line is the shell's: pipelines, lists, substitutions", async () => {
      const line = "printf 'b\\na\\nb\\n' | sort | head -n 2 | wc -l && echo $((40 + 2)); false || echo or";
      expect((await run(line, { language: "command" })).stdout.replaceAll(" ", "")).toBe("2\n42\nor\n");
    });

    speaks("bash", "nothing in the code is taken for anything else", async () => {
      const code = "echo '$(id)' \"it's\" '`x`' \\\"; printf '%s\\n' -e; echo done";
      expect((await run(code, { language: "bash" })).stdout).toBe("$(id) it's `x` \"\n-e\ndone\n");
    });

    promise("files are there before the code runs", async () => {
      const files = { "given/data.txt": "from a string", "given/bytes.bin": Uint8Array.of(0, 255, 1) };
      const code = "print(open('given/data.txt').read(), list(open('given/bytes.bin', 'rb').read()))";
      expect(await run(code, { files })).toMatchObject({ stdout: "from a string [0, 255, 1]\n", stderr: "" });
    });

    for (const path of ["../outside.txt", "/etc/outside.txt", "a/../../outside.txt", "a\0b"]) {
      promise(`a file at ${JSON.stringify(path)} is refused, and nothing is run`, async () => {
        const error = await run("print('ran')", { files: { [path]: "x" } }).catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(ExecutorError);
        expect(error).toMatchObject({ code: "INVALID_REQUEST" });
      });
    }

    promise("what code wrote is there for the next", async () => {
      await run("import os; os.makedirs('made'); open('made/note.txt', 'w').write('remember')");
      expect(await run("print(open('made/note.txt').read())")).toMatchObject({ stdout: "remember\n", stderr: "" });
    });

    promise("variables are passed", async () => {
      const env = { GREETING: "good $HOME 'day'", EMPTY: "" };
      const code = "import os; print(os.environ['GREETING'], repr(os.environ['EMPTY']))";
      expect(await run(code, { env })).toMatchObject({ stdout: "good $HOME 'day' ''\n" });
    });

    promise("a variable with an impossible name is refused", async () => {
      await expect(run("1", { env: { "A=B": "x" } })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
      await expect(run("1", { env: { A: "x\0y" } })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    });

    promise("nothing of our own environment is visible", async () => {
      const name = `AGENTFENSE_CANARY_${randomInt(1e9)}`;
      process.env[name] = "secret";
      try {
        const code = `import os; print([k for k in os.environ if 'CANARY' in k or 'NODE' in k or 'VITEST' in k])`;
        expect(await run(code)).toMatchObject({ stdout: "[]\n" });
      } finally {
        delete process.env[name];
      }
    });

    promise("it runs in the workspace", async () => {
      const code = "import os; print(open(os.path.join(os.getcwd(), 'where.txt')).read())";
      expect(await run(code, { files: { "where.txt": "here" } })).toMatchObject({ stdout: "here\n" });
    });

    promise("when the time is up, all of the tree is dead", async () => {
      const mark = sleepMark();
      const outcome = await run(`${spawnSleepers(mark)}\nimport time; time.sleep(600)`, { timeoutMs: 5_000 });
      expect(outcome).toMatchObject({ timedOut: true, stdout: "begun\n" });
      expect(outcome.exitCode).not.toBe(0);
      await eventually(async () => expect(await processesWith(mark)).toEqual([]));
    });

    promise("aborting throws the reason, and all of the tree is dead", async () => {
      const mark = sleepMark();
      const leaving = new AbortController();
      const reason = new Error("no longer wanted");
      const running = run(`${spawnSleepers(mark)}\nimport time; time.sleep(600)`, {}, leaving.signal);
      const thrown = running.catch((error: unknown) => error);
      await eventually(async () => expect(await processesWith(mark)).not.toEqual([]));
      leaving.abort(reason);
      expect(await thrown).toBe(reason);
      await eventually(async () => expect(await processesWith(mark)).toEqual([]));
    });

    promise("what is aborted before it began is not begun", async () => {
      const reason = new Error("never wanted");
      const files = { "never.txt": "x" };
      await expect(run("print(1)", { files }, AbortSignal.abort(reason))).rejects.toBe(reason);
      const code = "import os; print(os.path.exists('never.txt'))";
      expect(await run(code)).toMatchObject({ stdout: "False\n" });
    });

    promise("output beyond the limit is cut and told", async () => {
      const code = "import sys\nfor _ in range(40): sys.stdout.write('x' * 131072)\nprint('end', file=sys.stderr)";
      const outcome = await run(code);
      expect(outcome).toMatchObject({ truncated: true, exitCode: 0, stderr: "end\n" });
      expect(Buffer.byteLength(outcome.stdout)).toBeLessThanOrEqual(1024 * 1024);
      expect(outcome.stdout.startsWith("x".repeat(64 * 1024))).toBe(true);
    });

    promise("ten side by side do not mix", async () => {
      const numbers = Array.from({ length: 10 }, (_, index) => index);
      const code = (n: number): string =>
        `import sys; print(open('side-${n}.txt').read() * 3); print(${n}, file=sys.stderr); sys.exit(${n})`;
      const outcomes = await Promise.all(numbers.map((n) => run(code(n), { files: { [`side-${n}.txt`]: `<${n}>` } })));
      expect(outcomes.map(({ stdout, stderr, exitCode }) => [stdout, stderr, exitCode])).toEqual(
        numbers.map((n) => [`${`<${n}>`.repeat(3)}\n`, `${n}\n`, n]),
      );
    });

    promise("long code runs", async () => {
      const filler = `# ${"long ".repeat(100)}\n`.repeat(1000);
      expect(Buffer.byteLength(filler)).toBeGreaterThan(500 * 1000);
      expect(await run(`${filler}print('end')`)).toMatchObject({ stdout: "end\n", exitCode: 0 });
    });

    speaks("bash", "a long script of bash runs, and its input is empty too", async () => {
      const filler = `# ${"long ".repeat(100)}\n`.repeat(1000);
      expect(await run(`${filler}cat; echo "end"; exit 5`, { language: "bash" })).toMatchObject({
        stdout: "end\n",
        exitCode: 5,
      });
    });

    promise("code with a NUL is refused", async () => {
      await expect(run("print(1)\0print(2)")).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    });

    promise("a time that is none is refused", async () => {
      await expect(run("1", { timeoutMs: 0 })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
      await expect(run("1", { timeoutMs: Number.NaN })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    });

    promise("after dispose, which may be called twice, nothing is run", async () => {
      const other = await subject.open();
      await other[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
      await expect(other.execute(taskOf(type, { code: "print(1)" }))).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await expect(other.check()).rejects.toBeInstanceOf(ExecutorError);
    });

    promise("dispose ends what runs", async () => {
      const other = await subject.open();
      const mark = sleepMark();
      const code = `${spawnSleepers(mark)}\nimport time; time.sleep(600)`;
      const running = other.execute(taskOf(type, { code })).catch((error: unknown) => error);
      await eventually(async () => expect(await processesWith(mark)).not.toEqual([]));
      await other[Symbol.asyncDispose]();
      expect(await running).toBeInstanceOf(ExecutorError);
      await eventually(async () => expect(await processesWith(mark)).toEqual([]));
    });

    promise("a listener on the host's loopback is out of reach", async () => {
      let visits = 0;
      const listener = createServer((socket) => {
        visits += 1;
        socket.destroy();
      }).listen(0, "127.0.0.1");
      await once(listener, "listening");
      try {
        const { port } = listener.address() as { port: number };
        const code = `import socket
try:
  socket.create_connection(('127.0.0.1', ${port}), 5)
  print('reached')
except OSError:
  print('not reached')`;
        expect(await run(code)).toMatchObject({ stdout: "not reached\n" });
        expect(visits).toBe(0);
      } finally {
        listener.close();
      }
    });

    promise("the host's files are invisible", async () => {
      const place = await mkdtemp(join(tmpdir(), "agentfense-canary-"));
      const canary = join(place, "canary.txt");
      await writeFile(canary, "secret of the host");
      try {
        const paths = JSON.stringify([canary, place]);
        const code = `import os; print([os.path.exists(path) for path in ${paths}])`;
        expect(await run(code)).toMatchObject({ stdout: "[False, False]\n" });
      } finally {
        await rm(place, { recursive: true });
      }
    });
  });

  if (limits.memoryBytes === undefined && limits.pids === undefined) return;

  // One after the other, in an executor of their own: what runs beside them in the same sandbox would suffer as well.
  describe(`${name}: its limits`, () => {
    let executor: Executor;
    beforeAll(async () => {
      executor = await subject.open();
    });
    afterAll(async () => await executor?.[Symbol.asyncDispose]());

    const run = (code: string): Promise<ExecutionOutcome> => executor.execute(taskOf(type, { code }));

    if (limits.memoryBytes !== undefined) {
      promise("memory is limited, and that it ran out is told", async () => {
        const pieces = Math.ceil(limits.memoryBytes! / 2 ** 20) * 4;
        const code = `print(len([b'\\xff' * 2**20 for _ in range(${pieces})]))`;
        const outcome = await run(code);
        expect(outcome).toMatchObject({ stdout: "", outOfMemory: true, timedOut: false });
        expect(outcome.exitCode).not.toBe(0);
      });
    }

    if (limits.pids !== undefined) {
      promise("the number of processes is limited", async () => {
        const code = `import os, signal, time
children = []
try:
  while len(children) < ${limits.pids! * 2}:
    pid = os.fork()
    if pid == 0:
      time.sleep(600)
    children.append(pid)
  print('unlimited')
except OSError as error:
  print('limited')
for pid in children: os.kill(pid, signal.SIGKILL)`;
        expect(await run(code)).toMatchObject({ stdout: "limited\n" });
      });
    }
  });
}

function taskOf(type: SandboxType, rest: Partial<ExecutionTask>): ExecutionTask {
  return {
    code: "",
    language: "python",
    risk: { level: type === "subprocess" ? "SAFE" : "HIGH", detected: [] },
    securityMode: "STRICT",
    ...rest,
  };
}

/** An argument of `sleep` that no other process has. */
function sleepMark(): string {
  return `600.${randomInt(1e9, 1e10)}${randomInt(1e9, 1e10)}`;
}

/** Three children: one that stays, one in a session of its own, one whose parent is gone. */
function spawnSleepers(mark: string): string {
  return `import os, subprocess
subprocess.Popen(['sleep', '${mark}'])
subprocess.Popen(['sleep', '${mark}'], start_new_session=True)
if os.fork() == 0:
  subprocess.Popen(['sleep', '${mark}'], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  os._exit(0)
os.wait()
print('begun', flush=True)`;
}

/** The process ids of this machine's processes with the mark on their command line, in whatever namespace. */
async function processesWith(mark: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")));
  return pids.filter((_, index) => lines[index]!.startsWith("sleep") && lines[index]!.includes(mark));
}
