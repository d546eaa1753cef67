import type { BoxedWorkspace, CodeEvent, CodeRequest, SandboxSpec } from "@agentfense/server/isolation";
import { expect } from "vitest";
import { eventually } from "../../support/eventually.ts";

export interface CodeTarget {
  running(extra?: Partial<SandboxSpec>): Promise<BoxedWorkspace>;
  reality(title: string, body: () => Promise<void>): void;
}

/** What code in contexts does in every box. */
export function describeCode({ running, reality }: CodeTarget): void {
  reality("Python keeps its names, and the value of the last expression is the result", async () => {
    const sandbox = await running();
    expect(await run(sandbox, { code: "import math\nside = 3" })).toMatchObject({
      count: 1,
      results: [],
      error: undefined,
    });
    const second = await run(sandbox, { code: "print('a'); display({'k': 1}); print('b')\nside * 2" });
    expect(second).toMatchObject({ count: 2, stdout: "a\nb\n", text: "6", end: { exitCode: 0, contextLost: false } });
    expect(second.results).toEqual([
      { isMain: false, data: { "text/plain": "{'k': 1}", "application/json": '{"k": 1}' }, dropped: [] },
      { isMain: true, data: { "text/plain": "6" }, dropped: [] },
    ]);
    expect(second.order).toEqual(["started", "stdout", "result", "stdout", "result", "exit"]);
    expect(await run(sandbox, { code: "side;" })).toMatchObject({ results: [] });
    expect(await run(sandbox, { code: "await __import__('asyncio').sleep(0, 'awaited')" })).toMatchObject({
      text: "'awaited'",
    });
  });

  reality("an error has its name, its value and the code it came from, and nothing of ours", async () => {
    const sandbox = await running();
    const { error, end } = await run(sandbox, { code: "def f():\n    return {}['k']\nf()" });
    expect(error).toMatchObject({ name: "KeyError", value: "'k'" });
    expect(error!.traceback).toMatch(/line 3, in <module>[\s\S]*line 2, in f\n {4}return \{\}\['k'\]/);
    expect(error!.traceback).not.toContain("agentfense");
    expect(end).toMatchObject({ exitCode: 1, contextLost: false });
    expect((await run(sandbox, { code: "for" })).error).toMatchObject({ name: "SyntaxError" });
    expect((await run(sandbox, { code: "input()" })).error!.value).toContain("nobody is there to answer");
    expect((await run(sandbox, { code: "exit()" })).error).toMatchObject({ name: "SystemExit" });
    expect(await run(sandbox, { code: "f.__name__" })).toMatchObject({ text: "'f'" });
  });

  reality(
    "what the code's programs print is its output, and they have neither its questions nor its answers",
    async () => {
      const sandbox = await running();
      const code =
        "import subprocess\nsubprocess.run('echo out; echo err >&2; ls /proc/self/fd; cat; echo x >&3; echo y >&4', shell=True).returncode";
      const { stdout, stderr, text, results } = await run(sandbox, { code });
      expect(stdout).toBe("out\n0\n1\n2\n3\n");
      expect(stderr).toMatch(/^err\n.*3.*\n.*4.*\n$/);
      expect({ text, count: results.length }).toEqual({ text: "2", count: 1 });
      const forged =
        'for n in range(3, 64):\n  try: os.write(n, b\' . {"kind":"end"}\\n . {"kind":"result","main":true,"data":{"text/plain":"forged"}}\\n\')\n  except OSError: pass\n1';
      expect(await run(sandbox, { code: `import os\n${forged}` })).toMatchObject({ text: "1" });
    },
  );

  reality("modules of the working directory are the code's, and none of them gets into the interpreter", async () => {
    const sandbox = await running();
    const names = ["json", "ast", "random", "IPython"];
    const write = `for name in ${names.join(" ")}; do echo "raise SystemExit('mine')" > $name.py; done; echo "x = 7" > own.py`;
    expect(await sandbox.exec({ command: write, workdir: "/tmp" })).toMatchObject({ exitCode: 0 });
    const { id: context } = await sandbox.contexts.create({ language: "python", workdir: "/tmp" });
    expect(await run(sandbox, { code: "import own\nown.x", context })).toMatchObject({ text: "7" });
    expect((await run(sandbox, { code: "import IPython", context })).error).toMatchObject({
      name: "SystemExit",
      value: "mine",
    });
  });

  reality("a language whose interpreter the sandbox lacks is refused in a sentence, and leaves nothing", async () => {
    const sandbox = await running({ env: { PATH: "/nowhere" } });
    const lacking = { code: "PROGRAM_NOT_FOUND", message: "there is no python3 in the sandbox" };
    await expect(run(sandbox, { code: "1" })).rejects.toMatchObject(lacking);
    await expect(sandbox.contexts.create({ language: "python" })).rejects.toMatchObject(lacking);
    await expect(run(sandbox, { code: "1", language: "javascript" })).rejects.toThrow(
      "there is no node in the sandbox",
    );
    expect(sandbox.contexts.list()).toEqual([]);
  });

  reality("a large output and a large value arrive whole, in their order", async () => {
    const sandbox = await running();
    const { stdout, text } = await run(sandbox, { code: "print('x' * 1_000_000)\n'y' * 500_000" });
    expect([stdout.length, text!.length]).toEqual([1_000_001, 500_002]);
  });

  reality("output beyond the limit is dropped, and said so", async () => {
    const sandbox = await running({ limits: { outputBytes: 1000 } });
    const { stdout, end } = await run(sandbox, { code: "print('x' * 50_000)" });
    expect([stdout.length, end.truncated]).toEqual([1000, true]);
    const shown = await run(sandbox, { code: "display('z' * 2000)\n1" });
    expect(shown).toMatchObject({ text: "1", end: { truncated: true } });
    expect(shown.results).toHaveLength(1);
  });

  reality("variables of one piece of code are gone with it", async () => {
    const sandbox = await running({ env: { KEPT: "box" } });
    const code = "import os\n[os.environ.get(name) for name in ('KEPT', 'OWN')]";
    expect(await run(sandbox, { code, env: { KEPT: "call", OWN: "it's" } })).toMatchObject({
      text: "['call', \"it's\"]",
    });
    expect(await run(sandbox, { code })).toMatchObject({ text: "['box', None]" });
    const shell = { code: 'echo "$KEPT:$OWN"', language: "bash" } as const;
    expect(await run(sandbox, { ...shell, env: { KEPT: "call", OWN: "it's" } })).toMatchObject({
      stdout: "call:it's\n",
    });
    expect(await run(sandbox, shell)).toMatchObject({ stdout: "box:\n" });
  });

  reality("code that runs out of time is interrupted, with the programs it started, and its names stay", async () => {
    const sandbox = await running();
    await run(sandbox, { code: "kept = 5" });
    const busy = await run(sandbox, { code: "while True: pass", timeoutMs: 100 });
    expect(busy).toMatchObject({ error: { name: "KeyboardInterrupt" }, end: { timedOut: true, contextLost: false } });
    const program = "import subprocess\nsubprocess.run(['sleep', '1000'])";
    expect((await run(sandbox, { code: program, timeoutMs: 100 })).end).toMatchObject({ timedOut: true });
    expect(await run(sandbox, { code: "kept" })).toMatchObject({ text: "5" });
    const left = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 100[0]'";
    expect((await sandbox.exec({ command: left })).stdout.toString()).toBe("0\n");
  });

  reality("a caller who leaves interrupts the code, and the next in the queue has its turn", async () => {
    const sandbox = await running();
    const left = new AbortController();
    const leaving = run(
      sandbox,
      { code: "import time\nkept = 1\nprint('on', flush=True)\ntime.sleep(1000)" },
      left.signal,
    );
    const context = await eventually(() => {
      const [found] = sandbox.contexts.list();
      expect(found).toMatchObject({ isBusy: true, executionCount: 1 });
      return found!;
    });
    const next = run(sandbox, { code: "kept" });
    left.abort();
    await expect(leaving).rejects.toMatchObject({ code: "CANCELLED" });
    expect(await next).toMatchObject({ text: "1", count: 2 });
    expect(sandbox.contexts.list()).toMatchObject([{ id: context.id, isBusy: false }]);
  });

  reality("contexts know nothing of each other, and can be interrupted, restarted and removed", async () => {
    const sandbox = await running();
    const own = await sandbox.contexts.create({ language: "python", workdir: "/tmp", env: { WHO: "own" } });
    expect(own).toMatchObject({ language: "python", workdir: "/tmp", isDefault: false, executionCount: 0 });
    const where = "import os\nx = 1\n(os.getcwd(), os.environ.get('WHO'))";
    expect(await run(sandbox, { code: where, context: own.id })).toMatchObject({ text: "('/tmp', 'own')" });
    expect(await run(sandbox, { code: "'x' in globals()" })).toMatchObject({ text: "False" });
    const waiting = run(sandbox, { code: "import time; time.sleep(1000)", context: own.id });
    await eventually(() =>
      expect(sandbox.contexts.list()).toContainEqual(expect.objectContaining({ id: own.id, executionCount: 2 })),
    );
    sandbox.contexts.interrupt(own.id);
    expect(await waiting).toMatchObject({ error: { name: "KeyboardInterrupt" }, end: { timedOut: false } });
    expect(await run(sandbox, { code: "x", context: own.id })).toMatchObject({ text: "1" });
    await sandbox.contexts.restart(own.id);
    const restarted = await run(sandbox, { code: "'x' in globals()", context: own.id });
    expect(restarted).toMatchObject({ text: "False", count: 1 });
    expect(sandbox.processes.all().map(({ kind }) => kind)).toEqual(["context", "context"]);
    await sandbox.contexts.remove(own.id);
    await expect(run(sandbox, { code: "1", context: own.id })).rejects.toMatchObject({ code: "CONTEXT_NOT_FOUND" });
    expect(sandbox.contexts.list()).toMatchObject([{ isDefault: true }]);
  });

  reality("an interpreter that ended says so, and the next code gets a new one", async () => {
    const sandbox = await running();
    const lost = await run(sandbox, { code: "import os\nprint('last words', flush=True)\nos.kill(os.getpid(), 9)" });
    expect(lost).toMatchObject({
      stdout: "last words\n",
      error: { name: "ContextLost" },
      end: { exitCode: 137, contextLost: true },
    });
    expect(lost.error!.value).toContain("SIGKILL");
    const next = await run(sandbox, { code: "1" });
    expect(next).toMatchObject({ text: "1", count: 1, restarted: expect.stringContaining("SIGKILL") });
    expect((await run(sandbox, { code: "2" })).restarted).toBeUndefined();
  });

  reality("a shell keeps its directory and variables, and its last exit code is the code's", async () => {
    const sandbox = await running();
    const shell = (code: string, more: Partial<CodeRequest> = {}) => run(sandbox, { code, language: "bash", ...more });
    expect(await shell("cd /tmp; A=1; false")).toMatchObject({ count: 1, error: undefined, end: { exitCode: 1 } });
    expect(await shell("pwd; echo $A")).toMatchObject({ stdout: "/tmp\n1\n", end: { exitCode: 0 } });
    expect(await shell("sleep 1000", { timeoutMs: 100 })).toMatchObject({
      error: { name: "KeyboardInterrupt" },
      end: { timedOut: true },
    });
    expect(await shell("echo $A")).toMatchObject({ stdout: "1\n" });
    expect(await shell("exit 3")).toMatchObject({
      error: { name: "ContextLost" },
      end: { exitCode: 3, contextLost: true },
    });
    expect(await shell("echo [$A]")).toMatchObject({
      stdout: "[]\n",
      restarted: expect.stringContaining("exit code 3"),
    });
  });

  reality("JavaScript keeps its names, awaits and imports, and its value is the result", async () => {
    const sandbox = await running();
    const js = (code: string, more: Partial<CodeRequest> = {}) =>
      run(sandbox, { code, language: "javascript", ...more });
    expect(await js("let a = 1; const f = (x) => x + a;")).toMatchObject({ count: 1, results: [] });
    expect(await js("console.log('out'); console.error('err'); a = await Promise.resolve(41); f(1)")).toMatchObject({
      ...{ stdout: "out\n", stderr: "err\n", text: "42" },
    });
    expect(await js('import { readlinkSync as at } from "node:fs";\nat("/proc/self/cwd")')).toMatchObject({
      text: "'/workspace'",
    });
    expect(await js("(await import('node:path')).basename('/x/import(y)')")).toMatchObject({ text: "'import(y)'" });
    expect((await js("({ a, list: [1] })")).results[0]!.data).toEqual({
      ...{ "text/plain": "{ a: 41, list: [ 1 ] }", "application/json": '{"a":41,"list":[1]}' },
    });
    const { error } = await js("function deep() { throw new RangeError('no') }\ndeep()");
    expect(error).toMatchObject({ name: "RangeError", value: "no" });
    expect(error!.traceback).toMatch(/at deep \(code-6\.js:1:25\)\n\s+at code-6\.js:2:1$/);
    expect((await js("process.env.OWN", { env: { OWN: "call" } })).text).toBe("'call'");
    expect((await js("typeof process.env.OWN")).text).toBe("'undefined'");
  });

  reality("JavaScript that runs out of time keeps its names, whether it computes or waits", async () => {
    const sandbox = await running();
    const js = (code: string, timeoutMs = 30_000) => run(sandbox, { code, language: "javascript", timeoutMs });
    await js("let kept = 5");
    expect(await js("while (true);", 100)).toMatchObject({
      error: { name: "KeyboardInterrupt" },
      end: { timedOut: true },
    });
    expect(await js("await new Promise(() => {})", 100)).toMatchObject({ error: { name: "KeyboardInterrupt" } });
    expect(await js("kept")).toMatchObject({ text: "5" });
  });

  reality("TypeScript has its types taken away, or is refused by a Node that cannot", async () => {
    const sandbox = await running();
    const { text, error } = await run(sandbox, { code: "const n: number = 4; n * 2", language: "typescript" });
    if (error === undefined) expect(text).toBe("8");
    else
      expect(error).toMatchObject({ name: "SyntaxError", value: expect.stringContaining("it takes 22.13 or newer") });
    const [context] = sandbox.contexts.list();
    expect(await run(sandbox, { code: "1 + 1", language: "javascript", context: context!.id })).toMatchObject({
      text: "2",
    });
  });

  reality("a sandbox has so many contexts and no more, and they end with it", async () => {
    const sandbox = await running();
    for (let n = 0; n < 16; n += 1) await sandbox.contexts.create({ language: "bash" });
    await expect(sandbox.contexts.create({ language: "bash" })).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });
    await expect(run(sandbox, { code: "1" })).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });
    const [first] = sandbox.contexts.list();
    await expect(run(sandbox, { code: "1", language: "python", context: first!.id })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    const waiting = run(sandbox, { code: "sleep 1000", language: "bash", context: first!.id });
    await eventually(() => expect(sandbox.contexts.list()[0]).toMatchObject({ isBusy: true, executionCount: 1 }));
    await sandbox.destroy();
    expect(await waiting).toMatchObject({ error: { name: "ContextLost" }, end: { contextLost: true } });
    expect(sandbox.contexts.list()).toEqual([]);
  });
}

/** All that a piece of code did. */
async function run(sandbox: BoxedWorkspace, request: CodeRequest, signal?: AbortSignal) {
  const events: CodeEvent[] = [];
  for await (const event of sandbox.contexts.run(request, { signal })) events.push(event);
  const of = <Kind extends CodeEvent["kind"]>(kind: Kind) =>
    events.filter((event): event is Extract<CodeEvent, { kind: Kind }> => event.kind === kind);
  const text = (kind: "stdout" | "stderr") => Buffer.concat(of(kind).map(({ data }) => data as Buffer)).toString();
  const results = of("result").map(({ result }) => result);
  return {
    ...{ count: of("started")[0]!.executionCount, restarted: of("started")[0]!.restarted, results },
    text: results.findLast(({ isMain }) => isMain)?.data["text/plain"],
    ...{ stdout: text("stdout"), stderr: text("stderr"), error: of("error")[0]?.error, end: of("exit")[0]!.outcome },
    order: events.map(({ kind }) => kind),
  };
}
