import { execFile } from "node:child_process";
import { join } from "node:path";
import { NotFoundError, type Result, Sandbox, SandboxError } from "@e2b/code-interpreter";
import { TimeoutError } from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GuardedServer } from "../support/owners.ts";

// The code interpreter's clients as npm and PyPI have them, against `agentfense serve` with keys.

const opened = new AsyncDisposableStack();
let guarded: GuardedServer;
let base: string;
let connection: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string };
let sandbox: Sandbox;

beforeAll(async () => {
  guarded = opened.use(await GuardedServer.start());
  base = `${guarded.server.http}/e2b`;
  connection = { apiKey: guarded.alice.key, apiUrl: base, sandboxUrl: base };
  sandbox = await Sandbox.create({ ...connection, envs: { GREETING: "hi" } });
});
afterAll(() => opened.disposeAsync());

describe("code", () => {
  test("of Python keeps its names, and has a value, a count, a home and the sandbox's variables", async () => {
    expect((await sandbox.getInfo()).templateId).toBe("code-interpreter-v1");
    const { executionCount, logs, results } = await sandbox.runCode("x = 20\nprint('ä😀')\nx + 1");
    expect({ executionCount, logs }).toEqual({ executionCount: 1, logs: { stdout: ["ä😀\n"], stderr: [] } });
    expect(results.map(({ text, isMainResult }) => ({ text, isMainResult }))).toEqual([
      { text: "21", isMainResult: true },
    ]);
    expect((await sandbox.runCode("x")).text).toBe("20");
    expect((await sandbox.runCode("import os\nos.getcwd() + ' ' + os.environ['GREETING']")).text).toBe("/home/user hi");
    await sandbox.files.write("data.txt", "from outside");
    expect((await sandbox.runCode("open('data.txt').read()")).text).toBe("from outside");
  });

  test("tells what it prints and shows while it runs, in its order", async () => {
    const heard: string[] = [];
    const code =
      "import sys\nprint('out')\ndisplay({'k': [1]})\nprint('more')\nprint('err', file=sys.stderr)\nraise ValueError('no')";
    const execution = await sandbox.runCode(code, {
      onStdout: ({ line }) => void heard.push(`out ${line}`),
      onStderr: ({ line }) => void heard.push(`err ${line}`),
      onResult: ({ json, isMainResult }: Result) => void heard.push(`shown ${JSON.stringify(json)} ${isMainResult}`),
      onError: ({ name, value }) => void heard.push(`${name} ${value}`),
    });
    expect(heard.slice(0, 2)).toEqual(["out out\n", 'shown {"k":[1]} false']);
    expect(heard.slice(2).toSorted()).toEqual(["ValueError no", "err err\n", "out more\n"]);
    expect(execution.error).toMatchObject({
      name: "ValueError",
      value: "no",
      traceback: expect.stringContaining("line 6"),
    });
  });

  test("shows each kind of representation", async () => {
    const code = `class All:
  def _repr_html_(self): return "<b>h</b>"
  def _repr_markdown_(self): return "# m"
  def _repr_svg_(self): return "<svg/>"
  def _repr_png_(self): return b"png"
  def _repr_jpeg_(self): return b"jpeg"
  def _repr_pdf_(self): return b"pdf"
  def _repr_latex_(self): return "$l$"
  def _repr_json_(self): return {"j": 1}
  def _repr_javascript_(self): return "js()"
  def __repr__(self): return "all"
All()`;
    const [result] = (await sandbox.runCode(code)).results;
    expect(result).toMatchObject({
      ...{
        text: "all",
        html: "<b>h</b>",
        markdown: "# m",
        svg: "<svg/>",
        latex: "$l$",
        json: { j: 1 },
        javascript: "js()",
      },
      ...{ png: Buffer.from("png").toString("base64"), jpeg: Buffer.from("jpeg").toString("base64") },
      ...{ pdf: Buffer.from("pdf").toString("base64"), isMainResult: true },
    });
  });

  test("gets variables of its own, which are gone with it", async () => {
    const code = "import os\nstr(os.environ.get('OWN'))";
    expect((await sandbox.runCode(code, { envs: { OWN: "call" } })).text).toBe("call");
    expect((await sandbox.runCode(code)).text).toBe("None");
  });

  test("of JavaScript, TypeScript and bash", async () => {
    await sandbox.runCode("const n = 20", { language: "js" });
    expect((await sandbox.runCode("console.log('out'); await n + 1", { language: "javascript" })).text).toBe("21");
    const typed = await sandbox.runCode("const t: number = 4; t", { language: "ts" });
    expect(typed.error?.value ?? typed.text).toMatch(/^4$|cannot read TypeScript/);
    const shell = await sandbox.runCode("pwd; false", { language: "bash" });
    expect(shell).toMatchObject({ logs: { stdout: ["/home/user\n"] }, error: undefined });
    await expect(sandbox.runCode("1", { language: "cobol" })).rejects.toThrow(SandboxError);
  });

  test("that a client no longer waits for is interrupted, and its names stay", async () => {
    const kept = "kept = 5\nwhile True: pass";
    await expect(sandbox.runCode(kept, { timeoutMs: 1000 })).rejects.toThrow(TimeoutError);
    expect((await sandbox.runCode("kept")).text).toBe("5");
  });

  test("of calls at the same time takes turns", async () => {
    const calls = [1, 2, 3, 4].map((n) => sandbox.runCode(`turn = globals().get('turn', 0) + ${n}\nturn`));
    const values = (await Promise.all(calls)).map(({ text }) => Number(text));
    expect(values.toSorted((one, other) => one - other).at(-1)).toBe(10);
    expect(new Set(values).size).toBe(4);
  });

  test("whose interpreter ends says so, and the next has a new one", async () => {
    const lost = await sandbox.runCode("import os\nos._exit(3)");
    expect(lost.error).toMatchObject({ name: "ContextLost", value: expect.stringContaining("exit code 3") });
    expect((await sandbox.runCode("'kept' in globals()")).text).toBe("False");
  });
});

describe("contexts", () => {
  test("are made, listed, restarted and removed", async () => {
    const context = await sandbox
      .createCodeContext({ cwd: "/home/user/src", language: "python" })
      .catch((e: unknown) => e);
    expect(context).toBeInstanceOf(Error); // there is no such directory
    await sandbox.files.makeDir("src");
    const own = await sandbox.createCodeContext({ cwd: "/home/user/src", language: "python" });
    expect(own).toMatchObject({ language: "python", cwd: "/home/user/src" });
    await sandbox.runCode("x = 'own'", { context: own });
    expect((await sandbox.runCode("import os\nx + os.getcwd()", { context: own })).text).toBe("own/home/user/src");
    expect((await sandbox.runCode("'x' in globals() and x")).text).not.toBe("own");
    const all = await sandbox.listCodeContexts();
    expect(all).toContainEqual(own);
    expect(all.map(({ language }) => language)).toEqual(expect.arrayContaining(["python", "javascript"]));
    await sandbox.restartCodeContext(own);
    expect(await sandbox.runCode("x", { context: own })).toMatchObject({
      error: { name: "NameError" },
      executionCount: 1,
    });
    await sandbox.removeCodeContext(own.id);
    await expect(sandbox.runCode("1", { context: own })).rejects.toThrow(NotFoundError);
    await expect(sandbox.removeCodeContext(own.id)).rejects.toThrow(NotFoundError);
    await expect(sandbox.runCode("1", { context: own, language: "python" } as object)).rejects.toThrow();
  });

  test("of another owner's sandbox are out of reach, with any token but its own", async () => {
    const { sandboxId } = sandbox;
    const other = await Sandbox.create({ ...connection, apiKey: guarded.mallory.key });
    const own = await sandbox.createCodeContext();
    const tokens = (from: Sandbox) => from as unknown as { envdAccessToken: string; trafficAccessToken: string };
    const ask = (path: string, init: RequestInit) =>
      fetch(`${base}${path}`, {
        ...init,
        headers: {
          "e2b-sandbox-port": "49999",
          "e2b-sandbox-id": sandboxId,
          "content-type": "application/json",
          ...init.headers,
        },
      });
    const body = JSON.stringify({ code: "1", context_id: own.id });
    const traffic = { "e2b-traffic-access-token": tokens(other).trafficAccessToken };
    for (const headers of [
      {},
      traffic,
      { "x-access-token": tokens(other).envdAccessToken },
      { "x-access-token": "x" },
    ]) {
      expect((await ask("/execute", { method: "POST", body, headers })).status).toBe(401);
      expect((await ask("/contexts", { headers })).status).toBe(401);
      expect((await ask(`/contexts/${own.id}`, { method: "DELETE", headers })).status).toBe(401);
    }
    await expect(other.runCode("1", { context: own })).rejects.toThrow(NotFoundError);
    const mine = { "e2b-traffic-access-token": tokens(sandbox).trafficAccessToken };
    expect((await ask("/contexts", { headers: mine })).status).toBe(200);
    await other.kill();
  });

  test("are no more when the sandbox is not", async () => {
    const short = await Sandbox.create(connection);
    expect((await short.runCode("1 + 1")).text).toBe("2");
    await short.kill();
    await expect(short.runCode("1")).rejects.toThrow(/not found/);
  });
});

test.each(["sync", "async"])("a program of Python's client goes through, %s", async (face) => {
  const env = {
    ...{ PATH: process.env.PATH, NO_PROXY: "127.0.0.1,localhost", PYTHONDONTWRITEBYTECODE: "1" },
    ...{ E2B_API_URL: base, E2B_SANDBOX_URL: base, E2B_API_KEY: guarded.alice.key },
  };
  const python = join(import.meta.dirname, "../../.cache/python-e2b/bin/python");
  const told = await new Promise<string>((resolve) => {
    execFile(python, [join(import.meta.dirname, "code.py"), face], { env }, (error, stdout, stderr) =>
      resolve(error === null ? stdout : `${stdout}${stderr}`),
    );
  });
  expect(told).toBe("value\nstreams\nerror\nlanguages\ntimeout\ncontexts\ngone\n");
});
