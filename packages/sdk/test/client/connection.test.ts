import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { startScripted } from "../../../../test/support/scripted-server.ts";
import { SandboxClient } from "../../src/client/client.ts";
import { RemoteEngine } from "../../src/remote/engine.ts";
import { clientOf, rejection } from "./calls.ts";

const IMPATIENT = { pingIntervalMs: 100, pingTimeoutMs: 1_000, connectMs: 500 } as const;

/** Listens, and does with each connection what the test says. */
async function listener(onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    onConnection(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function impatient(url: string): SandboxClient {
  const engine = new RemoteEngine({ url }, IMPATIENT);
  onTestFinished(() => engine.close());
  return new SandboxClient({ engine, retries: 0 });
}

test("a peer that vanishes without a word is noticed while a stream waits", async () => {
  const server = await startScripted({
    sandboxes: {
      async *execStream(_request, { signal }) {
        yield { data: Buffer.from("line\n") };
        await once(signal, "abort");
      },
    },
  });
  // A cable that can be cut: both ends keep their connection, and nothing arrives any more.
  let cut = () => {};
  const port = await listener((socket) => {
    const onward = connect(Number(new URL(server.endpoint).port), "127.0.0.1").on("error", () => {});
    socket.pipe(onward).pipe(socket);
    cut = () => {
      socket.unpipe(onward).pause();
      onward.unpipe(socket).pause();
    };
    onTestFinished(() => void onward.destroy());
  });
  const client = impatient(`http://127.0.0.1:${port}`);
  const events = client.execStream("sb_1", "yes");
  expect(await events.next()).toMatchObject({ value: { kind: "stdout" } });
  cut();
  expect(await rejection(events.next())).toMatchObject({
    name: "ConnectionError",
    code: "CONNECTION_FAILED",
    retryable: true,
  });
});

test("a machine that never answers is not waited for without end", async () => {
  const port = await listener(() => {});
  const client = impatient(`https://127.0.0.1:${port}`);
  expect(await rejection(client.execStream("sb_1", "yes").next())).toMatchObject({
    name: "ConnectionError",
    message: `the connection to https://127.0.0.1:${port} was lost: no connection within 500 ms`,
  });
  const abort = new AbortController();
  const call = rejection(client.getSandbox("sb_1", { signal: abort.signal }));
  abort.abort();
  expect(await call).toBe(abort.signal.reason);
});

test("one signal for many calls at once is nothing to warn about", async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error) => warnings.push(warning);
  process.on("warning", keep);
  onTestFinished(() => void process.off("warning", keep));
  let waiting = 0;
  const { client, server } = await clientOf({
    sandboxes: {
      getSandbox: () => {
        waiting++;
        return new Promise<never>(() => {});
      },
    },
  });
  const abort = new AbortController();
  const calls = Array.from({ length: 50 }, () => rejection(client.getSandbox("sb_1", { signal: abort.signal })));
  await eventually(() => waiting === 50);
  abort.abort();
  for (const reason of await Promise.all(calls)) expect(reason).toBe(abort.signal.reason);
  await new Promise((resolve) => setImmediate(resolve));
  expect({ warnings, connections: server.connections }).toEqual({ warnings: [], connections: 1 });
});

test("the key is shown with every call", async () => {
  const { client, server } = await clientOf(
    { sandboxes: { destroySandbox: () => ({}), async *diffChanges() {} } },
    { apiKey: "af_key" },
  );
  await client.destroySandbox("sb_1");
  expect(await client.diffChanges("sb_1").next()).toEqual({ done: true, value: undefined });
  expect(server.authorizations).toEqual(["Bearer af_key", "Bearer af_key"]);
});
