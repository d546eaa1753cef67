import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { ConfirmationBroker, type ConfirmationBrokerOptions } from "../../src/confirmation/broker.ts";
import { type ConfirmationDoorOptions, confirmationDoor } from "../../src/confirmation/door/door.ts";
import { isApproval, requestHash } from "../../src/confirmation/hash.ts";
import { requestText } from "../../src/confirmation/protocol.ts";
import { CALLERS, DoorHost, expiringIn, RawPeer, request } from "./support.ts";

interface Scene extends AsyncDisposable {
  readonly broker: ConfirmationBroker;
  readonly host: DoorHost;
  closeDoor(): Promise<void>;
}

async function scene(options: ConfirmationDoorOptions = {}, limits: ConfirmationBrokerOptions = {}): Promise<Scene> {
  const broker = new ConfirmationBroker(limits);
  const door = confirmationDoor(broker, options);
  const host = await DoorHost.serve(door);
  const closeDoor = async (): Promise<void> => await door.close?.();
  return {
    broker,
    host,
    closeDoor,
    async [Symbol.asyncDispose]() {
      await closeDoor();
      broker.close();
      await host[Symbol.asyncDispose]();
    },
  };
}

const ALICE = { ownerId: "alice" };

test.each([
  [true, "approved"],
  [false, "denied"],
])("a reviewer answers %j over a WebSocket: %s", async (approve, decision) => {
  await using stage = await scene();
  using reviewer = await RawPeer.reviewer(stage.host);
  expect(await reviewer.next("pending")).toEqual({ type: "pending", requests: [], complete: true });
  const asked = request();
  const asking = stage.broker.request(asked, ALICE);
  const { request: seen } = (await reviewer.next("requested")) as unknown as { request: Record<string, unknown> };
  const hash = requestHash(asked);
  expect(seen).toEqual({ id: seen.id, hash, requestedAt: seen.requestedAt, request: requestText(asked) });
  reviewer.send({ type: "answer", id: seen.id, hash, approve, comment: "seen" });
  expect(await reviewer.next("resolved")).toMatchObject({
    id: seen.id,
    decision,
    reviewer: "k-alice",
    comment: "seen",
  });
  expect(await reviewer.next("answer_accepted")).toEqual({ type: "answer_accepted", id: seen.id });
  const answer = await asking;
  expect(answer).toEqual({ decision, hash, reviewer: "k-alice", comment: "seen" });
  expect(isApproval(answer, asked)).toBe(approve);
});

test("two reviewers race: exactly one is accepted, both are told", async () => {
  await using stage = await scene();
  using first = await RawPeer.reviewer(stage.host);
  using second = await RawPeer.reviewer(stage.host, { key: "alice-second" });
  await Promise.all([first.next("pending"), second.next("pending")]);
  for (let round = 0; round < 20; round += 1) {
    const asking = stage.broker.request(request({ action: `round-${round}` }), ALICE);
    const { id, hash } = stage.broker.pending(ALICE)[0]!;
    const answers = [
      () => first.send({ type: "answer", id, hash, approve: true }),
      () => second.send({ type: "answer", id, hash, approve: false }),
    ];
    for (const answer of round % 2 === 0 ? answers : answers.toReversed()) answer();
    const outcomes: string[] = [];
    for (const peer of [first, second]) {
      await peer.next("requested");
      await peer.next("resolved");
      await eventually(() => peer.received.at(-1)?.type.startsWith("answer_") ?? false);
      const { type, reason } = await peer.next(peer.received.at(-1)!.type);
      outcomes.push(type === "answer_accepted" ? "accepted" : String(reason));
    }
    expect(outcomes.toSorted()).toEqual(["accepted", "already_answered"]);
    expect((await asking).decision).toBe(outcomes[0] === "accepted" ? "approved" : "denied");
  }
});

test("replays are refused: the same again, too late, a foreign id, another's, an old connection's", async () => {
  await using stage = await scene();
  using old = await RawPeer.reviewer(stage.host);
  await old.next("pending");
  const asking = stage.broker.request(request(), ALICE);
  const { id, hash } = stage.broker.pending(ALICE)[0]!;
  await old.next("requested");
  const answer = { type: "answer", id, hash, approve: true };
  using reviewer = await RawPeer.reviewer(stage.host);
  await reviewer.next("pending");
  reviewer.send(answer);
  await reviewer.next("resolved");
  await reviewer.next("answer_accepted");
  expect((await asking).decision).toBe("approved");
  reviewer.send(answer);
  expect(await reviewer.next("answer_refused")).toEqual({ type: "answer_refused", id, reason: "already_answered" });
  await old.next("resolved");
  old.send({ ...answer, approve: false });
  expect(await old.next("answer_refused")).toMatchObject({ reason: "already_answered" });

  // The same is asked again: an answer to the former does not fit it.
  const again = stage.broker.request(request(), ALICE);
  const next = stage.broker.pending(ALICE)[0]!;
  await reviewer.next("requested");
  reviewer.send(answer);
  expect(await reviewer.next("answer_refused")).toMatchObject({ reason: "already_answered" });
  reviewer.send({ ...answer, id: "AAAAAAAAAAAAAAAAAAAAAAAA" });
  expect(await reviewer.next("answer_refused")).toMatchObject({ reason: "unknown" });
  reviewer.send({ ...answer, id: next.id, hash: requestHash(request({ code: "other" })) });
  expect(await reviewer.next("answer_refused")).toMatchObject({ reason: "hash_mismatch" });
  reviewer.send({ ...answer, id: next.id, hash: next.hash, approve: false });
  await reviewer.next("resolved");
  await reviewer.next("answer_accepted");
  expect((await again).decision).toBe("denied");

  const late = stage.broker.request(expiringIn(100), ALICE);
  const expired = stage.broker.pending(ALICE)[0]!;
  await reviewer.next("requested");
  expect(await reviewer.next("resolved")).toMatchObject({ id: expired.id, decision: "timed_out" });
  reviewer.send({ ...answer, id: expired.id, hash: expired.hash });
  expect(await reviewer.next("answer_refused")).toMatchObject({ reason: "expired" });
  expect((await late).decision).toBe("timed_out");
});

test("who connects sees what is pending, in parts where it is much", async () => {
  await using stage = await scene();
  const code = "x".repeat(200_000);
  for (let number = 0; number < 5; number += 1) {
    void stage.broker.request(request({ code, action: `a${number}` }), ALICE);
  }
  void stage.broker.request(request(), { ownerId: "mallory" });
  using reviewer = await RawPeer.reviewer(stage.host);
  await eventually(() => reviewer.received.at(-1)?.complete === true);
  const parts = reviewer.received.slice(1) as unknown as { requests: { request: { action: string } }[] }[];
  expect(parts.length).toBeGreaterThan(1);
  expect(parts.flatMap(({ requests }) => requests.map((each) => each.request.action))).toEqual([
    "a0",
    "a1",
    "a2",
    "a3",
    "a4",
  ]);
});

test("a requester asks through the door and gets its answer, or withdraws", async () => {
  await using stage = await scene();
  using requester = await RawPeer.open(stage.host);
  requester.send({ type: "hello", role: "requester" });
  expect(await requester.next("welcome")).toMatchObject({ mayAnswer: false });
  using reviewer = await RawPeer.reviewer(stage.host, { key: "admin-key" });
  await reviewer.next("pending");
  const asked = request();
  requester.send({ type: "request", ref: "1", request: requestText(asked) });
  requester.send({ type: "request", ref: "2", request: requestText(asked) });
  const [first, second] = [await reviewer.next("requested"), await reviewer.next("requested")] as unknown as {
    request: { id: string; hash: string; ownerId: string };
  }[];
  expect(first!.request).toMatchObject({ ownerId: "alice", hash: requestHash(asked) });
  reviewer.send({ type: "answer", id: first!.request.id, hash: first!.request.hash, approve: true });
  expect(await requester.next("answer")).toEqual({
    type: "answer",
    ref: "1",
    decision: "approved",
    hash: requestHash(asked),
    reviewer: "k-admin",
  });
  await reviewer.next("resolved");
  await reviewer.next("answer_accepted");
  requester.send({ type: "withdraw", ref: "2" });
  expect(await reviewer.next("resolved")).toMatchObject({ id: second!.request.id, decision: "withdrawn" });
  // An answered or withdrawn name is free again.
  requester.send({ type: "request", ref: "1", request: requestText(asked) });
  const { request: third } = (await reviewer.next("requested")) as unknown as { request: { id: string } };
  requester.socket.terminate();
  expect(await reviewer.next("resolved")).toMatchObject({ id: third.id, decision: "withdrawn" });
});

test("owners see their own, administrators all", async () => {
  await using stage = await scene();
  using alice = await RawPeer.reviewer(stage.host);
  using mallory = await RawPeer.reviewer(stage.host, { key: "mallory-key" });
  using admin = await RawPeer.reviewer(stage.host, { key: "admin-key" });
  const asking = stage.broker.request(request(), ALICE);
  const { id, hash } = stage.broker.pending(ALICE)[0]!;
  mallory.send({ type: "answer", id, hash, approve: true });
  await mallory.next("pending");
  expect(await mallory.next("answer_refused")).toEqual({ type: "answer_refused", id, reason: "unknown" });
  expect(stage.broker.pending(ALICE)).toHaveLength(1);
  admin.send({ type: "answer", id, hash, approve: true });
  expect((await asking).reviewer).toBe("k-admin");
  await eventually(() => alice.received.some(({ type }) => type === "resolved"));
  expect(mallory.received.map(({ type }) => type)).toEqual(["welcome", "pending", "answer_refused"]);
});

test("a read-only key watches, and neither answers nor asks", async () => {
  await using stage = await scene();
  using watcher = await RawPeer.open(stage.host, { key: "alice-reads" });
  watcher.send({ type: "hello", role: "reviewer" });
  expect(await watcher.next("welcome")).toMatchObject({ mayAnswer: false });
  await watcher.next("pending");
  void stage.broker.request(request(), ALICE);
  await watcher.next("requested");
  const { id, hash } = stage.broker.pending(ALICE)[0]!;
  watcher.send({ type: "answer", id, hash, approve: true });
  expect(await watcher.next("answer_refused")).toEqual({ type: "answer_refused", id, reason: "not_allowed" });
  expect(stage.broker.pending(ALICE)).toHaveLength(1);

  using requester = await RawPeer.open(stage.host, { key: "alice-reads" });
  requester.send({ type: "hello", role: "requester" });
  await requester.next("error");
  expect(await requester.closed()).toBe(1008);
});

test.each([
  ["owner", ["answer_accepted"]],
  ["other-key", ["not_allowed", "answer_accepted"]],
  ["admin", ["not_allowed", "not_allowed", "answer_accepted"]],
] as const)(
  "with reviewers %j: the asking key, another of its owner, an administrator",
  async (reviewers, outcomes) => {
    await using stage = await scene({ reviewers });
    using requester = await RawPeer.open(stage.host);
    requester.send({ type: "hello", role: "requester" });
    requester.send({ type: "request", ref: "1", request: requestText(request()) });
    await eventually(() => stage.broker.pending(ALICE).length === 1);
    const { id, hash } = stage.broker.pending(ALICE)[0]!;
    const seen: string[] = [];
    for (const key of ["alice-key", "alice-second", "admin-key"].slice(0, outcomes.length)) {
      using reviewer = await RawPeer.reviewer(stage.host, { key });
      reviewer.send({ type: "answer", id, hash, approve: true });
      await eventually(() => reviewer.received.at(-1)?.type.startsWith("answer_") ?? false);
      const reply = reviewer.received.at(-1)!;
      seen.push(String(reply.reason ?? reply.type));
    }
    expect(seen).toEqual(outcomes);
  },
);

test("the key of a browser comes as a subprotocol, and is never sent back", async () => {
  await using stage = await scene();
  const key = Buffer.from("alice-key").toString("base64url");
  const protocols = ["agentfense.confirmations.v1", `agentfense.key.${key}`];
  using peer = await RawPeer.reviewer(stage.host, { headers: {}, protocols });
  expect(peer.socket.protocol).toBe("agentfense.confirmations.v1");
  await peer.next("pending");
  const wrong = [protocols[0]!, `agentfense.key.${Buffer.from("guess").toString("base64url")}`];
  await expect(RawPeer.open(stage.host, { headers: {}, protocols: wrong })).rejects.toThrow("HTTP 401");

  // As bytes, also when the key comes first.
  const socket = connect(stage.host.port, "127.0.0.1");
  socket.write(
    "GET /v1/confirmations HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
      `Sec-WebSocket-Protocol: ${protocols.toReversed().join(", ")}\r\n\r\n`,
  );
  const [head] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  expect(head.toString()).toMatch(/^HTTP\/1.1 101 /);
  expect(head.toString()).toContain("Sec-WebSocket-Protocol: agentfense.confirmations.v1\r\n");
  expect(head.toString()).not.toContain(key);
});

test("a connection without this protocol, or without an upgrade, is told what to do", async () => {
  await using stage = await scene();
  await expect(RawPeer.open(stage.host, { protocols: [] })).rejects.toThrow("HTTP 400");
  await expect(RawPeer.open(stage.host, { protocols: ["agentfense.confirmations.v2"] })).rejects.toThrow("HTTP 400");
  const response = await fetch(`${stage.host.endpoint}/v1/confirmations`);
  expect(response.status).toBe(426);
  expect(response.headers.get("upgrade")).toBe("websocket");
  expect(await response.text()).toContain("agentfense.confirmations.v1");
});

test.each([
  ["no JSON", "{"],
  ["no object", "[]"],
  ["no type", "{}"],
  ["an unknown type", '{"type":"approve_all"}'],
  ["a message too early", { type: "answer", id: "x", hash: "y", approve: true }],
  ["an unknown role", { type: "hello", role: "admin" }],
  ["a name with controls", { type: "hello", role: "reviewer", name: "a\u001b[2J" }],
  ["a field that is not known", { type: "hello", role: "reviewer", admin: true }],
  [
    "a second hello",
    [
      { type: "hello", role: "reviewer" },
      { type: "hello", role: "requester" },
    ],
  ],
  [
    "an answer of a truthy text",
    [
      { type: "hello", role: "reviewer" },
      { type: "answer", id: "x", hash: "y", approve: "true" },
    ],
  ],
  [
    "a reviewer's request",
    [
      { type: "hello", role: "reviewer" },
      { type: "request", ref: "1", request: requestText(request()) },
    ],
  ],
  [
    "a requester's answer",
    [
      { type: "hello", role: "requester" },
      { type: "answer", id: "x", hash: "y", approve: true },
    ],
  ],
  [
    "a ref in use",
    [
      { type: "hello", role: "requester" },
      { type: "request", ref: "1", request: requestText(request()) },
      { type: "request", ref: "1", request: requestText(request()) },
    ],
  ],
  [
    "an unknown level",
    [
      { type: "hello", role: "requester" },
      { type: "request", ref: "1", request: { ...requestText(request()), risk: { level: "NONE", detected: [] } } },
    ],
  ],
  [
    "no time",
    [
      { type: "hello", role: "requester" },
      { type: "request", ref: "1", request: { ...requestText(request()), expiresAt: "tomorrow" } },
    ],
  ],
])("%s ends the connection, and nothing is left of it", async (_, messages) => {
  await using stage = await scene();
  using peer = await RawPeer.open(stage.host);
  for (const message of [messages].flat()) peer.send(message);
  expect(await peer.closed()).toBe(1008);
  expect(peer.received.at(-1)?.type).toBe("error");
  await eventually(() => stage.host.connections === 0);
  expect(stage.broker.pending({ ownerId: undefined })).toEqual([]);
});

test("bytes instead of text end the connection", async () => {
  await using stage = await scene();
  using peer = await RawPeer.open(stage.host);
  peer.socket.send(Buffer.from('{"type":"hello","role":"reviewer"}'));
  expect(await peer.closed()).toBe(1008);
});

test("what is too large is refused: as a request, and as a message", async () => {
  await using stage = await scene({}, { maxRequestBytes: 10_000 });
  using peer = await RawPeer.open(stage.host);
  peer.send({ type: "hello", role: "requester" });
  expect(await peer.next("welcome")).toMatchObject({ maxRequestBytes: 10_000 });
  const text = requestText(request({ code: "x".repeat(10_000) }));
  peer.send({ type: "request", ref: "1", request: text });
  expect(await peer.next("answer")).toMatchObject({ decision: "denied" });
  peer.send({ type: "request", ref: "2", request: { ...text, code: "x".repeat(20_000) } });
  expect(await peer.closed()).toBe(1009);
});

test("who says nothing is not kept", async () => {
  await using stage = await scene({ helloMs: 50 });
  using peer = await RawPeer.open(stage.host);
  expect(await peer.closed()).toBe(1008);
});

test("who does not answer the heartbeat is dropped, who does stays", async () => {
  await using stage = await scene({ heartbeatMs: 400 });
  using dead = await RawPeer.reviewer(stage.host, { autoPong: false });
  using alive = await RawPeer.reviewer(stage.host);
  expect(await dead.closed()).toBe(1006);
  let pings = 0;
  alive.socket.on("ping", () => {
    pings += 1;
  });
  await eventually(() => pings >= 2);
  expect(alive.closeCode).toBeUndefined();
});

test("who does not read is dropped at a bound, and the others are served", async () => {
  await using stage = await scene({ maxBufferedBytes: 100_000 }, { maxPendingPerOwner: 10_000 });
  using stuck = await RawPeer.reviewer(stage.host);
  using reading = await RawPeer.reviewer(stage.host);
  await stuck.next("pending");
  await reading.next("pending");
  stuck.socket.pause();
  const code = "x".repeat(200_000);
  let sent = 0;
  while (stage.host.connections === 2 && sent < 1000) {
    const controller = new AbortController();
    const asking = stage.broker.request(request({ code }), { ...ALICE, signal: controller.signal });
    controller.abort();
    await asking.catch(() => {});
    sent += 1;
    // Those who read have read it.
    await eventually(() => reading.received.filter(({ type }) => type === "resolved").length === sent);
  }
  expect(stage.host.connections).toBe(1);
  expect(reading.closeCode).toBeUndefined();
  stuck.socket.resume();
  expect(await stuck.closed()).toBe(1006);
});

test("an owner has so many connections", async () => {
  await using stage = await scene({ maxConnectionsPerOwner: 1 });
  using _first = await RawPeer.open(stage.host);
  await expect(RawPeer.open(stage.host)).rejects.toThrow("HTTP 429");
  using _other = await RawPeer.open(stage.host, { key: "mallory-key" });
});

test("a door that closes says goodbye, also to those who do not answer, and lets nobody in", async () => {
  await using stage = await scene();
  using polite = await RawPeer.reviewer(stage.host);
  using stuck = await RawPeer.reviewer(stage.host);
  await stuck.next("pending");
  stuck.socket.pause();
  using requester = await RawPeer.open(stage.host);
  requester.send({ type: "hello", role: "requester" });
  requester.send({ type: "request", ref: "1", request: requestText(request()) });
  await eventually(() => stage.broker.pending(ALICE).length === 1);
  const own = stage.broker.request(request(), ALICE);
  await stage.closeDoor();
  expect(await polite.closed()).toBe(1001);
  expect(await requester.closed()).toBe(1001);
  expect(stage.broker.pending(ALICE)).toHaveLength(1);
  await expect(RawPeer.open(stage.host)).rejects.toThrow("HTTP 503");
  stage.broker.close();
  expect((await own).decision).toBe("denied");
});

test("a name is told with the key that proves who it was", async () => {
  await using stage = await scene();
  using peer = await RawPeer.open(stage.host, { key: "alice-second" });
  peer.send({ type: "hello", role: "reviewer", name: "the boss" });
  const asking = stage.broker.request(request(), ALICE);
  const { id, hash } = stage.broker.pending(ALICE)[0]!;
  peer.send({ type: "answer", id, hash, approve: true });
  expect((await asking).reviewer).toBe(`${CALLERS["alice-second"].keyId} (the boss)`);
});
