import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ClientReadableStream } from "@grpc/grpc-js";
import { beforeAll, describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { makeBelongings } from "../support/belongings.ts";
import { eventually } from "../support/eventually.ts";
import { GuardedServer } from "../support/owners.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let codebase: string;
let sandbox: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha" });
  sandbox = await api.sandbox(codebase);
});

const start = (request: Message, id = sandbox): Promise<Message> =>
  api.call("SandboxService.StartProcess", { sandbox_id: id, ...request });
const attach = (request: Message): ClientReadableStream<Message> =>
  api.grpc.stream("SandboxService", "AttachProcess", { sandbox_id: sandbox, ...request }, { deadlineMs: 60_000 });

async function outputOf(messages: AsyncIterable<Message>): Promise<{ text: string; last: Message }> {
  let text = "";
  let last: Message = {};
  for await (const message of messages) {
    text += Buffer.from((message.data as Uint8Array | undefined) ?? []).toString();
    last = message;
  }
  return { text, last };
}

describe("a process", () => {
  test("over gRPC: it is started, listed, written to, attached to and waited for", async () => {
    const started = await start({ command: "read a; echo got $a; exit 3", tag: "reader", stdin: true });
    expect(started).toMatchObject({
      sandbox_id: sandbox,
      tag: "reader",
      owner_id: "tester",
      kind: "PROCESS_KIND_STARTED",
      command: "read a; echo got $a; exit 3",
      state: "PROCESS_STATE_RUNNING",
      ended_at: null,
    });
    const { number } = started;
    const { processes } = await api.call("SandboxService.ListProcesses", { sandbox_id: sandbox });
    expect(processes).toContainEqual(started);
    const output = outputOf(attach({ tag: "reader" }));
    await api.call("SandboxService.SendInput", { sandbox_id: sandbox, number, data: Buffer.from("this\n") });
    const ended = await api.call("SandboxService.WaitProcess", { sandbox_id: sandbox, number });
    expect(ended).toMatchObject({ number, state: "PROCESS_STATE_ENDED", exit_code: 3, timed_out: false });
    expect(await output).toEqual({ text: "got this\n", last: expect.objectContaining({ exit_code: 3 }) });
    expect((await outputOf(attach({ number }))).text).toBe("got this\n");
  });

  test("over REST: the same, with the tag in the query", async () => {
    const base = `/v1/sandboxes/${sandbox}/processes`;
    const { status, json } = await api.rest.post(base, { argv: ["cat"], tag: "cat", stdin: true });
    expect({ status, json }).toMatchObject({ status: 200, json: { tag: "cat", argv: ["cat"] } });
    const { number } = json;
    expect((await api.rest.get(base)).json.processes).toContainEqual(json);
    const data = Buffer.from("hello\n").toString("base64");
    expect((await api.rest.post(`${base}/${number}/input`, { data })).json).toEqual({});
    expect((await api.rest.post(`${base}/0/input/close`, { tag: "cat" })).json).toEqual({});
    expect((await api.rest.get(`${base}/0/wait?tag=cat`)).json).toMatchObject({ number, exitCode: 0 });
    const events = await Array.fromAsync(api.rest.events("GET", `${base}/${number}/output`));
    expect(events.map((event) => event.data).slice(0, 2)).toMatchObject([
      { type: "OUTPUT_TYPE_UNSPECIFIED", data: "" },
      { type: "OUTPUT_TYPE_STDOUT", data, lostBytes: "0" },
    ]);
    expect(events.map((event) => event.data)).toContainEqual(expect.objectContaining({ exitCode: 0 }));
  });

  test("a signal ends it, by name and by number, and a terminal has another size when it is told so", async () => {
    const { number } = await start({ argv: ["sleep", "600"] });
    await api.call("SandboxService.SignalProcess", { sandbox_id: sandbox, number, signal: "term" });
    const ended = await api.call("SandboxService.WaitProcess", { sandbox_id: sandbox, number });
    expect(ended).toMatchObject({ exit_code: 143, signal: "SIGTERM" });
    const terminal = (await start({ command: "sh", terminal: { columns: 91, rows: 37 } })).number as number;
    const base = `/v1/sandboxes/${sandbox}/processes/${terminal}`;
    await api.rest.post(`${base}/resize`, { size: { columns: 101, rows: 41 } });
    const output = outputOf(attach({ number: terminal }));
    await api.call("SandboxService.ResizeProcess", {
      sandbox_id: sandbox,
      number: terminal,
      size: { columns: 102, rows: 42 },
    });
    const input = Buffer.from("stty size; exit 5\n");
    await api.call("SandboxService.SendInput", { sandbox_id: sandbox, number: terminal, data: input });
    const { text, last } = await output;
    expect(text).toContain("42 102");
    expect(last).toMatchObject({ exit_code: 5 });
    const { number: other } = await start({ argv: ["sleep", "600"] });
    await api.rest.post(`/v1/sandboxes/${sandbox}/processes/${other}/signal`, { signal: "9" });
    expect((await api.rest.get(`/v1/sandboxes/${sandbox}/processes/${other}/wait`)).json).toMatchObject({
      exitCode: 137,
    });
  });

  test("outlives the client that started it and was attached to it, and is attached to by another", async () => {
    const client = spawn(process.execPath, [
      "--input-type=module",
      "-e",
      `const base = ${JSON.stringify(`${api.server.http}/v1/sandboxes/${sandbox}/processes`)};
       const body = JSON.stringify({ command: "echo before; read x; echo after", tag: "orphan", stdin: true });
       const answer = await fetch(base, { method: "POST", headers: { "content-type": "application/json" }, body });
       const { number } = await answer.json();
       const output = await fetch(base + "/" + number + "/output");
       for await (const piece of output.body) process.stdout.write(Buffer.from(piece));`,
    ]);
    let seen = "";
    client.stdout.on("data", (data: Buffer) => {
      seen += data.toString();
    });
    await eventually(() => expect(seen).toContain(Buffer.from("before\n").toString("base64")));
    client.kill("SIGKILL");
    await once(client, "close");
    const output = outputOf(attach({ tag: "orphan" }));
    await api.call("SandboxService.SendInput", { sandbox_id: sandbox, tag: "orphan", data: Buffer.from("\n") });
    expect(await output).toEqual({ text: "before\nafter\n", last: expect.objectContaining({ exit_code: 0 }) });
  });

  test("what it wrote is synced when it ends, and start and end are in the audit log", async () => {
    const own = await api.sandbox(codebase, { sync: "SYNC_MODE_ON_EXEC" });
    const { number } = await start({ command: "echo new > b.txt", timeout: { seconds: 60 } }, own);
    await api.call("SandboxService.WaitProcess", { sandbox_id: own, number });
    await eventually(async () => {
      const { files } = await api.call("CodebaseService.ListFiles", { codebase_id: codebase, path: "" });
      expect((files as Message[]).map(({ path }) => path)).toContain("b.txt");
    });
    const events = async (type: string) => {
      const found = await api.call("EventService.ListEvents", { sandbox_id: own, types: [type] });
      return (found.events as { data: unknown }[]).map(({ data }) => JSON.stringify(data));
    };
    expect(await events("process_started")).toEqual([expect.stringContaining("echo new > b.txt")]);
    await eventually(async () => expect(await events("command_executed")).toHaveLength(1));
  });

  test("is gone with a stop; its number is not given again", async () => {
    const own = await api.sandbox(codebase);
    const { number } = await start({ argv: ["sleep", "600"] }, own);
    const waiting = api.call("SandboxService.WaitProcess", { sandbox_id: own, number });
    await eventually(async () => {
      const { processes } = await api.call("SandboxService.ListProcesses", { sandbox_id: own });
      expect(processes).toHaveLength(1);
    });
    await api.call("SandboxService.StopSandbox", { sandbox_id: own });
    expect(await waiting).toMatchObject({ exit_code: 137 });
    await api.refused({
      method: "SandboxService.ListProcesses",
      request: { sandbox_id: own },
      rest: `GET /v1/sandboxes/${own}/processes`,
      status: "FAILED_PRECONDITION",
      message: "sandbox is not running",
    });
    await api.call("SandboxService.StartSandbox", { sandbox_id: own });
    await api.refused({
      method: "SandboxService.WaitProcess",
      request: { sandbox_id: own, number },
      rest: `GET /v1/sandboxes/${own}/processes/${number}/wait`,
      status: "NOT_FOUND",
      message: /there is no process/,
    });
    expect((await start({ command: "true" }, own)).number).toBeGreaterThan(number as number);
  });
});

describe("is refused", () => {
  const refusals: Readonly<Record<string, () => Omit<Refusal, "rest"> & { path?: string }>> = {
    "both command and argv": () => ({
      method: "SandboxService.StartProcess",
      request: { sandbox_id: sandbox, command: "true", argv: ["true"] },
      status: "INVALID_ARGUMENT",
      message: "command and argv exclude each other",
    }),
    "a tag that is a number": () => ({
      method: "SandboxService.StartProcess",
      request: { sandbox_id: sandbox, command: "true", tag: "12" },
      status: "INVALID_ARGUMENT",
      message: /^a tag is a letter/,
    }),
    "a tag that is too long": () => ({
      method: "SandboxService.StartProcess",
      request: { sandbox_id: sandbox, command: "true", tag: "x".repeat(65) },
      status: "INVALID_ARGUMENT",
      message: /^a tag is a letter/,
    }),
    "neither number nor tag": () => ({
      method: "SandboxService.CloseInput",
      request: { sandbox_id: sandbox },
      status: "INVALID_ARGUMENT",
      message: "number or tag is required",
    }),
    "both number and tag": () => ({
      method: "SandboxService.WaitProcess",
      request: { sandbox_id: sandbox, number: 1, tag: "a" },
      status: "INVALID_ARGUMENT",
      message: "number and tag exclude each other",
    }),
    "a signal that is none": () => ({
      method: "SandboxService.SignalProcess",
      request: { sandbox_id: sandbox, number: 1, signal: "SIGNONE" },
      status: "INVALID_ARGUMENT",
      message: '"SIGNONE" is not a signal',
    }),
    "a signal beyond the last": () => ({
      method: "SandboxService.SignalProcess",
      request: { sandbox_id: sandbox, number: 1, signal: "65" },
      status: "INVALID_ARGUMENT",
      message: '"65" is not a signal',
    }),
    "a resize without a size": () => ({
      method: "SandboxService.ResizeProcess",
      request: { sandbox_id: sandbox, number: 1 },
      status: "INVALID_ARGUMENT",
      message: "size is required",
    }),
    "a number that nobody has": () => ({
      method: "SandboxService.AttachProcess",
      request: { sandbox_id: sandbox, number: 77_777 },
      status: "NOT_FOUND",
      message: /^there is no process 77777/,
    }),
    "a sandbox that nobody knows": () => ({
      method: "SandboxService.StartProcess",
      request: { sandbox_id: UNKNOWN.sandbox, command: "true" },
      status: "NOT_FOUND",
      message: "sandbox not found",
    }),
  };
  test.each(Object.keys(refusals))("%s", async (name) => {
    await api.refused(refusals[name]!());
  });

  test("input for one that has none, and for one that has ended", async () => {
    const { number } = await start({ argv: ["sleep", "600"] });
    const request = { sandbox_id: sandbox, number, data: Buffer.from("x") };
    const refused = (message: string) =>
      api.refused({ method: "SandboxService.SendInput", request, status: "FAILED_PRECONDITION", message });
    await refused(`process ${number} was started without an input`);
    await api.call("SandboxService.SignalProcess", { sandbox_id: sandbox, number, signal: "KILL" });
    await api.call("SandboxService.WaitProcess", { sandbox_id: sandbox, number });
    await refused(`process ${number} has ended`);
  });

  test("everything about the processes of another owner's sandbox, as if there was none", async () => {
    await using guarded = await GuardedServer.start();
    const { alice, mallory } = guarded;
    const { sandbox_id } = await makeBelongings(alice.grpc);
    const { number } = await alice.grpc.call("SandboxService", "StartProcess", { sandbox_id, argv: ["sleep", "600"] });
    const request = { sandbox_id, number, data: Buffer.from("x"), signal: "KILL", size: { columns: 9, rows: 9 } };
    for (const method of COVERAGE.processes) {
      const name = method.split(".")[1]!;
      const given = name === "StartProcess" ? { sandbox_id, command: "true" } : request;
      const outcome = await mallory.grpc.outcome("SandboxService", name, [given]);
      expect({ name, code: outcome.code, message: outcome.message }).toEqual({
        name,
        code: 5,
        message: "sandbox not found",
      });
    }
    const { processes } = await alice.grpc.call("SandboxService", "ListProcesses", { sandbox_id });
    expect(processes).toContainEqual(expect.objectContaining({ number, state: "PROCESS_STATE_RUNNING" }));
  });
});

testsCover(api, COVERAGE.processes);
