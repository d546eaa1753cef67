import { expect, test } from "vitest";
import { messagesOf, PipeTransport } from "../../src/browser/chromium/transport.ts";

async function* chunks(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

/** A browser that says this and then ends. */
function browserThatSays(...texts: readonly string[]) {
  const written: string[] = [];
  const transport = new PipeTransport({
    messages: messagesOf(chunks(...texts), 1000),
    downloadDirectory: "/tmp",
    write: async (data) => void written.push(Buffer.from(data).toString()),
    async [Symbol.asyncDispose]() {},
  });
  const heard: object[] = [];
  transport.onmessage = (message) => void heard.push(message);
  const closed = new Promise<string | undefined>((resolve) => {
    transport.onclose = resolve;
  });
  return { transport, heard, closed, written };
}

test("messages are cut at NULs, wherever the pieces end", async () => {
  const messages = await Array.fromAsync(messagesOf(chunks("a", "b\0c\0\0d", "é".slice(0), "\0rest"), 100));
  expect(messages.map(String)).toEqual(["ab", "c", "", "dé"]);
});

test("a message without an end is given up", async () => {
  await expect(Array.fromAsync(messagesOf(chunks("x".repeat(600), "x".repeat(600)), 1000))).rejects.toThrow(
    /1000 bytes/,
  );
  const { closed } = browserThatSays("x".repeat(600), "x".repeat(600));
  expect(await closed).toContain("1000 bytes");
});

test("what a browser says is handed on until it ends", async () => {
  const { heard, closed } = browserThatSays('{"id":1}\0{"method":"Target.targetCreated"}\0');
  expect(await closed).toBe("the browser has ended");
  expect(heard).toEqual([{ id: 1 }, { method: "Target.targetCreated" }]);
});

test.each(["[1]", "1", "null", "{", "Segmentation fault"])("%s is no message, and the end", async (text) => {
  const { heard, closed } = browserThatSays(`{"id":1}\0${text}\0{"id":2}\0`);
  expect(await closed).toContain(`the browser said: ${text}`);
  expect(heard).toEqual([{ id: 1 }]);
});

test.each(["../../etc/passwd", "/etc/passwd", "a/b", "..", ""])("a download called %j is the end", async (guid) => {
  const message = JSON.stringify({ method: "Browser.downloadWillBegin", params: { guid } });
  const { heard, closed } = browserThatSays(`${message}\0`);
  expect(await closed).toContain("without a proper id");
  expect(heard).toEqual([]);
});

test("a listener that fails is the end too", async () => {
  const { transport, closed } = browserThatSays('{"id":1}\0');
  transport.onmessage = () => {
    throw new Error("cannot be");
  };
  expect(await closed).toContain("cannot be");
});

test("messages are sent in order, with a NUL behind each; whoever sends to nobody is told", async () => {
  const { transport, closed, written } = browserThatSays();
  transport.send({ id: 1 });
  transport.send({ id: 2 });
  await closed;
  const toldAgain = new Promise((resolve) => {
    transport.onclose = resolve;
  });
  transport.send({ id: 3 });
  expect(await toldAgain).toBe("the browser has ended");
  expect(written).not.toContain('{"id":3}\0');
});
