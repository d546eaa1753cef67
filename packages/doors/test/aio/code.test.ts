import { afterAll, beforeAll, expect, test } from "vitest";
import { DoorClient } from "./door-client.ts";
import { DoorServer } from "./door-server.ts";

let server: DoorServer;
let aio: DoorClient;
beforeAll(async () => {
  server = await DoorServer.open();
  const sandbox = await server.sandbox({ "dir/a.txt": "one\n" }, [{ pattern: "**", permission: "write" }]);
  aio = new DoorClient(server.url(sandbox.id));
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

test("the sandbox tells what it is", async () => {
  const told = (await (await aio.raw("v1/sandbox")).json()) as Record<string, unknown>;
  expect(told).toMatchObject({ success: true, home_dir: "/workspace", workspace: "/workspace", version: "1.9.4" });
  expect(told.detail).toMatchObject({ system: { os: "Linux" }, runtime: { python: [{ bin: "python3" }] } });
  expect((await aio.get("code/info")).data.languages.map(({ language }: never) => language)).toEqual([
    "python",
    "javascript",
  ]);
});

test("code runs in an interpreter of its own", async () => {
  const python = await aio.post("code/execute", { language: "python", code: "x = 1\nprint('hi')\n1/0", cwd: "dir" });
  expect(python.data).toMatchObject({ status: "error", stdout: "hi\n", exit_code: 1, session_id: null });
  expect(python.data.outputs.at(-1)).toMatchObject({ output_type: "error", ename: "ZeroDivisionError" });
  expect(python.data.traceback.at(-1)).toBe("ZeroDivisionError: division by zero");
  const code = "import { readFileSync } from 'node:fs'; console.log(readFileSync('a.txt', 'utf8'), await 2)";
  const script = await aio.post("code/execute", { language: "javascript", code, cwd: "/workspace/dir" });
  expect(script.data).toMatchObject({ status: "ok", stdout: "one\n 2\n", stderr: "", exit_code: 0 });
  expect((await aio.post("nodejs/execute", { code: "console.log(7)" })).data).toMatchObject({ stdout: "7\n" });
  const late = await aio.post("code/execute", { language: "python", code: "import time; time.sleep(60)", timeout: 1 });
  expect(late.data).toMatchObject({ status: "timeout" });
  const state = await aio.post("code/execute", { language: "javascript", code: "1", stateful: true });
  expect(state).toMatchObject({ success: false, hint: expect.any(String) });
});

test("a session of Python remembers, shows values and errors, and survives them", async () => {
  const cell = async (code: string, rest: object = {}) =>
    (await aio.post("jupyter/execute", { code, session_id: "nb", ...rest })).data;
  expect(
    await cell("import os, sys\nx = 20\nprint('out'); print('err', file=sys.stderr); os.system('echo child')"),
  ).toEqual({
    kernel_name: "python3",
    session_id: "nb",
    status: "ok",
    execution_count: 1,
    outputs: [
      { output_type: "stream", name: "stdout", text: expect.stringMatching(/out/) },
      { output_type: "stream", name: "stderr", text: "err\n" },
      { output_type: "execute_result", data: { "text/plain": "0" }, metadata: {}, execution_count: 1 },
    ],
    code: expect.any(String),
    msg_id: null,
  });
  expect((await cell("x + 22")).outputs[0].data).toEqual({ "text/plain": "42" });
  const html = "class H:\n  def __repr__(self): return 'plain'\n  def _repr_html_(self): return '<b>h</b>'\nH()";
  expect((await cell(html)).outputs[0].data).toEqual({ "text/plain": "plain", "text/html": "<b>h</b>" });
  expect(await cell("def broken(:")).toMatchObject({ status: "error", outputs: [{ ename: "SyntaxError" }] });
  expect(await cell("1/0")).toMatchObject({ status: "error", outputs: [{ ename: "ZeroDivisionError" }] });
  expect((await cell("x", { timeout: 20 })).outputs[0].data).toEqual({ "text/plain": "20" });
  expect((await cell(`len(${JSON.stringify("ä".repeat(200_000))})`)).outputs[0].data).toEqual({
    "text/plain": "200000",
  });
  expect((await aio.get("jupyter/sessions")).data.sessions.nb).toMatchObject({
    kernel_name: "python3",
    status: "idle",
  });
  const stateful = await aio.post("code/execute", { language: "python", code: "x", stateful: true, session_id: "nb" });
  expect(stateful.data).toMatchObject({ status: "ok", session_id: "nb", outputs: [{ data: { "text/plain": "20" } }] });
  expect(await cell("while True: pass", { timeout: 1 })).toMatchObject({ status: "timeout" });
  expect((await cell("x")).outputs[0].data).toEqual({ "text/plain": "20" });
  expect(await aio.post("jupyter/execute", { code: "import os; os._exit(3)", session_id: "nb" })).toMatchObject({
    success: false,
    hint: expect.any(String),
  });
  expect((await aio.get("jupyter/info")).data).toMatchObject({ default_kernel: "python3", active_sessions: 0 });
});

test("a cell without a session leaves none", async () => {
  expect((await aio.post("jupyter/execute", { code: "5" })).data).toMatchObject({ session_id: null, status: "ok" });
  expect((await aio.get("jupyter/info")).data.active_sessions).toBe(0);
  expect(await aio.post("jupyter/execute", { code: "5", kernel_name: "ruby" })).toMatchObject({ success: false });
});
