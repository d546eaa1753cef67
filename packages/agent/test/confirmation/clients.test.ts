import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { eventually } from "../../../../test/support/eventually.ts";
import { ConfirmationBroker } from "../../src/confirmation/broker.ts";
import type { ReviewEvent } from "../../src/confirmation/client/pending-list.ts";
import { RemoteConfirmationService } from "../../src/confirmation/client/remote-service.ts";
import { ConfirmationReviewer } from "../../src/confirmation/client/reviewer.ts";
import { type ConfirmationDoorOptions, confirmationDoor } from "../../src/confirmation/door/door.ts";
import { isApproval, requestHash } from "../../src/confirmation/hash.ts";
import { requestText } from "../../src/confirmation/protocol.ts";
import { DoorHost, expiringIn, request } from "./support.ts";

const ALICE = { ownerId: "alice" };

interface Scene extends AsyncDisposable {
  readonly broker: ConfirmationBroker;
  readonly host: DoorHost;
  readonly endpoint: string;
}

async function scene(options: ConfirmationDoorOptions = {}, where: number | string = 0): Promise<Scene> {
  const broker = new ConfirmationBroker();
  const door = confirmationDoor(broker, options);
  const host = await DoorHost.serve(door, where);
  return {
    broker,
    host,
    endpoint: typeof where === "string" ? `unix:${where}` : host.endpoint,
    async [Symbol.asyncDispose]() {
      await door.close?.();
      broker.close();
      await host[Symbol.asyncDispose]();
    },
  };
}

const connectTo = (stage: { readonly endpoint: string }, apiKey = "alice-key"): Promise<ConfirmationReviewer> =>
  ConfirmationReviewer.connect({ endpoint: stage.endpoint, apiKey, name: "Alice" });

test("a service in one process asks, a reviewer in another answers", async () => {
  await using stage = await scene();
  await using reviewer = await connectTo(stage);
  const service = new RemoteConfirmationService({ endpoint: stage.endpoint, apiKey: "alice-second" });
  const [good, bad] = [request({ action: "good" }), request({ action: "bad" })];
  const answers = Promise.all([service.request(good), service.request(bad)]);
  const outcomes: unknown[] = [];
  for await (const pending of reviewer) {
    outcomes.push(await reviewer.answer(pending.id, pending.request.action === "good", "looked at"));
    if (outcomes.length === 2) break;
  }
  expect(outcomes).toEqual([{ accepted: true }, { accepted: true }]);
  const [approved, denied] = await answers;
  expect(approved).toEqual({
    decision: "approved",
    hash: requestHash(good),
    reviewer: "k-alice (Alice)",
    comment: "looked at",
  });
  expect(isApproval(approved, good)).toBe(true);
  expect(isApproval(approved, bad)).toBe(false);
  expect(denied.decision).toBe("denied");
  await eventually(() => stage.host.connections === 1);
});

test("two reviewers: the second is refused, both see the end", async () => {
  await using stage = await scene();
  await using first = await connectTo(stage);
  await using second = await connectTo(stage, "alice-second");
  const events: ReviewEvent[] = [];
  second.subscribe((event) => events.push(event));
  const asking = stage.broker.request(request(), ALICE);
  await eventually(() => first.pending.length === 1 && second.pending.length === 1);
  const { id } = first.pending[0]!;
  const outcomes = await Promise.all([first.answer(id, true), second.answer(id, false)]);
  expect(outcomes.map(({ accepted }) => accepted).toSorted()).toEqual([false, true]);
  expect(outcomes).toContainEqual({ accepted: false, reason: "already_answered" });
  const { decision } = await asking;
  expect(decision).toBe(outcomes[0]!.accepted ? "approved" : "denied");
  await eventually(() => events.length === 2);
  expect(events[1]).toMatchObject({ type: "resolved", id, resolution: { decision } });
  expect(await second.answer(id, true)).toEqual({ accepted: false, reason: "unknown" });
});

test("after a lost connection a reviewer sees what is pending, what is new, and what has ended", async () => {
  await using stage = await scene();
  await using reviewer = await connectTo(stage);
  const events: string[] = [];
  reviewer.subscribe((event) => {
    const what = event.type === "requested" ? event.pending.request.action : event.resolution?.decision;
    events.push(`${event.type} ${what}`);
  });
  const [stays] = ["stays", "goes"].map((action) => stage.broker.request(request({ action }), ALICE));
  await eventually(() => events.length === 2);
  stage.host.cutConnections();
  await eventually(() => reviewer.mayAnswer === undefined);
  const { id } = reviewer.pending[0]!;
  expect(await reviewer.answer(id, true)).toEqual({ accepted: false, reason: "disconnected" });
  const goes = stage.broker.pending(ALICE)[1]!;
  stage.broker.answer({ id: goes.id, hash: goes.hash, approve: false }, ALICE);
  const comes = stage.broker.request(request({ action: "comes" }), ALICE);

  await eventually(() => events.length === 4);
  expect(events).toEqual(["requested stays", "requested goes", "requested comes", "resolved undefined"]);
  expect(reviewer.pending.map((pending) => pending.request.action)).toEqual(["stays", "comes"]);
  for (const pending of reviewer.pending) {
    expect(await reviewer.answer(pending.id, true)).toEqual({ accepted: true });
  }
  expect([(await stays!).decision, (await comes).decision]).toEqual(["approved", "approved"]);
});

test("iteration gives each request once, also over connections, and ends with close", async () => {
  await using stage = await scene();
  await using reviewer = await connectTo(stage);
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { request: asked } of reviewer) seen.push(asked.action);
  })();
  void stage.broker.request(request({ action: "first" }), ALICE);
  await eventually(() => seen.length === 1);
  stage.host.cutConnections();
  await eventually(() => reviewer.mayAnswer === undefined);
  void stage.broker.request(request({ action: "second" }), ALICE);
  await eventually(() => seen.length === 2);
  await reviewer.close();
  await watching;
  expect(seen).toEqual(["first", "second"]);
  await eventually(() => stage.host.connections === 0);
});

test("closing ends the iteration, whatever is still pending", async () => {
  await using stage = await scene();
  for (const action of ["first", "second"]) void stage.broker.request(request({ action }), ALICE);
  await using reviewer = await connectTo(stage);
  const seen: string[] = [];
  for await (const { request: asked } of reviewer) {
    seen.push(asked.action);
    await reviewer.close();
  }
  expect(seen).toEqual(["first"]);
});

test("a comment that is too long is refused before it is sent", async () => {
  await using stage = await scene();
  void stage.broker.request(request(), ALICE);
  await using reviewer = await connectTo(stage);
  const { id } = reviewer.pending[0]!;
  await expect(reviewer.answer(id, true, "x".repeat(4097))).rejects.toThrow("at most 4096 characters");
  expect(await reviewer.answer(id, true, "x".repeat(4096))).toEqual({ accepted: true });
});

test("a reviewer with a wrong key is not connected; one whose key becomes wrong is told", async () => {
  await using stage = await scene();
  await expect(connectTo(stage, "guess")).rejects.toThrow("HTTP 401");
  await expect(ConfirmationReviewer.connect({ endpoint: "http://127.0.0.1:1" })).rejects.toThrow(/cannot reach/);
  const aborted = AbortSignal.abort(new Error("gone"));
  await expect(ConfirmationReviewer.connect({ endpoint: stage.endpoint, signal: aborted })).rejects.toThrow("gone");

  const first = await scene();
  await using reviewer = await connectTo(first);
  const { port } = first.host;
  await first[Symbol.asyncDispose]();
  // Somebody else's server has the port now, with a door elsewhere.
  const other = { ...confirmationDoor(stage.broker), prefix: "/elsewhere" };
  await using _host = await DoorHost.serve(other, port);
  const [next] = [reviewer[Symbol.asyncIterator]().next()];
  await expect(next).rejects.toThrow("HTTP 404");
});

test("a watcher's answer is refused", async () => {
  await using stage = await scene();
  await using watcher = await connectTo(stage, "alice-reads");
  expect(watcher.mayAnswer).toBe(false);
  void stage.broker.request(request(), ALICE);
  await eventually(() => watcher.pending.length === 1);
  expect(await watcher.answer(watcher.pending[0]!.id, true)).toEqual({ accepted: false, reason: "not_allowed" });
});

test("a service whose connection is lost asks the same again", async () => {
  await using stage = await scene();
  const asked = request();
  const asking = new RemoteConfirmationService({ endpoint: stage.endpoint, apiKey: "alice-key" }).request(asked);
  await eventually(() => stage.broker.pending(ALICE).length === 1);
  const before = stage.broker.pending(ALICE)[0]!;
  stage.host.cutConnections();
  await eventually(() => {
    const [now] = stage.broker.pending(ALICE);
    return now !== undefined && now.id !== before.id;
  });
  const again = stage.broker.pending(ALICE)[0]!;
  expect(again.hash).toBe(before.hash);
  expect(stage.broker.answer({ ...before, approve: true }, ALICE)).toEqual({ accepted: false, reason: "withdrawn" });
  stage.broker.answer({ id: again.id, hash: again.hash, approve: true }, ALICE);
  expect(isApproval(await asking, asked)).toBe(true);
});

test("a service denies when it is not let in, and times out when nobody is there or answers", async () => {
  await using stage = await scene();
  const ask = (endpoint: string, apiKey: string, ms: number) =>
    new RemoteConfirmationService({ endpoint, apiKey }).request(expiringIn(ms));
  expect(await ask(stage.endpoint, "guess", 60_000)).toMatchObject({
    decision: "denied",
    comment: "the server refuses the connection (HTTP 401)",
  });
  expect(await ask(stage.endpoint, "alice-reads", 60_000)).toMatchObject({
    decision: "denied",
    comment: "the server says: a read-only key may not ask",
  });
  expect((await ask("http://127.0.0.1:1", "alice-key", 300)).decision).toBe("timed_out");
  expect((await ask(stage.endpoint, "alice-key", 300)).decision).toBe("timed_out");
  await eventually(() => stage.host.connections === 0);
});

test("a service that asks no longer withdraws", async () => {
  await using stage = await scene();
  const controller = new AbortController();
  const service = new RemoteConfirmationService({ endpoint: stage.endpoint, apiKey: "alice-key" });
  const asking = service.request(request(), { signal: controller.signal });
  await eventually(() => stage.broker.pending(ALICE).length === 1);
  controller.abort(new Error("gone"));
  await expect(asking).rejects.toThrow("gone");
  await eventually(() => stage.broker.pending(ALICE).length === 0);
});

test("what is too large to be asked is denied", async () => {
  await using stage = await scene();
  const service = new RemoteConfirmationService({ endpoint: stage.endpoint, apiKey: "alice-key" });
  const answer = await service.request(request({ code: "x".repeat(3 * 1024 * 1024) }));
  expect(answer).toMatchObject({ decision: "denied", comment: "too large to be asked: at most 2097152 bytes" });
});

test.each(["http", "ws", "unix"])("an endpoint may be %s:", async (scheme) => {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-confirmation-"));
  try {
    await using stage = await scene({}, scheme === "unix" ? join(directory, "a:b socket") : 0);
    const endpoint = stage.endpoint.replace(/^http/, scheme === "ws" ? "ws" : "http");
    await using reviewer = await ConfirmationReviewer.connect({ endpoint, apiKey: "alice-key" });
    expect(reviewer.pending).toEqual([]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("an encrypted endpoint: its certificate has to be vouched for", async () => {
  const directory = await mkdtemp(join(tmpdir(), "agentfense-confirmation-"));
  const broker = new ConfirmationBroker();
  try {
    const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
    // biome-ignore format: a command line
    await promisify(execFile)("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", keyFile, "-out", certFile]);
    const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
    await using host = await DoorHost.serve(confirmationDoor(broker), 0, { cert, key });
    const endpoint = `wss://127.0.0.1:${host.port}`;
    await expect(ConfirmationReviewer.connect({ endpoint, apiKey: "alice-key" })).rejects.toThrow(/cannot reach/);
    const vouched = { endpoint, apiKey: "alice-key", tls: { ca: cert } };
    await using reviewer = await ConfirmationReviewer.connect(vouched);
    const asked = request();
    const asking = new RemoteConfirmationService(vouched).request(asked);
    await eventually(() => reviewer.pending.length === 1);
    await reviewer.answer(reviewer.pending[0]!.id, true);
    expect(isApproval(await asking, asked)).toBe(true);
  } finally {
    broker.close();
    await rm(directory, { recursive: true });
  }
});

/** A server that does what it likes. */
async function dishonestServer(onMessage: (socket: WebSocket, message: { type: string; ref: string }) => void) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  server.on("connection", (socket) => {
    socket.on("message", (data) => onMessage(socket, JSON.parse(data.toString())));
  });
  const { port } = server.address() as { port: number };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of server.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const WELCOME = JSON.stringify({ type: "welcome", mayAnswer: true, heartbeatMs: 60_000, maxRequestBytes: 1_000_000 });

test("an approval of something else is no approval", async () => {
  const hash = requestHash(request({ code: "harmless" }));
  await using server = await dishonestServer((socket, { type, ref }) => {
    if (type === "hello") socket.send(WELCOME);
    else socket.send(JSON.stringify({ type: "answer", ref, decision: "approved", hash }));
  });
  const answer = await new RemoteConfirmationService(server).request(request());
  expect(answer).toMatchObject({ decision: "denied", comment: "the answer is for something else than what was asked" });
});

test("a reviewer answers for what it was shown, not for what the server says that is", async () => {
  const shown = request({ code: "harmless" });
  const hash = requestHash(request({ code: "harmful" }));
  const pending = { id: "1", hash, requestedAt: new Date().toISOString(), request: requestText(shown) };
  const { promise: given, resolve } = Promise.withResolvers<object>();
  await using server = await dishonestServer((socket, message) => {
    if (message.type !== "hello") resolve(message);
    else {
      socket.send(WELCOME);
      socket.send(JSON.stringify({ type: "pending", requests: [pending], complete: true }));
    }
  });
  await using reviewer = await ConfirmationReviewer.connect(server);
  void reviewer.answer("1", true);
  expect(await given).toMatchObject({ type: "answer", id: "1", hash: requestHash(shown) });
});

test("what is not a message of the protocol ends the matter", async () => {
  await using server = await dishonestServer((socket) => socket.send('{"type":"answer","decision":"approved"}'));
  const answer = await new RemoteConfirmationService(server).request(request());
  expect(answer).toMatchObject({ decision: "denied", comment: expect.stringContaining("not a message") });
  await expect(ConfirmationReviewer.connect(server)).rejects.toThrow("not a message");
});

test("a server that falls silent is left", async () => {
  let connections = 0;
  await using server = await dishonestServer((socket, { type }) => {
    if (type !== "hello") return;
    connections += 1;
    socket.send(WELCOME.replace("60000", "20"));
    socket.send(JSON.stringify({ type: "pending", requests: [], complete: true }));
  });
  await using _reviewer = await ConfirmationReviewer.connect(server);
  await eventually(() => connections === 2);
});
