import { globSync } from "node:fs";
import { join } from "node:path";
import { CodeContext, Sandbox } from "agentfense";
import { describe, expect, test } from "vitest";
import { setStage, type World } from "../../support/scenes.ts";

const WORLDS: readonly World[] = ["embedded", "remote"];

describe.each(WORLDS)("code in a sandbox, %s", (world) => {
  const stage = setStage(world);

  test("gives its output and results as they come, and all of them at the end", async () => {
    await using sandbox = await Sandbox.create({ ...stage.place });
    const heard: string[] = [];
    const code =
      "print('ä', flush=True)\nimport sys; print('e', file=sys.stderr, flush=True)\ndisplay({'k': 1})\nx = 20\nx + 1";
    const execution = await sandbox.runCode(code, {
      onStdout: (text) => heard.push(`out ${text}`),
      onStderr: (text) => heard.push(`err ${text}`),
      onResult: ({ text, isMain }) => heard.push(`${isMain ? "value" : "shown"} ${text}`),
    });
    expect(heard.toSorted()).toEqual(["err e\n", "out ä\n", "shown {'k': 1}", "value 21"]);
    expect(heard.slice(-2)).toEqual(["shown {'k': 1}", "value 21"]);
    expect(execution).toMatchObject({
      ...{ text: "21", stdout: "ä\n", stderr: "e\n", error: undefined, executionCount: 1, restarted: undefined },
      ...{ timedOut: false, truncated: false, contextLost: false, exitCode: 0 },
    });
    expect(execution.results.map(({ json }) => json)).toEqual([{ k: 1 }, undefined]);
    const failed = await sandbox.runCode("x / 0", { onError: ({ name }) => heard.push(name) });
    expect(failed).toMatchObject({ executionCount: 2, text: undefined, error: { name: "ZeroDivisionError" } });
    expect(heard.at(-1)).toBe("ZeroDivisionError");
  });

  test("runs in contexts that can be made, found, interrupted, restarted and removed", async () => {
    await using sandbox = await Sandbox.create({ ...stage.place });
    await using context = await sandbox.createCodeContext({ language: "bash", env: { A: "b" }, workdir: "/tmp" });
    expect(await context.run("pwd; echo $A; cd /")).toMatchObject({ stdout: "/tmp\nb\n", executionCount: 1 });
    expect(await sandbox.runCode("pwd", { context })).toMatchObject({ stdout: "/\n" });
    expect(await sandbox.runCode("pwd", { context: context.id, language: "bash" })).toMatchObject({
      executionCount: 3,
    });
    const running = context.run("echo on; sleep 1000", { onStdout: () => void context.interrupt() });
    expect(await running).toMatchObject({ stdout: "on\n", error: { name: "KeyboardInterrupt" }, contextLost: false });
    await context.restart();
    expect(await context.run("pwd")).toMatchObject({ stdout: "/tmp\n", executionCount: 1 });
    const [found] = await sandbox.codeContexts();
    expect(found).toBeInstanceOf(CodeContext);
    expect(found!.info).toMatchObject({ id: context.id, language: "bash", isDefault: false, busy: false });
    await context.remove();
    await context.remove();
    await expect(context.run("true")).rejects.toMatchObject({ code: "CONTEXT_NOT_FOUND" });
  });

  test("ends by its signal, and its names stay", async () => {
    await using sandbox = await Sandbox.create({ ...stage.place });
    const left = new AbortController();
    const code = "kept = 1\nprint('on', flush=True)\nwhile True: pass";
    const running = sandbox.runCode(code, { signal: left.signal, onStdout: () => left.abort(new Error("enough")) });
    await expect(running).rejects.toThrow();
    expect(await sandbox.runCode("kept")).toMatchObject({ text: "1" });
  });
});

const NOTEBOOK = globSync(join(import.meta.dirname, "../../../.cache/python-e2b/lib/python3*/site-packages"))[0]!;

describe("code where Python has IPython", () => {
  const stage = setStage("embedded");

  test("is run and shown by it, and figures are pictures and data", async () => {
    await using sandbox = await Sandbox.fromLocal(NOTEBOOK, { ...stage.place, preset: "full-access" });
    await using context = await sandbox.createCodeContext({ env: { PYTHONPATH: "/workspace" }, workdir: "/tmp" });
    expect(context.info.interpreter).toBe("ipython");
    expect(await context.run("x = await __import__('asyncio').sleep(0, 20)\nx + 1")).toMatchObject({ text: "21" });
    expect(await context.run("!echo shell; echo err >&2")).toMatchObject({ stdout: "shell\n", stderr: "err\n" });
    const { error } = await context.run("{}['k']");
    expect(error).toMatchObject({ name: "KeyError", value: "'k'", traceback: expect.stringContaining("KeyError") });
    expect((await context.run("input()")).error!.value).toContain("nobody is there to answer");
    const shown = await context.run("from IPython.display import HTML\ndisplay(HTML('<b>1</b>'))\nprint('after')");
    expect(shown).toMatchObject({ stdout: "after\n", results: [{ isMain: false, html: "<b>1</b>" }] });
    expect(await context.run("while True: pass", { timeoutMs: 100 })).toMatchObject({
      timedOut: true,
      contextLost: false,
    });
    const drawn = await context.run(
      "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='L'); plt.title('T'); plt.show()\n" +
        "plt.bar(['a', 'b'], [5, 6]); plt.show()\nplt.boxplot([[1, 2, 3, 9]]); plt.show()\nplt.pie([1, 3], labels=['p', 'q'])\nx",
      { timeoutMs: 600_000 },
    );
    expect(drawn).toMatchObject({ text: "20", error: undefined });
    const figures = drawn.results.filter(({ png }) => png !== undefined);
    expect(figures.map(({ png }) => Buffer.from(png!, "base64").subarray(1, 4).toString())).toEqual(
      Array(4).fill("PNG"),
    );
    expect(figures.map(({ chart }) => chart)).toMatchObject([
      {
        type: "line",
        title: "T",
        elements: [
          {
            label: "L",
            points: [
              [1, 3],
              [2, 4],
            ],
          },
        ],
      },
      {
        type: "bar",
        elements: [
          { label: "a", value: 5 },
          { label: "b", value: 6 },
        ],
      },
      {
        type: "box_and_whisker",
        elements: [{ min: 1, first_quartile: 1.75, median: 2.5, third_quartile: 4.5, max: 4.5, outliers: [9] }],
      },
      {
        type: "pie",
        elements: [
          { label: "p", angle: 90 },
          { label: "q", angle: 270 },
        ],
      },
    ]);
    expect((await context.run("x")).executionCount).toBe(8);
  });
});
