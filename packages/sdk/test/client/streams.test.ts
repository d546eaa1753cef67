import { once } from "node:events";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { SandboxClient } from "../../src/client/client.ts";
import { clientOf, rejection } from "./calls.ts";

/** A server whose command prints one line and then nothing more, and that knows when nobody listens any more. */
function endlessCommand() {
  const ended = new AbortController();
  return {
    ended: ended.signal,
    async *execStream(_request: unknown, { signal }: { readonly signal: AbortSignal }) {
      yield { data: Buffer.from("line\n") };
      signal.addEventListener("abort", () => ended.abort());
      await once(signal, "abort");
    },
  };
}

const LINE = { kind: "stdout", data: new Uint8Array(Buffer.from("line\n")) };

describe("a stream that is left", () => {
  test("by its loop, ends on the server", async () => {
    const { ended, execStream } = endlessCommand();
    const { client } = await clientOf({ sandboxes: { execStream } });
    for await (const event of client.execStream("sb_1", "yes")) {
      expect(event).toEqual(LINE);
      break;
    }
    await eventually(() => ended.aborted);
  });

  test("while the next item is waited for, ends at once and quietly", async () => {
    const { ended, execStream } = endlessCommand();
    const { client } = await clientOf({ sandboxes: { execStream } });
    const events = client.execStream("sb_1", "yes");
    expect(await events.next()).toEqual({ done: false, value: LINE });
    const next = events.next();
    expect(await events.return()).toEqual({ done: true, value: undefined });
    expect(await rejectedOrDone(next)).toBe("done");
    await eventually(() => ended.aborted);
  });

  test("by a signal, throws the signal's reason", async () => {
    const { ended, execStream } = endlessCommand();
    const { client } = await clientOf({ sandboxes: { execStream } });
    const abort = new AbortController();
    const events = client.execStream("sb_1", "yes", { signal: abort.signal });
    await events.next();
    const next = rejection(events.next());
    abort.abort();
    expect(await next).toBe(abort.signal.reason);
    expect(abort.signal.reason).toMatchObject({ name: "AbortError" });
    await eventually(() => ended.aborted);
  });

  test("by nobody, when the client is closed", async () => {
    const { execStream } = endlessCommand();
    const { client } = await clientOf({ sandboxes: { execStream } });
    const events = client.execStream("sb_1", "yes");
    await events.next();
    const next = rejection(events.next());
    await client.close();
    expect(await next).toMatchObject({ name: "ConnectionError", message: "the client is closed" });
    expect(await rejection(client.getSandbox("sb_1"))).toMatchObject({ message: "the client is closed" });
  });
});

async function rejectedOrDone(next: Promise<IteratorResult<unknown>>): Promise<string> {
  return await next.then(
    ({ done }) => (done === true ? "done" : "an item"),
    (error: unknown) => String(error),
  );
}

describe("a stream that the server ends", () => {
  test("without saying how the command ended is a lost connection", async () => {
    const { client } = await clientOf({
      sandboxes: {
        async *execStream() {
          yield { data: Buffer.from("line\n") };
        },
      },
    });
    const events = client.execStream("sb_1", ["printf", "a b"]);
    await events.next();
    expect(await rejection(events.next())).toMatchObject({
      name: "ConnectionError",
      message: "the server did not say how the command ended: printf 'a b'",
    });
  });

  test("by cutting the connection is one too, and the next call connects again", async () => {
    const { execStream } = endlessCommand();
    const getSandbox = () => ({ id: "sb_1", status: 2, runtime: 1, network: 1, sync: 1 });
    const { client, server } = await clientOf({ sandboxes: { execStream, getSandbox } });
    const events = client.execStream("sb_1", "yes");
    await events.next();
    const next = rejection(events.next());
    server.cut();
    expect(await next).toMatchObject({ name: "ConnectionError", code: "CONNECTION_FAILED", retryable: true });
    expect(await client.getSandbox("sb_1")).toMatchObject({ id: "sb_1", status: "running" });
    expect(server.connections).toBe(2);
  });
});

describe("input while a command runs", () => {
  test("goes in as it comes, and its end is told", async () => {
    const inputs: unknown[] = [];
    const { client } = await clientOf({
      sandboxes: {
        async *execInteractive(requests) {
          for await (const { input } of requests) {
            if (input.case === "start") inputs.push(["start", input.value.sandboxId, input.value.argv]);
            else inputs.push([input.case, input.case === "stdin" ? Buffer.from(input.value).toString() : input.value]);
            if (input.case === "stdin") yield { data: input.value };
          }
          yield { exitCode: 0 };
        },
      },
    });
    const stdin = (async function* () {
      yield Buffer.from("one");
      yield Buffer.from("two");
    })();
    const seen: string[] = [];
    for await (const event of client.execInteractive("sb_1", ["cat"], { stdin })) {
      seen.push(event.kind === "exit" ? `exit ${event.end.exitCode}` : Buffer.from(event.data).toString());
    }
    expect(seen).toEqual(["one", "two", "exit 0"]);
    expect(inputs).toEqual([
      ["start", "sb_1", ["cat"]],
      ["stdin", "one"],
      ["stdin", "two"],
      ["end", true],
    ]);
  });

  test("that is still waited for is let go when the command ends", async () => {
    const { client } = await clientOf({
      sandboxes: {
        async *execInteractive(requests) {
          for await (const _start of requests) break;
          yield { exitCode: 3 };
        },
      },
    });
    let released = false;
    const stdin: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        async return() {
          released = true;
          return { done: true, value: undefined };
        },
      }),
    };
    const events = client.execInteractive("sb_1", "true", { stdin });
    expect(await events.next()).toMatchObject({ value: { kind: "exit", end: { exitCode: 3 } } });
    expect(await events.next()).toEqual({ done: true, value: undefined });
    await eventually(() => released);
  });
});

test("a call without an answer fails when the time is up, and says so", async () => {
  const getSandbox = () => new Promise<never>(() => {});
  const { client, server } = await clientOf({ sandboxes: { getSandbox } }, { requestTimeoutMs: 200 });
  expect(await rejection(client.getSandbox("sb_1"))).toMatchObject({
    name: "ConnectionError",
    code: "CONNECTION_FAILED",
    message: `no answer from ${server.endpoint} within 200 ms`,
  });
});

test("an abort ends a call that waits, and one that has not begun", async () => {
  let asked = 0;
  const getSandbox = () => {
    asked++;
    return new Promise<never>(() => {});
  };
  const { client } = await clientOf({ sandboxes: { getSandbox } });
  const abort = new AbortController();
  const call = rejection(client.getSandbox("sb_1", { signal: abort.signal }));
  await eventually(() => asked === 1);
  const reason = { why: "enough" };
  abort.abort(reason);
  expect(await call).toBe(reason);
  expect(await rejection(client.getSandbox("sb_1", { signal: abort.signal }))).toBe(reason);
  expect(asked).toBe(1);
});

test("an engine that is handed in is used, and left open", async () => {
  let disposed = false;
  const transport = createRouterTransport(({ service }) =>
    service(SandboxService, {
      destroySandbox: () => ({}),
      startSandbox: () => {
        throw new ConnectError("no", Code.Unimplemented);
      },
    }),
  );
  const engine = {
    name: "mine",
    transport,
    async [Symbol.asyncDispose]() {
      disposed = true;
    },
  };
  const client = new SandboxClient({ engine });
  expect(client.name).toBe("mine");
  await client.destroySandbox("sb_1");
  expect(await rejection(client.startSandbox("sb_1"))).toMatchObject({ name: "SandboxError", code: "UNKNOWN" });
  await client.close();
  expect(disposed).toBe(false);
});
