import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import { beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { eventually } from "../support/eventually.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let sandbox: string;
beforeAll(async () => {
  sandbox = await api.sandbox(await api.codebase({ "a.txt": "alpha\n" }));
});

/** A terminal that is typed into, and what it showed. */
class Terminal {
  readonly #call: ClientDuplexStream<Message, Message>;
  readonly ended: Promise<{ exitCode?: unknown; error?: ServiceError }>;
  shown = "";

  constructor(...first: Message[]) {
    this.#call = api.grpc.duplex("SandboxService", "OpenTerminal");
    const end = Promise.withResolvers<{ exitCode?: unknown; error?: ServiceError }>();
    this.ended = end.promise;
    let exitCode: unknown;
    this.#call.on("data", (message: Message) => {
      this.shown += (message.data as Buffer).toString();
      if (message._exit_code !== undefined) exitCode = message.exit_code;
    });
    this.#call.on("error", (error: ServiceError) => end.resolve({ error }));
    this.#call.on("end", () => end.resolve({ exitCode }));
    for (const message of first) this.send(message);
  }

  send(message: Message): void {
    this.#call.write(message);
  }

  type(text: string): void {
    this.send({ data: Buffer.from(text) });
  }

  endInput(): void {
    this.#call.end();
  }

  cancel(): void {
    this.#call.cancel();
  }

  async shows(text: string | RegExp): Promise<void> {
    await eventually(() => expect(this.shown).toMatch(text));
  }
}

describe("a terminal", () => {
  test("shows what is typed, knows its size, and ends with the exit code", async () => {
    const size = { columns: 100, rows: 30 };
    const terminal = new Terminal({ open: { sandbox_id: sandbox, env: { WHO: "me" }, size } });
    terminal.type("echo hi-$WHO; stty size; tty\n");
    await terminal.shows("hi-me");
    await terminal.shows("30 100");
    await terminal.shows(/\/dev\/(pts\/\d+|console|tty)/);
    terminal.send({ resize: { columns: 120, rows: 40 } });
    terminal.type("stty size\n");
    await terminal.shows("40 120");
    terminal.type("exit 9\n");
    expect(await terminal.ended).toEqual({ exitCode: 9 });
  });

  test("runs a program of the caller's choice, in a directory of the caller's choice", async () => {
    const terminal = new Terminal({ open: { sandbox_id: sandbox, argv: ["cat", "a.txt"], workdir: "/workspace" } });
    expect(await terminal.ended).toEqual({ exitCode: 0 });
    expect(terminal.shown).toBe("alpha\r\n");
  });

  test("an interrupt from the keyboard ends what runs, not the terminal", async () => {
    const terminal = new Terminal({ open: { sandbox_id: sandbox } });
    // What a program of the foreground prints shows that the foreground is its own: before that, the shell is interrupted.
    terminal.type("sh -c 'echo begun; exec sleep 600'\n");
    await terminal.shows(/^begun\r?\n/m);
    terminal.type("\u0003");
    terminal.type("echo alive-$?\n");
    await terminal.shows("alive-130");
    terminal.type("exit\n");
    expect(await terminal.ended).toMatchObject({ exitCode: expect.any(Number) });
  });

  test("the end of the input is no end of the terminal", async () => {
    const terminal = new Terminal({ open: { sandbox_id: sandbox, argv: ["sh", "-c", "sleep 0.5; echo late"] } });
    terminal.endInput();
    expect(await terminal.ended).toEqual({ exitCode: 0 });
    expect(terminal.shown).toBe("late\r\n");
  });

  test("a caller who goes takes it along", async () => {
    const terminal = new Terminal({ open: { sandbox_id: sandbox } });
    terminal.type("echo x >> beats; echo begun; while :; do echo x >> beats; sleep 0.05; done\n");
    await terminal.shows(/^begun\r?\n/m);
    terminal.cancel();
    expect((await terminal.ended).error?.code).toBe(1);
    await eventually(async () => {
      const { stdout } = await api.exec(sandbox, "wc -l < beats; sleep 0.5; wc -l < beats");
      const [before, after] = (stdout as string).trim().split("\n");
      expect(after).toBe(before);
    });
  });
});

describe("refused", () => {
  const rows: readonly (readonly [string, () => Message[], number, string])[] = [
    ["data first", () => [{ data: Buffer.from("x") }], 3, "open must be sent first"],
    ["no sandbox", () => [{ open: {} }], 3, "sandbox_id is required in open"],
    ["an unknown sandbox", () => [{ open: { sandbox_id: UNKNOWN.sandbox } }], 5, "sandbox not found"],
    [
      "an id of another shape",
      () => [{ open: { sandbox_id: "x" } }],
      3,
      "sandbox_id is not the id of a sandbox: sb_ and hexadecimal digits",
    ],
    [
      "open twice",
      () => [{ open: { sandbox_id: sandbox } }, { open: { sandbox_id: sandbox } }],
      3,
      "open already received",
    ],
    [
      "an absurd size",
      () => [{ open: { sandbox_id: sandbox, size: { columns: 100_000, rows: 1 } } }],
      3,
      "a terminal has at most 65535 columns and rows",
    ],
  ];

  test.each(rows)("%s", async (_title, messages, code, message) => {
    const { error } = await new Terminal(...messages()).ended;
    expect({ code: error?.code, message: error?.details }).toEqual({ code, message });
  });

  test("nothing at all", async () => {
    const terminal = new Terminal();
    terminal.endInput();
    const { error } = await terminal.ended;
    expect({ code: error?.code, message: error?.details }).toEqual({ code: 3, message: "no open received" });
  });

  test("a sandbox that does not run", async () => {
    const codebase = await api.codebase();
    const { id } = await api.call("SandboxService.CreateSandbox", { codebase_id: codebase });
    const { error } = await new Terminal({ open: { sandbox_id: id } }).ended;
    expect({ code: error?.code, message: error?.details }).toEqual({ code: 9, message: "sandbox is not running" });
  });
});

testsCover(api, COVERAGE.terminal);
