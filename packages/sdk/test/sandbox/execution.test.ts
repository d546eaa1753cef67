import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { CommandEnd, CommandEvent } from "../../src/model/records.ts";
import { Execution, type ExecutionParts } from "../../src/sandbox/execution/execution.ts";
import { COLLECTED_BYTES, WAITING_BYTES } from "../../src/sandbox/execution/outlet.ts";
import { StdinFeed } from "../../src/sandbox/execution/stdin.ts";

const END: CommandEnd = {
  exitCode: 0,
  signal: undefined,
  timedOut: false,
  outOfMemory: false,
  durationMs: 5,
  sessionClosed: false,
  syncedVersion: 0,
  syncProblems: [],
};

const out = (text: string): CommandEvent => ({ kind: "stdout", data: Buffer.from(text) });
const err = (text: string): CommandEvent => ({ kind: "stderr", data: Buffer.from(text) });
const exit = (end: Partial<CommandEnd> = {}): CommandEvent => ({ kind: "exit", end: { ...END, ...end } });

/** A call that gives these events, and counts how far it was read. Aborting it throws the reason, as real ones do. */
class Call {
  given = 0;
  ended = false;
  readonly #events: Iterable<CommandEvent | Error>;

  constructor(events: Iterable<CommandEvent | Error>) {
    this.#events = events;
  }

  open = async function* (this: Call, signal: AbortSignal): AsyncGenerator<CommandEvent> {
    try {
      for (const event of this.#events) {
        await turn();
        signal.throwIfAborted();
        if (event instanceof Error) throw event;
        this.given += 1;
        yield event;
      }
      await new Promise((_, reject) => {
        const stop = () => reject(signal.reason);
        if (signal.aborted) stop();
        signal.addEventListener("abort", stop);
      });
    } finally {
      this.ended = true;
    }
  }.bind(this);

  execute(parts: Partial<ExecutionParts> = {}): Execution {
    return new Execution({ command: "the command", open: this.open, ...parts });
  }
}

const CHUNK = 64 * 1024;
/** So many pieces of 64 KiB. */
function* many(count: number, kind: "stdout" | "stderr" = "stdout"): Generator<CommandEvent> {
  for (let made = 0; made < count; made += 1) yield { kind, data: new Uint8Array(CHUNK).fill(made) };
}
const FULL = WAITING_BYTES / CHUNK;

/** Until nothing moves any more. */
async function settled(call: Call): Promise<void> {
  for (let before = -1; before !== call.given; ) {
    before = call.given;
    for (let turns = 0; turns < 20; turns += 1) await turn();
  }
}

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const data of stream) text += Buffer.from(data).toString();
  return text;
}

describe("wait", () => {
  test("gives what was printed and how it ended", async () => {
    const call = new Call([out("one "), err("bad"), out("two"), exit({ exitCode: 3 })]);
    expect(await call.execute().wait()).toEqual({
      ...END,
      exitCode: 3,
      command: "the command",
      success: false,
      stdout: "one two",
      stderr: "bad",
      stdoutBytes: new Uint8Array(Buffer.from("one two")),
      stderrBytes: new Uint8Array(Buffer.from("bad")),
      truncated: false,
    });
  });

  test("a character in two pieces is one, and what is no UTF-8 is replaced", async () => {
    const pieces = [Buffer.from([0xc3]), Buffer.from([0xbc, 0xff])];
    const events = pieces.map((data): CommandEvent => ({ kind: "stdout", data }));
    const { stdout, stdoutBytes } = await new Call([...events, exit()]).execute().wait();
    expect([stdout, [...stdoutBytes]]).toEqual(["ü\ufffd", [0xc3, 0xbc, 0xff]]);
  });

  test("collects what nobody reads up to 10 MiB of each output, and says that there was more", async () => {
    const call = new Call([...many(COLLECTED_BYTES / CHUNK), out("lost"), err("kept"), exit()]);
    const { stdoutBytes, stderr, truncated } = await call.execute().wait();
    expect([stdoutBytes.length, stderr, truncated]).toEqual([COLLECTED_BYTES, "kept", true]);
  });

  test("the same result however often it is asked for, also at the same time", async () => {
    const execution = new Call([out("x"), exit()]).execute();
    const [one, two] = await Promise.all([execution.wait(), execution.wait()]);
    expect(two).toBe(one);
    expect(await execution.wait()).toBe(one);
  });

  test("rejects with what the call failed with", async () => {
    const failure = new Error("the connection is gone");
    const execution = new Call([out("x"), failure]).execute();
    await expect(execution.wait()).rejects.toBe(failure);
    await expect(execution.wait()).rejects.toBe(failure);
  });

  test("a failure that nobody asks about disturbs nobody", async () => {
    const call = new Call([new Error("unheard")]);
    call.execute();
    await settled(call);
    expect(call.ended).toBe(true);
  });

  test("a command that writes byte by byte costs no more than its bytes", async () => {
    function* bytes(): Generator<CommandEvent> {
      for (let made = 0; made < 5000; made += 1) yield made % 2 === 0 ? out("o") : err("e");
      yield exit();
    }
    const { stdout, stderr } = await new Call(bytes()).execute().wait();
    expect([stdout, stderr]).toEqual(["o".repeat(2500), "e".repeat(2500)]);
  });
});

describe("back-pressure", () => {
  test("when nobody reads and nobody waits, the command stops after 1 MiB, and goes on with whoever comes", async () => {
    const call = new Call([...many(3 * FULL), exit()]);
    const execution = call.execute();
    await settled(call);
    expect(call.given).toBe(FULL);
    expect((await execution.wait()).stdoutBytes.length).toBe(3 * WAITING_BYTES);
  });

  test("a reader that does not read stops it; each piece that is read lets about one more through", async () => {
    const call = new Call([...many(3 * FULL), exit()]);
    const reader = call.execute().stdout.getReader();
    await settled(call);
    expect(call.given).toBe(FULL);
    for (let reads = 0; reads < FULL / 2; reads += 1) await reader.read();
    await settled(call);
    expect(call.given).toBeGreaterThan(FULL);
    expect(call.given).toBeLessThanOrEqual(FULL + FULL / 2 + 1);
  });

  test("so does a loop over the events", async () => {
    const call = new Call([...many(3 * FULL), exit()]);
    const events = call.execute()[Symbol.asyncIterator]();
    await events.next();
    await settled(call);
    expect(call.given).toBeLessThanOrEqual(FULL + 2);
    await events.return();
    expect(call.ended).toBe(true);
  });

  test("and a callback that takes its time", async () => {
    const heard: (() => void)[] = [];
    const call = new Call([out("a"), out("b"), exit()]);
    const execution = call.execute({ onStdout: () => new Promise((resolve) => heard.push(resolve)) });
    await settled(call);
    expect([call.given, heard.length]).toEqual([1, 1]);
    heard[0]?.();
    await settled(call);
    expect([call.given, heard.length]).toEqual([2, 2]);
    heard[1]?.();
    expect((await execution.wait()).stdout).toBe("ab");
  });

  test("a reader of one output is not held up by the other one, which nobody reads", async () => {
    const call = new Call([...many(3 * FULL, "stderr"), out("at last"), exit()]);
    const execution = call.execute();
    expect(await textOf(execution.stdout)).toBe("at last");
    const { stdout, stderrBytes, truncated } = await execution.wait();
    expect([stdout, stderrBytes.length, truncated]).toEqual(["", 3 * WAITING_BYTES, false]);
  });

  test("a stream that is cancelled holds nothing up, and its output is gone", async () => {
    const call = new Call([...many(3 * FULL), err("bad"), exit()]);
    const execution = call.execute();
    await execution.stdout.cancel();
    const { stdout, stderr, truncated } = await execution.wait();
    expect([stdout, stderr, truncated]).toEqual(["", "bad", false]);
  });
});

describe("readers", () => {
  test("streams have the output, and the result then has not", async () => {
    const execution = new Call([out("one "), err("bad"), out("two"), exit({ exitCode: 1 })]).execute();
    const waited = execution.wait();
    const [stdout, stderr, result] = await Promise.all([textOf(execution.stdout), textOf(execution.stderr), waited]);
    expect([stdout, stderr]).toEqual(["one two", "bad"]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "", stderr: "" });
  });

  test("a stream that is taken late has everything from the beginning", async () => {
    const call = new Call([out("early "), out("late"), exit()]);
    const execution = call.execute();
    await settled(call);
    expect(await textOf(execution.stdout)).toBe("early late");
    expect((await execution.wait()).stdout).toBe("");
  });

  test("a stream that is taken after something was lost is refused", async () => {
    const execution = new Call([...many(COLLECTED_BYTES / CHUNK + 1), exit()]).execute();
    await execution.wait();
    expect(() => execution.stdout).toThrow(`${CHUNK} bytes of stdout are lost already`);
  });

  test("the loop has both outputs in the order they came, also from before it began, then the exit", async () => {
    const call = new Call([out("1"), err("2"), out("3"), out("4"), err("5"), exit()]);
    const execution = call.execute();
    await settled(call);
    const events: string[] = [];
    for await (const event of execution) {
      events.push(event.kind === "exit" ? "exit" : `${event.kind} ${Buffer.from(event.data)}`);
    }
    expect(events).toEqual(["stdout 1", "stderr 2", "stdout 34", "stderr 5", "exit"]);
    expect(await execution.wait()).toMatchObject({ stdout: "", stderr: "", exitCode: 0 });
  });

  test("the loop has what no stream has", async () => {
    const execution = new Call([out("1"), err("2"), exit()]).execute();
    const stdout = textOf(execution.stdout);
    const kinds: string[] = [];
    for await (const { kind } of execution) kinds.push(kind);
    expect([await stdout, kinds]).toEqual(["1", ["stderr", "exit"]]);
  });

  test("leaving the loop ends the command", async () => {
    const call = new Call([out("1")]);
    const execution = call.execute();
    for await (const _ of execution) break;
    expect(call.ended).toBe(true);
    expect(await execution.wait()).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
  });

  test("each output has one reader", () => {
    const looped = new Call([exit()]).execute();
    looped[Symbol.asyncIterator]();
    expect(() => looped.stdout).toThrow("stdout has a reader already: a loop over the execution");
    const heard = new Call([exit()]).execute({ onStderr: () => {} });
    expect(() => heard.stderr).toThrow("stderr has a reader already: the callback it was started with");
    expect(heard.stdout).toBe(heard.stdout);
  });

  test("callbacks hear text, whole characters at a time, and the result has it too", async () => {
    const bytes = Buffer.from("grün");
    const events = [bytes.subarray(0, 3), bytes.subarray(3)].map((data): CommandEvent => ({ kind: "stdout", data }));
    const heard: string[] = [];
    const call = new Call([...events, err("bad"), { kind: "stdout", data: Buffer.from([0xc3]) }, exit()]);
    const execution = call.execute({
      onStdout: (text) => void heard.push(text),
      onStderr: async (text) => void heard.push(`! ${text}`),
    });
    expect(await execution.wait()).toMatchObject({ stdout: "grün\ufffd", stderr: "bad" });
    expect(heard).toEqual(["gr", "ün", "! bad", "\ufffd"]);
  });

  test("a callback that throws ends the command, and is what wait says", async () => {
    const call = new Call([out("x")]);
    const failure = new Error("cannot hear");
    const execution = call.execute({
      onStdout: () => {
        throw failure;
      },
    });
    await expect(execution.wait()).rejects.toBe(failure);
    expect(call.ended).toBe(true);
  });

  test("streams and loops end with the failure, after what there was before it", async () => {
    const failure = new Error("the connection is gone");
    const execution = new Call([out("before"), failure]).execute();
    const reader = execution.stdout.getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("before");
    await expect(reader.read()).rejects.toBe(failure);
    const looped = new Call([out("before"), failure]).execute()[Symbol.asyncIterator]();
    expect(await looped.next()).toMatchObject({ value: { kind: "stdout" } });
    await expect(looped.next()).rejects.toBe(failure);
  });
});

describe("kill and abort", () => {
  test("kill resolves when the call is over, and being killed is a result", async () => {
    const call = new Call([out("so far")]);
    const execution = call.execute();
    await settled(call);
    await execution.kill();
    expect(call.ended).toBe(true);
    expect(await execution.wait()).toMatchObject({
      stdout: "so far",
      exitCode: 137,
      signal: "SIGKILL",
      success: false,
    });
    expect(await textOf(execution.stdout)).toBe("so far");
  });

  test("kill also ends a command that waits for its reader, and one whose callback does not return", async () => {
    const full = new Call(many(3 * FULL));
    const stuck = full.execute();
    await settled(full);
    await stuck.kill();
    const deaf = new Call([out("x")]);
    const hearing = deaf.execute({ onStdout: () => new Promise(() => {}) });
    await settled(deaf);
    await hearing.kill();
    expect([full.ended, deaf.ended]).toEqual([true, true]);
  });

  test("after the end, kill and dispose change nothing", async () => {
    const execution = new Call([exit({ exitCode: 4 })]).execute();
    await execution.wait();
    await execution.kill();
    await execution[Symbol.asyncDispose]();
    expect((await execution.wait()).exitCode).toBe(4);
  });

  test("the signal's reason is what wait, streams and loops reject with", async () => {
    const abort = new AbortController();
    const call = new Call(many(3 * FULL));
    const execution = call.execute({ signal: abort.signal });
    const reader = execution.stderr.getReader();
    await settled(call);
    const reason = new Error("enough");
    abort.abort(reason);
    await expect(execution.wait()).rejects.toBe(reason);
    await expect(reader.read()).rejects.toBe(reason);
    expect(call.ended).toBe(true);
  });

  test("a signal that is aborted already starts nothing", async () => {
    const call = new Call([out("x"), exit()]);
    const reason = new Error("never mind");
    await expect(call.execute({ signal: AbortSignal.abort(reason) }).wait()).rejects.toBe(reason);
    expect(call.given).toBe(0);
  });
});

describe("input", () => {
  /** A command that prints what it reads, and ends when its input does. */
  function echo(feed: StdinFeed): ExecutionParts["open"] {
    return async function* () {
      for await (const data of feed) yield { kind: "stdout", data };
      yield exit();
    };
  }

  test("what is sent arrives in order, up to its end", async () => {
    const stdin = new StdinFeed();
    const execution = new Execution({ command: "cat", open: echo(stdin), stdin });
    await execution.sendStdin("one ");
    await execution.sendStdin(Buffer.from("two "));
    await Promise.all([execution.sendStdin("three "), execution.sendStdin("four")]);
    execution.endStdin();
    expect((await execution.wait()).stdout).toBe("one two three four");
  });

  test("a command that does not read makes the sender wait, and its end fails what was not read", async () => {
    const stdin = new StdinFeed();
    let endCommand = (): void => {};
    const ended = new Promise<void>((resolve) => {
      endCommand = resolve;
    });
    const open = async function* (): AsyncGenerator<CommandEvent> {
      await ended;
      yield exit();
    };
    const execution = new Execution({ command: "sleep", open, stdin });
    let isSent = false;
    const sending = execution.sendStdin("unread").finally(() => {
      isSent = true;
    });
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect(isSent).toBe(false);
    endCommand();
    await expect(sending).rejects.toMatchObject({ code: "COMMAND_FAILED" });
    await expect(execution.sendStdin("later")).rejects.toMatchObject({ code: "COMMAND_FAILED" });
  });

  test("nothing can be sent after the end, nor where the input was given", async () => {
    const stdin = new StdinFeed();
    const execution = new Execution({ command: "cat", open: echo(stdin), stdin });
    execution.endStdin();
    await expect(execution.sendStdin("x")).rejects.toThrow("nothing can be sent after the end of the input");
    const closed = new Call([exit()]).execute();
    await expect(closed.sendStdin("x")).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});
