import type { ServiceError } from "@grpc/grpc-js";
import { beforeAll, describe, expect, test } from "vitest";
import { type Refusal, serveApi, testsCover } from "../support/api.ts";
import { errorDetails } from "../support/error-details.ts";
import { aWhile, eventually } from "../support/eventually.ts";
import { processesWith } from "../support/leftovers.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let sandbox: string;
beforeAll(async () => {
  sandbox = await api.sandbox(await api.codebase({ "a.txt": "alpha", "sub/b.txt": "beta" }));
});

const exec = (request: Message): Promise<Message> =>
  api.call("SandboxService.Exec", { sandbox_id: sandbox, ...request });
const restExec = (body: Message) => api.rest.post(`/v1/sandboxes/${sandbox}/exec`, body);

describe("exec", () => {
  test("both outputs apart, and the exit code as a result", async () => {
    expect(await exec({ command: "cat a.txt; echo bad >&2; exit 3" })).toEqual({
      stdout: "alpha",
      stderr: "bad\n",
      exit_code: 3,
      duration: { seconds: "0", nanos: expect.any(Number) },
      stdout_bytes: Buffer.alloc(0),
      stderr_bytes: Buffer.alloc(0),
      truncated: false,
      timed_out: false,
      signal: "",
      out_of_memory: false,
      session_closed: false,
      synced_version: "0",
      sync_problems: [],
    });
  });

  test("over REST, every field present", async () => {
    const { status, json } = await restExec({ command: "cat a.txt; echo bad >&2; exit 3" });
    expect({ status, json }).toEqual({
      status: 200,
      json: {
        stdout: "alpha",
        stderr: "bad\n",
        exitCode: 3,
        duration: expect.stringMatching(/^\d+(\.\d{3}|\.\d{6}|\.\d{9})?s$/),
        stdoutBytes: "",
        stderrBytes: "",
        truncated: false,
        timedOut: false,
        signal: "",
        outOfMemory: false,
        sessionClosed: false,
        syncedVersion: "0",
        syncProblems: [],
      },
    });
  });

  test("the path's id wins over the body's", async () => {
    const { status, json } = await restExec({ sandbox_id: "sb_ffffffffffffffff", command: "echo here" });
    expect({ status, json }).toMatchObject({ status: 200, json: { stdout: "here\n" } });
  });

  test("stdin, environment and working directory are honoured", async () => {
    const request = { command: 'cat; echo "$GREETING"; pwd; cat b.txt', stdin: "in\n", env: { GREETING: "hi" } };
    const stdout = "in\nhi\n/workspace/sub\nbeta";
    expect(await exec({ ...request, workdir: "/workspace/sub" })).toMatchObject({ stdout, exit_code: 0 });
    expect((await restExec({ ...request, workdir: "sub" })).json).toMatchObject({ stdout, exitCode: 0 });
  });

  test("stdin that is no text, and a program without a shell", async () => {
    const bytes = Buffer.from([0, 255, 10]);
    expect(await exec({ argv: ["od", "-An", "-tx1"], stdin_bytes: bytes })).toMatchObject({ stdout: " 00 ff 0a\n" });
    const { json } = await restExec({ argv: ["printf", "%s|", "$HOME", "a b"], stdinBytes: bytes.toString("base64") });
    expect(json).toMatchObject({ stdout: "$HOME|a b|", exitCode: 0 });
  });

  test("output that is not UTF-8 is replaced, and there exactly as bytes", async () => {
    const command = String.raw`printf 'a\377\376z'; printf 'ü\300' >&2`;
    expect(await exec({ command })).toMatchObject({
      stdout: "a\ufffd\ufffdz",
      stdout_bytes: Buffer.from([0x61, 0xff, 0xfe, 0x7a]),
      stderr: "ü\ufffd",
      stderr_bytes: Buffer.from([0xc3, 0xbc, 0xc0]),
      exit_code: 0,
    });
    expect((await restExec({ command })).json).toMatchObject({
      stdout: "a\ufffd\ufffdz",
      stdoutBytes: Buffer.from([0x61, 0xff, 0xfe, 0x7a]).toString("base64"),
      stderr: "ü\ufffd",
    });
    expect(await exec({ command: "printf 'ü'" })).toMatchObject({ stdout: "ü", stdout_bytes: Buffer.alloc(0) });
  });

  test("a command that a signal ends is 128 and its number", async () => {
    expect(await exec({ command: "kill -KILL $$" })).toMatchObject({ exit_code: 137, signal: "SIGKILL" });
    expect((await restExec({ command: "kill -TERM $$" })).json).toMatchObject({ exitCode: 143, signal: "SIGTERM" });
  });

  test("a program that is not there is a result, as it is for a shell", async () => {
    const argv = ["/no/such/program"];
    expect(await exec({ argv })).toMatchObject({ exit_code: 127, stderr: expect.stringContaining("No such file") });
    expect((await restExec({ argv })).json).toMatchObject({ exitCode: 127 });
  });

  test("output beyond the limit is cut, and says so", async () => {
    const small = await api.sandbox(await api.codebase(), { resources: { output_bytes: "1000" } });
    const result = await api.exec(small, "head -c 5000 /dev/zero | tr '\\0' x; printf y >&2");
    expect(result).toMatchObject({ truncated: true, stderr: "y", exit_code: 0 });
    expect((result.stdout as string).length).toBeLessThanOrEqual(1000);
  });

  test("a command's variables stay its own", async () => {
    const own = await api.sandbox(await api.codebase(), { env: { LEVEL: "sandbox" } });
    const call = { sandbox_id: own, command: 'echo "$LEVEL"' };
    expect((await api.call("SandboxService.Exec", { ...call, env: { LEVEL: "command" } })).stdout).toBe("command\n");
    expect((await api.call("SandboxService.Exec", call)).stdout).toBe("sandbox\n");
  });
});

describe("a command that runs out of time", () => {
  const command = "echo so far; echo and here >&2; sleep 60";

  test("is DEADLINE_EXCEEDED with the output so far in the details", async () => {
    const error: ServiceError = await exec({ command, timeout: { seconds: 1 } }).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect({ code: error.code, message: error.details }).toEqual({ code: 4, message: "command timed out" });
    expect(errorDetails(error)).toEqual([
      { "@type": "google.rpc.ErrorInfo", reason: "COMMAND_TIMEOUT", domain: "agentfense", metadata: {} },
      expect.objectContaining({
        "@type": "sandbox.v1.ExecResult",
        stdout: "so far\n",
        stderr: "and here\n",
        timed_out: true,
        exit_code: 137,
      }),
    ]);
  });

  test("over REST it is 504 with the same details", async () => {
    const { status, json } = await restExec({ command, timeout: "1s" });
    expect({ status, json }).toMatchObject({
      status: 504,
      json: {
        code: 4,
        message: "command timed out",
        details: [
          { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "COMMAND_TIMEOUT" },
          {
            "@type": "type.googleapis.com/sandbox.v1.ExecResult",
            stdout: "so far\n",
            stderr: "and here\n",
            timedOut: true,
          },
        ],
      },
    });
  });

  test("the end of much output fits into what gRPC can carry", async () => {
    const error = await exec({ command: "seq 1 20000; sleep 60", timeout: { seconds: 2 } }).catch((reason) => reason);
    const [, result] = errorDetails(error) as [Message, Message];
    expect(result).toMatchObject({ truncated: true, timed_out: true });
    expect(result.stdout).toMatch(/19999\n20000\n$/);
  });

  test("the stream ends with the fact, and OK", async () => {
    const messages = await api.grpc.collect("SandboxService", "ExecStream", {
      sandbox_id: sandbox,
      command,
      timeout: { seconds: 1 },
    });
    expect(messages.at(-1)).toMatchObject({ timed_out: true, exit_code: 137, data: Buffer.alloc(0) });
  });
});

describe("exec stream", () => {
  const text = (messages: readonly Message[], type: string): string =>
    Buffer.concat(messages.filter((each) => each.type === type).map(({ data }) => data as Buffer)).toString();

  test("both outputs apart, as bytes; the last message has the exit code", async () => {
    const messages = await api.grpc.collect("SandboxService", "ExecStream", {
      sandbox_id: sandbox,
      command: String.raw`printf 'out\377'; echo err >&2; exit 7`,
    });
    expect(
      Buffer.concat(messages.filter(({ type }) => type === "OUTPUT_TYPE_STDOUT").map(({ data }) => data as Buffer)),
    ).toEqual(Buffer.from([0x6f, 0x75, 0x74, 0xff]));
    expect(text(messages, "OUTPUT_TYPE_STDERR")).toBe("err\n");
    expect(messages.at(-1)).toEqual({
      type: "OUTPUT_TYPE_UNSPECIFIED",
      data: Buffer.alloc(0),
      exit_code: 7,
      _exit_code: "exit_code",
      signal: "",
      timed_out: false,
      duration: { seconds: "0", nanos: expect.any(Number) },
      out_of_memory: false,
      session_closed: false,
      synced_version: "0",
      sync_problems: [],
    });
    // Only the last one has it, zero or not.
    expect(messages.slice(0, -1).every((each) => each._exit_code === undefined)).toBe(true);
  });

  test("an exit with zero is told too", async () => {
    const messages = await api.grpc.collect("SandboxService", "ExecStream", { sandbox_id: sandbox, command: "true" });
    expect(messages).toMatchObject([{ exit_code: 0, _exit_code: "exit_code" }]);
  });

  test("output comes while the command runs", async () => {
    const stream = api.grpc.stream("SandboxService", "ExecStream", {
      sandbox_id: sandbox,
      command: "echo first; while [ ! -e go ]; do sleep 0.05; done; echo second; rm go",
    });
    const seen: Message[] = [];
    for await (const message of stream) {
      seen.push(message as Message);
      if (seen.length === 1) await exec({ command: "touch go" });
    }
    expect(text(seen, "OUTPUT_TYPE_STDOUT")).toBe("first\nsecond\n");
    expect(seen.at(-1)).toMatchObject({ exit_code: 0 });
  });

  test("over REST it is server-sent events", async () => {
    const events: unknown[] = [];
    const body = { command: "echo out; sleep 0.3; echo err >&2; exit 2" };
    for await (const { event, data } of api.rest.events("POST", `/v1/sandboxes/${sandbox}/exec/stream`, body)) {
      events.push([event, data]);
    }
    const base64 = (content: string): string => Buffer.from(content).toString("base64");
    expect(events).toMatchObject([
      ["message", { type: "OUTPUT_TYPE_STDOUT", data: base64("out\n") }],
      ["message", { type: "OUTPUT_TYPE_STDERR", data: base64("err\n") }],
      ["message", { type: "OUTPUT_TYPE_UNSPECIFIED", data: "", exitCode: 2, timedOut: false }],
      ["end", {}],
    ]);
  });

  test("or lines of JSON, when that is what the client takes", async () => {
    const answer = await api.rest.request(
      "POST",
      `/v1/sandboxes/${sandbox}/exec/stream`,
      { command: "echo out" },
      { headers: { accept: "application/x-ndjson" } },
    );
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    expect(
      answer.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ type: "OUTPUT_TYPE_STDOUT" }, { exitCode: 0 }]);
  });
});

describe("a caller who goes takes the command along", () => {
  /** Beats as long as it lives; by then something was printed. */
  const beating = (file: string): string =>
    `echo x >> ${file}; echo begun; while :; do echo x >> ${file}; sleep 0.05; done`;
  const beats = async (file: string): Promise<number> => Number((await exec({ command: `wc -l < ${file}` })).stdout);

  const expectDead = async (file: string): Promise<void> => {
    await eventually(() => expect(processesWith(file)).toEqual([]));
    const before = await beats(file);
    await aWhile(200); // four beats of one that lives
    expect(await beats(file)).toBe(before);
  };

  test("by cancelling a stream", async () => {
    const command = beating("beats-stream");
    const stream = api.grpc.stream("SandboxService", "ExecStream", { sandbox_id: sandbox, command });
    const ended = new Promise<ServiceError>((resolve) => stream.on("error", resolve));
    await new Promise((resolve) => stream.once("data", resolve));
    stream.cancel();
    expect((await ended).code).toBe(1);
    await expectDead("beats-stream");
  });

  test("by its deadline on a unary call", async () => {
    const command = beating("beats-unary");
    const { code } = await api.grpc.failure(
      "SandboxService",
      "Exec",
      { sandbox_id: sandbox, command },
      { deadlineMs: 2000 },
    );
    expect(code).toBe(4);
    await expectDead("beats-unary");
  });

  test("by closing the connection of an event stream", async () => {
    const body = { command: beating("beats-rest") };
    for await (const _event of api.rest.events("POST", `/v1/sandboxes/${sandbox}/exec/stream`, body)) break;
    await expectDead("beats-rest");
  });

  test("and what it wrote before is kept, its end in the audit log", async () => {
    const { events } = await api.call("EventService.ListEvents", { sandbox_id: sandbox, types: ["command_executed"] });
    const cancelled = (events as { data: { fields: Record<string, { stringValue?: string }> } }[]).filter(
      ({ data }) => data.fields.error?.stringValue === "CANCELLED",
    );
    expect(cancelled.length).toBeGreaterThanOrEqual(3);
    expect(await beats("beats-stream")).toBeGreaterThan(0);
  });
});

describe("refused", () => {
  const rows: readonly (readonly [string, Omit<Refusal, "method" | "rest">])[] = [
    ["no command", { request: {}, status: "INVALID_ARGUMENT", message: "command is required" }],
    ["a command of spaces", { request: { command: "  " }, status: "INVALID_ARGUMENT", message: "command is required" }],
    [
      "a command and a program",
      {
        request: { command: "true", argv: ["true"] },
        status: "INVALID_ARGUMENT",
        message: "command and argv exclude each other",
      },
    ],
    [
      "two kinds of stdin",
      {
        request: { command: "cat", stdin: "a", stdin_bytes: Buffer.from("b") },
        body: { command: "cat", stdin: "a", stdin_bytes: "Yg==" },
        status: "INVALID_ARGUMENT",
        message: "stdin and stdin_bytes exclude each other",
      },
    ],
    [
      "a NUL in the command",
      { request: { command: "echo \0" }, status: "INVALID_ARGUMENT", message: "command contains a NUL character" },
    ],
    [
      "a variable that is none",
      {
        request: { command: "true", env: { "1A": "x" } },
        status: "INVALID_ARGUMENT",
        message: '"1A" is not a name for an environment variable',
      },
    ],
    [
      "a working directory that is not there",
      { request: { command: "true", workdir: "/workspace/none" }, status: "INVALID_ARGUMENT", message: /none/ },
    ],
    [
      "a negative timeout",
      {
        request: { command: "true", timeout: { seconds: -5 } },
        body: { command: "true", timeout: "-5s" },
        status: "INVALID_ARGUMENT",
        message: "timeout must not be negative",
      },
    ],
    [
      "a timeout beyond what a Duration is",
      {
        request: { command: "true", timeout: { seconds: "999999999999" } },
        body: { command: "true", timeout: "999999999999s" },
        status: "INVALID_ARGUMENT",
        message: /^timeout /,
      },
    ],
  ];

  test.each(rows)("%s", async (_title, { request, body, status, message }) => {
    const calls = { "SandboxService.Exec": "exec", "SandboxService.ExecStream": "exec/stream" } as const;
    for (const [method, path] of Object.entries(calls) as [keyof typeof calls, string][]) {
      await api.refused({
        method,
        request: { sandbox_id: sandbox, ...(request as Message) },
        rest: `POST /v1/sandboxes/${sandbox}/${path}`,
        ...(body === undefined ? {} : { body }),
        status,
        message,
      });
    }
  });

  test("a timeout as a number is a mistake that is told", async () => {
    const { status, json } = await restExec({ command: "true", timeout: 30 });
    expect({ status, json }).toMatchObject({
      status: 400,
      json: { code: 3, message: 'timeout must be a string of seconds such as "30s" or "1.5s"' },
    });
  });
});

testsCover(api, COVERAGE.exec);
