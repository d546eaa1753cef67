import type { ServiceError } from "@grpc/grpc-js";
import { beforeAll, describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { errorDetails } from "../support/error-details.ts";
import { eventually } from "../support/eventually.ts";
import type { Message, MethodName } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi({ settings: { limits: { sessions_per_sandbox: 4 } } });
let codebase: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha", "sub/b.txt": "beta" });
});

async function openSession(request: Message = {}): Promise<{ sandbox: string; session: string }> {
  const sandbox = await api.sandbox(codebase);
  const { id } = await api.call("SandboxService.CreateSession", { sandbox_id: sandbox, ...request });
  return { sandbox, session: id as string };
}

const run = (session: string, command: string): Promise<Message> =>
  api.call("SandboxService.SessionExec", { session_id: session, command });

describe("open, look, close", () => {
  test("a session over gRPC", async () => {
    const sandbox = await api.sandbox(codebase);
    const created = await api.call("SandboxService.CreateSession", { sandbox_id: sandbox, shell: "/bin/sh" });
    expect(created).toEqual({
      id: expect.stringMatching(/^sess_[0-9a-f]{16,64}$/),
      sandbox_id: sandbox,
      status: "SESSION_STATUS_ACTIVE",
      shell: "/bin/sh",
      created_at: { seconds: expect.any(String), nanos: expect.any(Number) },
      closed_at: null,
      close_reason: "",
    });
    expect(await api.call("SandboxService.GetSession", { session_id: created.id })).toEqual(created);
    expect(await api.call("SandboxService.ListSessions", { sandbox_id: sandbox })).toEqual({ sessions: [created] });
    expect(await api.call("SandboxService.DestroySession", { session_id: created.id })).toEqual({});
    expect(await api.call("SandboxService.ListSessions", { sandbox_id: sandbox })).toEqual({ sessions: [] });
  });

  test("a session over REST", async () => {
    const sandbox = await api.sandbox(codebase);
    const { status, json } = await api.rest.post(`/v1/sandboxes/${sandbox}/sessions`, { env: { NAME: "rest" } });
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        id: expect.stringMatching(/^sess_[0-9a-f]{16,64}$/),
        sandboxId: sandbox,
        status: "SESSION_STATUS_ACTIVE",
        shell: expect.stringMatching(/^\/bin\//),
        createdAt: expect.stringMatching(/Z$/),
        closedAt: null,
        closeReason: "",
      },
    });
    expect((await api.rest.get(`/v1/sessions/${json.id}`)).json).toEqual(json);
    expect((await api.rest.get(`/v1/sandboxes/${sandbox}/sessions`)).json).toEqual({ sessions: [json] });
    const ran = await api.rest.post(`/v1/sessions/${json.id}/exec`, { command: 'echo "$NAME"', timeout: "10s" });
    expect(ran.json).toMatchObject({ stdout: "rest\n", stderr: "", exitCode: 0, timedOut: false });
    const closed = await api.rest.delete(`/v1/sessions/${json.id}`);
    expect({ status: closed.status, text: closed.text }).toEqual({ status: 200, text: "{}" });
  });

  test("an empty body opens one with the defaults", async () => {
    const sandbox = await api.sandbox(codebase);
    const { status, json } = await api.rest.raw("POST", `/v1/sandboxes/${sandbox}/sessions`);
    expect({ status, json }).toMatchObject({ status: 200, json: { status: "SESSION_STATUS_ACTIVE" } });
  });

  test("the list of a sandbox that nobody knows is empty, as it always was", async () => {
    expect(await api.call("SandboxService.ListSessions", { sandbox_id: UNKNOWN.sandbox })).toEqual({ sessions: [] });
    expect((await api.rest.get(`/v1/sandboxes/${UNKNOWN.sandbox}/sessions`)).json).toEqual({ sessions: [] });
  });

  test("one that its client closed is as unknown as one that never was", async () => {
    const { session } = await openSession();
    await api.call("SandboxService.DestroySession", { session_id: session });
    await refuseEverywhere(session, { status: "NOT_FOUND", message: "session not found" });
  });

  test("no more than the limit at a time", async () => {
    const { sandbox } = await openSession();
    for (let open = 1; open < 4; open++) await api.call("SandboxService.CreateSession", { sandbox_id: sandbox });
    await api.refused({
      method: "SandboxService.CreateSession",
      request: { sandbox_id: sandbox },
      rest: `POST /v1/sandboxes/${sandbox}/sessions`,
      status: "RESOURCE_EXHAUSTED",
      message: "a sandbox has at most 4 sessions at a time",
    });
  });
});

describe("commands in a session", () => {
  test("directory, variables and functions stay from one to the next", async () => {
    const { session } = await openSession({ env: { GREETING: "hello" }, workdir: "sub" });
    expect(await run(session, "pwd; echo $GREETING")).toMatchObject({ stdout: "/workspace/sub\nhello\n" });
    expect(await run(session, "cd ..; COUNT=1; f() { echo f$COUNT; }; false")).toMatchObject({ exit_code: 1 });
    expect(await run(session, "COUNT=2; f; cat a.txt; echo e >&2")).toMatchObject({
      stdout: "f2\nalpha",
      stderr: "e\n",
      exit_code: 0,
      session_closed: false,
    });
  });

  test("API-36 two commands at once take turns", async () => {
    const { session } = await openSession();
    const results = await Promise.all(
      ["a", "b", "c"].map((name) => run(session, `echo ${name} >> order; sleep 0.2; echo ${name} >> order`)),
    );
    expect(results.map(({ exit_code }) => exit_code)).toEqual([0, 0, 0]);
    const { stdout } = await run(session, "cat order");
    expect(stdout).toMatch(/^(\w)\n\1\n(\w)\n\2\n(\w)\n\3\n$/);
  });

  test("a timeout is DEADLINE_EXCEEDED with the output so far, and the session goes on", async () => {
    const { session } = await openSession();
    const request = { session_id: session, command: "X=kept; echo part; sleep 60", timeout: { seconds: 1 } };
    const error: ServiceError = await api.call("SandboxService.SessionExec", request).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect({ code: error.code, message: error.details }).toEqual({ code: 4, message: "command timed out" });
    expect(errorDetails(error)[1]).toMatchObject({
      "@type": "sandbox.v1.ExecResult",
      stdout: "part\n",
      timed_out: true,
    });
    expect(await run(session, "echo $X")).toMatchObject({ stdout: "kept\n" });
    const { status, json } = await api.rest.post(`/v1/sessions/${session}/exec`, {
      command: "sleep 60",
      timeout: "1s",
    });
    expect({ status, json }).toMatchObject({ status: 504, json: { code: 4, message: "command timed out" } });
  });

  test("a stream, its last message with the exit code", async () => {
    const { session } = await openSession();
    const messages = await api.grpc.collect("SandboxService", "SessionExecStream", {
      session_id: session,
      command: "echo out; echo err >&2; (exit 4)",
    });
    const of = (type: string): string =>
      Buffer.concat(messages.filter((each) => each.type === type).map(({ data }) => data as Buffer)).toString();
    expect([of("OUTPUT_TYPE_STDOUT"), of("OUTPUT_TYPE_STDERR")]).toEqual(["out\n", "err\n"]);
    expect(messages.at(-1)).toMatchObject({ exit_code: 4, timed_out: false, session_closed: false });

    const events: Message[] = [];
    const body = { command: "echo rest" };
    for await (const { data } of api.rest.events("POST", `/v1/sessions/${session}/exec/stream`, body))
      events.push(data);
    expect(events).toMatchObject([{ type: "OUTPUT_TYPE_STDOUT" }, { exitCode: 0 }, {}]);
  });

  test("a stream that runs out of time ends with the fact", async () => {
    const { session } = await openSession();
    const request = { session_id: session, command: "echo part; sleep 60", timeout: { seconds: 1 } };
    const messages = await api.grpc.collect("SandboxService", "SessionExecStream", request);
    expect(messages.at(-1)).toMatchObject({ timed_out: true });
  });

  test("cancelling a stream ends the command and not the session", async () => {
    const { sandbox, session } = await openSession();
    await run(session, "X=kept");
    const command = "echo x >> beats; echo begun; while :; do echo x >> beats; sleep 0.05; done";
    const stream = api.grpc.stream("SandboxService", "SessionExecStream", { session_id: session, command });
    const ended = new Promise<ServiceError>((resolve) => stream.on("error", resolve));
    await new Promise((resolve) => stream.once("data", resolve));
    stream.cancel();
    expect((await ended).code).toBe(1);
    await eventually(async () => {
      const { stdout } = await api.exec(sandbox, "wc -l < beats; sleep 0.5; wc -l < beats");
      const [before, after] = (stdout as string).trim().split("\n");
      expect(after).toBe(before);
    });
    expect(await run(session, "echo $X")).toMatchObject({ stdout: "kept\n" });
  });

  test("a command that ends the shell closes the session, with its reason", async () => {
    const { sandbox, session } = await openSession();
    expect(await run(session, "echo bye; exit 5")).toMatchObject({
      stdout: "bye\n",
      exit_code: 5,
      session_closed: true,
    });
    expect(await api.call("SandboxService.GetSession", { session_id: session })).toMatchObject({
      status: "SESSION_STATUS_CLOSED",
      closed_at: { seconds: expect.any(String) },
      close_reason: "exited",
    });
    expect((await api.rest.get(`/v1/sandboxes/${sandbox}/sessions`)).json).toMatchObject({
      sessions: [{ status: "SESSION_STATUS_CLOSED", closeReason: "exited", closedAt: expect.stringMatching(/Z$/) }],
    });
    await api.refused({
      method: "SandboxService.SessionExec",
      request: { session_id: session, command: "true" },
      rest: `POST /v1/sessions/${session}/exec`,
      status: "FAILED_PRECONDITION",
      message: "session is closed: its shell ended",
    });
  });

  test("stopping the sandbox closes its sessions, destroying it forgets them", async () => {
    const { sandbox, session } = await openSession();
    await api.call("SandboxService.StopSandbox", { sandbox_id: sandbox });
    expect((await api.rest.get(`/v1/sessions/${session}`)).json).toMatchObject({
      status: "SESSION_STATUS_CLOSED",
      closeReason: "stopped",
    });
    await api.call("SandboxService.DestroySandbox", { sandbox_id: sandbox });
    await refuseEverywhere(session, { status: "NOT_FOUND", message: "session not found" });
  });

  test("one that is idle for too long closes itself", async () => {
    const { session } = await openSession({ idle_timeout: { seconds: 1 } });
    await eventually(async () =>
      expect((await api.rest.get(`/v1/sessions/${session}`)).json).toMatchObject({ closeReason: "idle" }),
    );
  });
});

describe("refused", () => {
  test("API-07 no id, an unknown one, one of another shape", async () => {
    await refuseEverywhere("", { status: "INVALID_ARGUMENT", message: "session_id is required" });
    await refuseEverywhere(UNKNOWN.session, { status: "NOT_FOUND", message: "session not found" });
    const message = "session_id is not the id of a session: sess_ and hexadecimal digits";
    for (const id of ["sess_", "mock_sess_1", "../x", UNKNOWN.sandbox]) {
      await refuseEverywhere(id, { status: "INVALID_ARGUMENT", message });
    }
  });

  test("a list without a sandbox", async () => {
    await api.refused({
      method: "SandboxService.ListSessions",
      rest: "GET /v1/sandboxes//sessions",
      status: "INVALID_ARGUMENT",
      message: "sandbox_id is required",
    });
  });

  test("no command", async () => {
    const { session } = await openSession();
    for (const [method, path] of [
      ["SessionExec", "exec"],
      ["SessionExecStream", "exec/stream"],
    ]) {
      await api.refused({
        method: `SandboxService.${method}`,
        request: { session_id: session },
        rest: `POST /v1/sessions/${session}/${path}`,
        status: "INVALID_ARGUMENT",
        message: "command is required",
      });
    }
  });

  const creations: readonly (readonly [string, Message, string | RegExp])[] = [
    ["API-23 a shell that is none", { shell: "/workspace/evil" }, /shell/],
    ["API-23 an option for a shell", { shell: "-c" }, /shell/],
    ["a working directory that is not there", { workdir: "none" }, /none/],
    ["a variable that is none", { env: { "A B": "x" } }, '"A B" is not a name for an environment variable'],
  ];

  test.each(creations)("%s", async (_title, request, message) => {
    const sandbox = await api.sandbox(codebase);
    await api.refused({
      method: "SandboxService.CreateSession",
      request: { sandbox_id: sandbox, ...request },
      rest: `POST /v1/sandboxes/${sandbox}/sessions`,
      status: "INVALID_ARGUMENT",
      message,
    });
  });
});

/** By every method that takes a session. */
async function refuseEverywhere(session: string, expected: Pick<Refusal, "status" | "message">): Promise<void> {
  const methods: readonly (readonly [MethodName, string, Message])[] = [
    ["SandboxService.GetSession", "GET /v1/sessions/{id}", {}],
    ["SandboxService.SessionExec", "POST /v1/sessions/{id}/exec", { command: "true" }],
    ["SandboxService.SessionExecStream", "POST /v1/sessions/{id}/exec/stream", { command: "true" }],
    ["SandboxService.DestroySession", "DELETE /v1/sessions/{id}", {}],
  ];
  for (const [method, rest, request] of methods) {
    await api.refused({
      method,
      request: { session_id: session, ...request },
      rest: rest.replace("{id}", encodeURIComponent(session)),
      ...expected,
    });
  }
}

testsCover(api, COVERAGE.sessions);
