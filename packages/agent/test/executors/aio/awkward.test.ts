import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { AioExecutor, type AioExecutorOptions } from "../../../src/executors/aio/aio-executor.ts";
import type { ExecutionTask } from "../../../src/executors/executor.ts";
import { type Accident, type Awkwardness, CORRUPT, FakeAio } from "./fake-aio.ts";

const RESET_BEFORE = { kind: "reset", when: "before" } as const;
const RESET_AFTER = { kind: "reset", when: "after" } as const;

/** Says hello, and counts how often it was run. */
const COUNTING = "open('runs', 'a').write('x'); print('hello')";

class Scene implements AsyncDisposable {
  readonly fake: FakeAio;
  readonly executor: AioExecutor;

  static async open(awkwardness: Awkwardness = {}, options: Partial<AioExecutorOptions> = {}): Promise<Scene> {
    return new Scene(await FakeAio.open(awkwardness), options);
  }

  private constructor(fake: FakeAio, options: Partial<AioExecutorOptions>) {
    this.fake = fake;
    this.executor = new AioExecutor({ baseUrl: fake.url, ...options });
  }

  run(code: string, rest: Partial<ExecutionTask> = {}) {
    const risk = { level: "HIGH", detected: [] } as const;
    return this.executor.execute({ code, language: "python", risk, securityMode: "STRICT", ...rest });
  }

  /** How often the counting code was run. */
  get runs(): number {
    const file = join(this.fake.home, "runs");
    return existsSync(file) ? readFileSync(file, "utf8").length : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.executor[Symbol.asyncDispose]();
    await this.fake[Symbol.asyncDispose]();
  }
}

/** A scene in which something happens once, after the server is known. */
async function sceneWith(accident: Accident, awkwardness: Awkwardness = {}): Promise<Scene> {
  const scene = await Scene.open(awkwardness);
  await scene.run("pass");
  scene.fake.accidents.push(accident);
  return scene;
}

describe.concurrent("versions", () => {
  test("a server with bash is used by bash, with a hard timeout on every command", async () => {
    await using scene = await Scene.open();
    await scene.run("print(1)", { timeoutMs: 7_000, env: { A: "b" } });
    expect(scene.fake.bodiesOf("POST v1/bash/exec")).toEqual([
      expect.objectContaining({ hard_timeout: 9, env: { A: "b" }, async_mode: true }),
    ]);
    expect(scene.fake.bodiesOf("POST v1/shell/exec")).toEqual([]);
    expect(await scene.executor.server()).toEqual({ version: "1.9.4", workspace: "/home/gem", calls: "bash" });
  });

  test("a server without bash is used by its shell, with a hard timeout on every command", async () => {
    await using scene = await Scene.open({ without: ["bash"] });
    expect(await scene.run("print(1)")).toMatchObject({ stdout: "1\n", exitCode: 0 });
    expect(await scene.executor.server()).toMatchObject({ version: "1.0.0.150", calls: "shell" });
    const bodies = scene.fake.bodiesOf("POST v1/shell/exec");
    expect(bodies.length).toBeGreaterThan(0);
    for (const body of bodies) expect(body.hard_timeout).toEqual(expect.any(Number));
  });

  test("a server without any commands runs code, and gives what it shows", async () => {
    await using scene = await Scene.open({ without: ["bash", "shell"] });
    expect(await scene.run("print(6 * 7)")).toMatchObject({
      stdout: "42\n",
      exitCode: 0,
      results: [{ data: { "text/plain": "42", "text/html": "<b>42</b>" } }],
    });
    await expect(scene.run("echo 1", { language: "bash" })).rejects.toMatchObject({ code: "REFUSED" });
    await expect(scene.run("1", { env: { A: "b" } })).rejects.toMatchObject({ code: "REFUSED" });
  });

  test("the server is asked once what it is, and again after a failure", async () => {
    await using scene = await Scene.open();
    await scene.run("pass");
    await scene.run("pass");
    expect(scene.fake.bodiesOf("GET v1/sandbox")).toHaveLength(1);
    scene.fake.accidents.push({ path: "v1/file/write", what: RESET_BEFORE });
    await expect(scene.run("pass")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await scene.run("pass");
    expect(scene.fake.bodiesOf("GET v1/sandbox")).toHaveLength(2);
  });

  test("what is no AIO server is told by check", async () => {
    await using scene = await Scene.open();
    const body = { hello: "world", version: 7 };
    scene.fake.accidents.push({ path: "v1/sandbox", what: { kind: "answer", status: 200, body, when: "before" } });
    await expect(scene.executor.check()).rejects.toMatchObject({ name: "ExecutorError", code: "UNAVAILABLE" });
    await scene.executor.check();
    await using nobody = new AioExecutor({ baseUrl: "http://127.0.0.1:1" });
    await expect(nobody.check()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  test("a key that is asked for is sent, and a wrong one is told", async () => {
    await using scene = await Scene.open({ apiKey: "right" }, { apiKey: "right" });
    expect(await scene.run("print(1)")).toMatchObject({ stdout: "1\n" });
    await using other = new AioExecutor({ baseUrl: scene.fake.url, apiKey: "wrong" });
    await expect(other.check()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("API key"),
      hint: "give the right apiKey",
    });
  });
});

describe.concurrent("refusals", () => {
  test("success counts, and not the status: false with 200 is a failure", async () => {
    const body = { success: false, message: "the disk is on fire", data: null, hint: null };
    await using scene = await sceneWith({
      path: "v1/bash/exec",
      what: { kind: "answer", status: 200, body, when: "before" },
    });
    await expect(scene.run(COUNTING)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("the disk is on fire"),
    });
    expect(scene.runs).toBe(0);
  });

  test("a validation error says which field", async () => {
    const body = { detail: [{ loc: ["body", "hard_timeout"], msg: "not an integer", type: "int_type" }] };
    await using scene = await sceneWith({
      path: "v1/bash/exec",
      what: { kind: "answer", status: 422, body, when: "before" },
    });
    await expect(scene.run(COUNTING)).rejects.toMatchObject({
      message: expect.stringMatching(/hard_timeout.*not an integer/),
    });
  });

  test("a file that cannot be written is told, and nothing is run", async () => {
    const data = { path: "/x", operation: "write", message: "Permission denied", error_type: "permission_denied" };
    const body = { success: false, message: "Permission denied", data, hint: null };
    await using scene = await sceneWith({
      path: "v1/file/write",
      what: { kind: "answer", status: 200, body, when: "before" },
    });
    await expect(scene.run(COUNTING, { files: { "a.txt": "x" } })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    expect(scene.runs).toBe(0);
  });

  test("where the server makes no directories, a command does", async () => {
    await using scene = await Scene.open({ noParents: true });
    const files = { "deep/er/a.txt": "content" };
    expect(await scene.run("print(open('deep/er/a.txt').read())", { files })).toMatchObject({ stdout: "content\n" });
  });
});

describe.concurrent("sessions", () => {
  test("a corrupt session is replaced by a fresh one", async () => {
    const what = { kind: "answer", status: 200, body: CORRUPT, when: "before" } as const;
    await using scene = await sceneWith({ path: "v1/shell/exec", what }, { without: ["bash"] });
    expect(await scene.run(COUNTING)).toMatchObject({ stdout: "hello\n", exitCode: 0 });
    expect(scene.runs).toBe(1);
    const used = scene.fake.bodiesOf("POST v1/shell/exec").map(({ id }) => id);
    expect(new Set(used).size).toBe(2);
  });

  test("code that ran in a session that then was corrupt is not run again, and its result is found", async () => {
    const what = { kind: "answer", status: 200, body: CORRUPT, when: "after" } as const;
    await using scene = await sceneWith({ path: "v1/shell/exec", what }, { without: ["bash"] });
    expect(await scene.run(`${COUNTING}; import sys; sys.exit(4)`)).toMatchObject({ stdout: "hello\n", exitCode: 4 });
    expect(scene.runs).toBe(1);
  });

  test("a session that was evicted is replaced", async () => {
    await using scene = await sceneWith({ path: "v1/bash/exec", what: { kind: "evict" } });
    expect(await scene.run(COUNTING)).toMatchObject({ stdout: "hello\n", exitCode: 0 });
    expect(scene.runs).toBe(1);
    await using old = await sceneWith({ path: "v1/shell/exec", what: { kind: "evict" } }, { without: ["bash"] });
    expect(await old.run(COUNTING)).toMatchObject({ stdout: "hello\n", exitCode: 0 });
    expect(old.runs).toBe(1);
  });

  test("a session that is evicted while code runs in it takes the code with it, and it is not run again", async () => {
    await using scene = await sceneWith({ path: "v1/bash/output", what: { kind: "evict" } });
    await expect(scene.run(`${COUNTING}; import time; time.sleep(60)`)).rejects.toMatchObject({ code: "INTERNAL" });
    expect(scene.runs).toBeLessThanOrEqual(1);
  });

  test("no more sessions are opened than are meant to be, and all of them are deleted", async () => {
    for (const without of [[], ["bash"]] as const) {
      await using scene = await Scene.open({ without, maxSessions: 3 }, { maxSessions: 2, sessionId: "caller-7" });
      const outcomes = await Promise.all(Array.from({ length: 6 }, (_, n) => scene.run(`print(${n})`)));
      expect(outcomes.map(({ stdout }) => stdout)).toEqual(["0\n", "1\n", "2\n", "3\n", "4\n", "5\n"]);
      const sessions = without.length === 0 ? scene.fake.sessions.bash : scene.fake.sessions.shell;
      expect(sessions.size).toBeLessThanOrEqual(2);
      expect([...sessions.keys()].every((id) => id.startsWith("caller-7-"))).toBe(true);
      await scene.executor[Symbol.asyncDispose]();
      expect(sessions.size).toBe(0);
    }
  });

  test("who waits for a session can leave", async () => {
    await using scene = await Scene.open({}, { maxSessions: 1 });
    const [first, second] = [new AbortController(), new AbortController()];
    const task = {
      code: "import time; time.sleep(60)",
      language: "python",
      risk: { level: "LOW", detected: [] },
    } as const;
    const running = scene.executor.execute({ ...task, securityMode: "STRICT" }, first).catch((error) => error);
    await eventually(() => expect(scene.fake.bodiesOf("POST v1/bash/exec").length).toBe(1));
    const waiting = scene.executor.execute({ ...task, securityMode: "STRICT" }, second).catch((error) => error);
    second.abort("second");
    expect(await waiting).toBe("second");
    first.abort("first");
    expect(await running).toBe("first");
  });
});

describe.concurrent("connections", () => {
  test("a request that was cut before it arrived is sent again", async () => {
    await using scene = await sceneWith({ path: "v1/bash/exec", what: RESET_BEFORE });
    expect(await scene.run(COUNTING)).toMatchObject({ stdout: "hello\n", exitCode: 0 });
    expect(scene.runs).toBe(1);
  });

  test("one that was cut after the code had begun does not run it twice", async () => {
    await using scene = await sceneWith({ path: "v1/bash/exec", what: RESET_AFTER });
    await scene.run(COUNTING).catch((error) => expect(error).toMatchObject({ code: "INTERNAL" }));
    expect(scene.runs).toBeLessThanOrEqual(1);
    await using old = await sceneWith({ path: "v1/shell/exec", what: RESET_AFTER }, { without: ["bash"] });
    expect(await old.run(COUNTING)).toMatchObject({ stdout: "hello\n", exitCode: 0 });
    expect(old.runs).toBe(1);
  });

  test("questions about running code are asked again", async () => {
    await using scene = await sceneWith({ path: "v1/bash/output", what: RESET_AFTER });
    expect(await scene.run(COUNTING)).toMatchObject({ stdout: "hello\n", exitCode: 0 });
    expect(scene.runs).toBe(1);
  });

  test("a server that does not answer is given up, and used again when it does", async () => {
    await using scene = await Scene.open({}, { requestTimeoutMs: 3_000 });
    scene.fake.accidents.push({ path: "v1/sandbox", what: { kind: "delay", ms: 9_000 } });
    await expect(scene.executor.check()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("no answer in 3000 ms"),
    });
    await scene.executor.check();
  });

  test("no proxy of the environment is asked", async () => {
    await using scene = await Scene.open();
    const module = join(import.meta.dirname, "../../../src/executors/aio/aio-executor.ts");
    const program = `const { AioExecutor } = await import(${JSON.stringify(module)});
await using executor = new AioExecutor({ baseUrl: ${JSON.stringify(scene.fake.url)} });
await executor.check();
console.log("reached");`;
    const dead = "http://127.0.0.1:1";
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
      env: { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: dead, http_proxy: dead, ALL_PROXY: dead },
    });
    expect(stdout).toBe("reached\n");
  });
});

describe.concurrent("time and output", () => {
  test("silence is no end: no_change_timeout is waited out", async () => {
    await using scene = await Scene.open({ without: ["bash"], noChangeMs: 100 });
    const outcome = await scene.run("import time; time.sleep(1); print('late')");
    expect(outcome).toMatchObject({ stdout: "late\n", exitCode: 0, timedOut: false });
  });

  test("a server that forgets its hard timeout is told to kill", async () => {
    for (const without of [[], ["bash"]] as const) {
      await using scene = await Scene.open({ without, ignoresHardTimeout: true });
      const outcome = await scene.run("import time; time.sleep(600)", { timeoutMs: 1_500 });
      expect(outcome).toMatchObject({ timedOut: true, exitCode: 137 });
    }
  });

  test("a server that does not wait is not asked all the time", async () => {
    await using scene = await Scene.open({ neverWaits: true });
    expect(await scene.run("import time; time.sleep(1.5); print(1)")).toMatchObject({ stdout: "1\n" });
    expect(scene.fake.bodiesOf("POST v1/bash/output").length).toBeLessThan(60);
  });

  test("output that the server has lost is told as cut", async () => {
    await using scene = await Scene.open({ outputCharacters: 1000 });
    const outcome = await scene.run("print('a' * 100000)");
    expect(outcome).toMatchObject({ truncated: true, exitCode: 0 });
    expect(outcome.stdout.length).toBeLessThan(100_000);
  });

  test("nothing of ours is left in the workspace", async () => {
    for (const without of [[], ["bash"]] as const) {
      await using scene = await Scene.open({ without });
      await scene.run("print(1)");
      await scene.run("import time; time.sleep(600)", { timeoutMs: 1_000 });
      expect(readdirSync(scene.fake.home)).toEqual([]);
    }
  });
});
