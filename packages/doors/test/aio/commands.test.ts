import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { DoorClient } from "./door-client.ts";
import { DoorServer } from "./door-server.ts";

let server: DoorServer;
let aio: DoorClient;
beforeAll(async () => {
  server = await DoorServer.open({ maxSessions: 3 });
  const sandbox = await server.sandbox({ "a.txt": "one\n", ".env": "SECRET=1\n", "dir/b.txt": "two\n" }, [
    { pattern: "**", permission: "write" },
    { pattern: "/.env", permission: "none" },
  ]);
  aio = new DoorClient(server.url(sandbox.id));
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

test("a shell keeps its state, and its output is one", async () => {
  const first = await aio.post("shell/exec", { command: "cd dir; X=7; echo out; echo err >&2", id: "s1" });
  expect(first).toMatchObject({ status: 200, success: true, hint: null });
  expect(first.data).toEqual({
    session_id: "s1",
    command: "cd dir; X=7; echo out; echo err >&2",
    status: "completed",
    output: expect.stringMatching(/^(out\nerr\n|err\nout\n)$/),
    console: [expect.objectContaining({ ps1: "$ " })],
    exit_code: 0,
  });
  const second = await aio.post("shell/exec", {
    command: "pwd; echo $X; cat ../.env; exit_with() { return 3; }; exit_with",
    id: "s1",
  });
  expect(second.data).toMatchObject({ exit_code: 3, status: "completed" });
  expect(second.data.output).toMatch(/^\/workspace\/dir\n7\ncat: .*No such file or directory\n$/);
  expect((await aio.post("shell/view", { id: "s1" })).data).toMatchObject({ status: "completed", exit_code: 3 });
});

test("a shell command goes on after the wait for it, and can be waited for, viewed and killed", async () => {
  const begun = await aio.post("shell/exec", { command: "echo begun; sleep 60", id: "slow", timeout: 0.2 });
  expect(begun.data).toMatchObject({ status: "running", exit_code: null });
  const quiet = await aio.post("shell/exec", { command: "true", id: "slow" });
  expect(quiet).toMatchObject({ status: 409, success: false });
  expect((await aio.post("shell/wait", { id: "slow", seconds: 0.1 })).data).toEqual({ status: "running" });
  expect((await aio.post("shell/write", { id: "slow", input: "text", press_enter: true })).success).toBe(false);
  await eventually(async () => expect((await aio.post("shell/view", { id: "slow" })).data.output).toBe("begun\n"));
  expect((await aio.get("shell/sessions")).data.sessions.slow).toMatchObject({
    current_command: "echo begun; sleep 60",
  });
  expect((await aio.post("shell/kill", { id: "slow" })).data).toMatchObject({ status: "terminated" });
  expect((await aio.post("shell/exec", { command: "echo alive", id: "slow" })).data.output).toBe("alive\n");
  expect((await aio.get("shell/sessions/slow", "DELETE")).success).toBe(true);
  expect(await aio.post("shell/view", { id: "slow" })).toMatchObject({
    status: 404,
    message: "session not found: slow",
  });
});

test("a silent command is no_change_timeout, one that takes too long hard_timeout", async () => {
  const quiet = await aio.post("shell/exec", { command: "sleep 60", id: "q", no_change_timeout: 0.3 });
  expect(quiet.data).toMatchObject({ status: "no_change_timeout", exit_code: null });
  expect((await aio.post("shell/kill", { id: "q" })).success).toBe(true);
  const hard = await aio.post("shell/exec", { command: "sleep 60", id: "q", hard_timeout: 0.5 });
  expect(hard.data).toMatchObject({ status: "hard_timeout", output: "" });
  expect((await aio.get("shell/sessions/q", "DELETE")).success).toBe(true);
});

test("long output is shortened unless all is wanted", async () => {
  const command = "head -c 40000 /dev/zero | tr '\\0' x";
  const short = await aio.post("shell/exec", { command, id: "s1" });
  expect(short.data.output).toMatch(/^x{15000}\n\[\.\.\. 10000 characters left out \.\.\.\]\nx{15000}$/);
  const long = await aio.post("shell/exec", { command, id: "s1", truncate: false });
  expect(long.data.output).toBe("x".repeat(40_000));
});

test("shell output comes as events when they are asked for", async () => {
  const response = await aio.raw("v1/shell/exec", {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify({ command: "echo one; sleep 0.2; echo two", id: "s1" }),
  });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const events = (await response.text()).trim().split("\n\n");
  const outputs = events.slice(0, -1).map((event) => JSON.parse(event.split("data: ")[1]!).output);
  expect(outputs.join("")).toBe("one\ntwo\n");
  expect(events.at(-1)).toMatch(/^event: result\n/);
  expect(JSON.parse(events.at(-1)!.split("data: ")[1]!)).toMatchObject({ status: "completed", exit_code: 0 });
});

test("of too many shells the one idle for longest makes room; when all are busy a new one is refused", async () => {
  await aio.get("shell/sessions", "DELETE");
  for (const id of ["l1", "l2", "l3", "l1", "l4"]) await aio.post("shell/exec", { command: "true", id });
  expect(Object.keys((await aio.get("shell/sessions")).data.sessions)).toEqual(["l1", "l3", "l4"]);
  for (const id of ["l1", "l3", "l4"]) await aio.post("shell/exec", { command: "sleep 60", id, async_mode: true });
  expect(await aio.post("shell/exec", { command: "true", id: "l5" })).toMatchObject({ status: 429, success: false });
  expect((await aio.get("shell/sessions/stats")).data).toMatchObject({ active_sessions: 3, max_sessions: 3 });
  await aio.get("shell/sessions", "DELETE");
});

test("a shell that ends itself is followed by a new one", async () => {
  expect((await aio.post("shell/exec", { command: "exit 4", id: "e" })).data).toMatchObject({ exit_code: 4 });
  expect((await aio.post("shell/exec", { command: "echo again", id: "e" })).data).toMatchObject({ output: "again\n" });
});

test("bash has its outputs apart, variables and a directory", async () => {
  const { data } = await aio.post("bash/exec", {
    command: 'echo "$A"; pwd >&2; exit 5',
    env: { A: "it's $HOME" },
    exec_dir: "/workspace/dir",
    session_id: "b1",
  });
  expect(data).toMatchObject({ session_id: "b1", status: "completed", exit_code: 5, offset: 11, stderr_offset: 15 });
  expect([data.stdout, data.stderr]).toEqual(["it's $HOME\n", "/workspace/dir\n"]);
});

test("a bash command in the background is written to, read from where one was, and ends", async () => {
  const { data } = await aio.post("bash/exec", {
    command: "echo ready; while read line; do echo got $line; [ $line = end ] && exit 9; done",
    session_id: "b2",
    async_mode: true,
  });
  expect(data).toMatchObject({ status: expect.stringMatching(/running/), exit_code: null });
  const ids = { session_id: "b2", command_id: data.command_id };
  await eventually(async () =>
    expect((await aio.post("bash/output", { ...ids, wait: true })).data.stdout).toBe("ready\n"),
  );
  expect((await aio.post("bash/write", { ...ids, input: "hello\n" })).success).toBe(true);
  const next = await aio.post("bash/output", { ...ids, offset: 6, wait: true });
  expect(next.data).toMatchObject({ stdout: "got hello\n", offset: 16, command: { status: "running" } });
  await aio.post("bash/write", { ...ids, input: "end\n" });
  await eventually(async () =>
    expect((await aio.post("bash/output", { ...ids, offset: 16, wait: true })).data).toMatchObject({
      stdout: "got end\n",
      command: { status: "completed", exit_code: 9 },
    }),
  );
  expect((await aio.post("bash/write", { ...ids, input: "late\n" })).success).toBe(false);
});

test("bash commands are killed, run out of time, and have their output cut where it was asked for", async () => {
  await aio.post("bash/exec", { command: "sleep 60", session_id: "b3", async_mode: true });
  expect(await aio.post("bash/kill", { session_id: "b3" })).toMatchObject({ success: true, hint: null });
  await eventually(async () =>
    expect((await aio.post("bash/output", { session_id: "b3" })).data.command).toMatchObject({ status: "killed" }),
  );
  const command = "trap 'echo kept going' TERM; echo set; while read line; do :; done; read line";
  await aio.post("bash/exec", { command, session_id: "b4", async_mode: true });
  const heard = async () => (await aio.post("bash/output", { session_id: "b4" })).data;
  await eventually(async () => expect((await heard()).stdout).toBe("set\n"));
  await aio.post("bash/kill", { session_id: "b4", signal: "SIGTERM" });
  await eventually(async () =>
    expect(await heard()).toMatchObject({ stdout: "set\nkept going\n", command: { status: "running" } }),
  );
  await aio.post("bash/kill", { session_id: "b4", signal: "SIGKILL" });
  expect((await heard()).command).toMatchObject({ status: "killed" });
  const late = await aio.post("bash/exec", { command: "sleep 60", session_id: "b3", hard_timeout: 0.4 });
  expect(late.data).toMatchObject({ status: "timed_out" });
  const cut = await aio.post("bash/exec", { command: "seq 100", session_id: "b3", max_output_length: 5 });
  expect(cut.data).toMatchObject({ stdout: "1\n2\n3", offset: 5, exit_code: 0 });
  const { session_id, command_id } = cut.data;
  const rest = await aio.post("bash/output", { session_id, command_id, offset: 5 });
  expect(rest.data.stdout).toMatch(/^\n4\n[\s\S]*\n100\n$/);
  expect((await aio.post("bash/sessions/b3/close")).data).toMatchObject({ status: "closed", command_count: 3 });
  expect(await aio.post("bash/output", { session_id: "b3" })).toMatchObject({ status: 404, success: false });
});

test("requests that are none are told as FastAPI does, and what is not there as not found", async () => {
  const wrong = await aio.raw("v1/shell/exec", { method: "POST", body: JSON.stringify({ id: 7 }) });
  expect(wrong.status).toBe(422);
  const { detail } = (await wrong.json()) as { detail: { loc: unknown[]; msg: string; type: string }[] };
  expect(detail.map(({ loc }) => loc)).toEqual([
    ["body", "command"],
    ["body", "id"],
  ]);
  expect((await aio.raw("v1/shell/exec", { method: "POST", body: "{" })).status).toBe(422);
  expect((await aio.raw("v1/shell/exec")).status).toBe(405);
  expect((await aio.raw("v1/skills/register")).status).toBe(404);
  expect(await aio.get("browser/info")).toMatchObject({ status: 501, success: false, hint: expect.any(String) });
  expect((await aio.raw("mcp", { method: "POST", body: "{}" })).status).toBe(501);
});
