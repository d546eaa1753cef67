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
