import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import { beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { aWhile, eventually } from "../support/eventually.ts";
import { processesWith } from "../support/leftovers.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let codebase: string;
let sandbox: string;
beforeAll(async () => {
  codebase = await api.codebase({ "a.txt": "alpha\n" });
  sandbox = await api.sandbox(codebase);
});

/** A command that is talked to, and what it said. */
class Conversation {
  readonly call: ClientDuplexStream<Message, Message>;
  readonly ended: Promise<{ last?: Message; error?: ServiceError }>;
  stdout = "";
  stderr = "";

  constructor(...first: Message[]) {
    this.call = api.grpc.duplex("SandboxService", "ExecInteractive", { deadlineMs: 120_000 });
    const end = Promise.withResolvers<{ last?: Message; error?: ServiceError }>();
    this.ended = end.promise;
    let last: Message | undefined;
    this.call.on("data", (message: Message) => {
      if (message.type === "OUTPUT_TYPE_STDOUT") this.stdout += (message.data as Buffer).toString();
      if (message.type === "OUTPUT_TYPE_STDERR") this.stderr += (message.data as Buffer).toString();
      last = message;
    });
    this.call.on("error", (error: ServiceError) => end.resolve({ error }));
    this.call.on("end", () => end.resolve(last === undefined ? {} : { last }));
    for (const message of first) this.call.write(message);
  }

  static of(request: Message): Conversation {
    return new Conversation({ start: { sandbox_id: sandbox, ...request } });
  }

  say(text: string): void {
    this.call.write({ stdin: Buffer.from(text) });
  }

  async hears(text: string | RegExp): Promise<void> {
    await eventually(() => expect(this.stdout).toMatch(text));
  }
}

const exitCodeOf = async ({ ended }: Conversation): Promise<unknown> => {
  const { last, error } = await ended;
  if (error !== undefined) throw error;
  return last?.exit_code;
};

describe("a conversation with a command", () => {
  test("goes back and forth, and ends with the exit code", async () => {
    const talk = Conversation.of({ command: 'while read -r line; do echo "got $line"; done; echo bye >&2; exit 5' });
    talk.say("one\n");
    await talk.hears("got one\n");
    talk.say("two\n");
    await talk.hears("got two\n");
    talk.call.write({ end: true });
    expect((await talk.ended).last).toMatchObject({ exit_code: 5, timed_out: false });
    expect([talk.stdout, talk.stderr]).toEqual(["got one\ngot two\n", "bye\n"]);
  });

  test("the end of the client's stream is the end of the input", async () => {
    const talk = Conversation.of({ argv: ["wc", "-c"] });
    talk.say("12345");
    talk.call.end();
    expect(await exitCodeOf(talk)).toBe(0);
    expect(talk.stdout.trim()).toBe("5");
  });

  test("a command that ends does not wait for a client that goes on sending", async () => {
    const talk = Conversation.of({ command: "read -r line; exit 4" });
    const sending = setInterval(() => talk.say("more\n"), 5);
    try {
      expect(await exitCodeOf(talk)).toBe(4);
    } finally {
      clearInterval(sending);
    }
    const silent = Conversation.of({ command: "exit 6" });
    expect(await exitCodeOf(silent)).toBe(6);
  });

  test("a command that closes its input goes on", async () => {
    const talk = Conversation.of({ command: "exec <&-; echo closed; sleep 1; echo alive; exit 7" });
    await talk.hears("closed");
    for (let count = 0; count < 20; count++) talk.say("x".repeat(100_000));
    expect(await exitCodeOf(talk)).toBe(7);
    expect(talk.stdout).toBe("closed\nalive\n");
  });

  test("bytes of any value and size arrive as they were sent", async () => {
    const talk = Conversation.of({ command: "sha256sum; echo done" });
    const block = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
    const piece = Buffer.concat(Array.from({ length: 1024 }, () => block));
    for (let count = 0; count < 20; count++) talk.call.write({ stdin: piece });
    talk.call.end();
    expect(await exitCodeOf(talk)).toBe(0);
    const local = await crypto.subtle.digest("SHA-256", Buffer.concat(Array.from({ length: 20 }, () => piece)));
    expect(talk.stdout).toBe(`${Buffer.from(local).toString("hex")}  -\ndone\n`);
  });

  test("a client that sends and does not read is slowed down, and gets everything when it reads", async () => {
    const talk = Conversation.of({ command: "cat" });
    talk.call.pause();
    const piece = Buffer.alloc(256 * 1024, "x");
    let written = 0;
    const isTaken = async (): Promise<boolean> => {
      written += piece.length;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      talk.call.write({ stdin: piece }, () => resolve(true));
      return await Promise.race([promise, aWhile(2000).then(() => false)]);
    };
    while (written < 256 * 1024 * 1024 && (await isTaken()));
    // What was taken is in windows, pipes and single messages.
    expect(written).toBeLessThan(32 * 1024 * 1024);
    talk.call.end();
    talk.call.resume();
    expect(await exitCodeOf(talk)).toBe(0);
    expect(talk.stdout.length).toBe(written);
  });

  test("its time limit ends it as any other, with the fact", async () => {
    const talk = Conversation.of({ command: "echo begun; cat", timeout: { seconds: 3 } });
    expect((await talk.ended).last).toMatchObject({ timed_out: true });
    expect(talk.stdout).toBe("begun\n");
  });

  test("what it wrote is synced, and it is in the audit log", async () => {
    const talk = Conversation.of({ command: "cat > from-stdin.txt" });
    talk.say("typed");
    talk.call.end();
    const { last } = await talk.ended;
    expect(Number(last?.synced_version)).toBeGreaterThan(0);
    expect((await api.grpc.download(codebase, "from-stdin.txt")).toString()).toBe("typed");
    const { json } = await api.rest.get(`/v1/events?sandbox_id=${sandbox}&types=command_executed&page_size=1000`);
    const commands = (json.events as { data: Message }[]).map(({ data }) => data);
    expect(commands).toContainEqual(
      expect.objectContaining({ command: "cat > from-stdin.txt", exit_code: 0, timed_out: false }),
    );
  });

  test.each(["while it talks", "after the end of the input"])("a caller who goes takes it along: %s", async (when) => {
    const file = `beats-${when.length}-${process.pid}`;
    const talk = Conversation.of({ command: `echo begun; while :; do echo x >> ${file}; sleep 0.05; done` });
    if (when !== "while it talks") talk.call.write({ end: true });
    await talk.hears("begun");
    talk.call.cancel();
    expect((await talk.ended).error?.code).toBe(1);
    await eventually(() => expect(processesWith(file)).toEqual([]));
    const { stdout } = await api.exec(sandbox, `touch ${file}; wc -l < ${file}; sleep 0.2; wc -l < ${file}`);
    const [before, after] = (stdout as string).trim().split("\n");
    expect(after).toBe(before);
  });
});

describe("refused", () => {
  const start = (more: Message = {}): Message => ({ start: { sandbox_id: sandbox, command: "cat", ...more } });
  const rows: readonly (readonly [string, () => Message[], number, string])[] = [
    ["input first", () => [{ stdin: Buffer.from("x") }], 3, "start must be sent first"],
    ["no sandbox", () => [{ start: { command: "cat" } }], 3, "sandbox_id is required in start"],
    ["no command", () => [{ start: { sandbox_id: sandbox } }], 3, "command is required"],
    ["an unknown sandbox", () => [start({ sandbox_id: UNKNOWN.sandbox })], 5, "sandbox not found"],
    [
      "input in the start",
      () => [start({ stdin: "x" })],
      3,
      "start takes neither stdin nor stdin_bytes: send the input in messages of its own",
    ],
    ["a second start", () => [start(), start()], 3, "start already received"],
  ];

  test.each(rows)("%s", async (_title, messages, code, message) => {
    const { error } = await new Conversation(...messages()).ended;
    expect({ code: error?.code, message: error?.details }).toEqual({ code, message });
  });

  test("nothing at all", async () => {
    const talk = new Conversation();
    talk.call.end();
    const { error } = await talk.ended;
    expect({ code: error?.code, message: error?.details }).toEqual({ code: 3, message: "no start received" });
  });

  test("a sandbox that does not run", async () => {
    const { id } = await api.call("SandboxService.CreateSandbox", { codebase_id: codebase });
    const { error } = await new Conversation(start({ sandbox_id: id })).ended;
    expect({ code: error?.code, message: error?.details }).toEqual({ code: 9, message: "sandbox is not running" });
  });
});

testsCover(api, COVERAGE.interactive);
