import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { type BrokerEvent, ConfirmationBroker } from "../../src/confirmation/broker.ts";
import { isApproval, requestHash } from "../../src/confirmation/hash.ts";
import { WebSocketConfirmationService } from "../../src/confirmation/websocket-service.ts";
import { expiringIn, request } from "./support.ts";

const everybody = { ownerId: undefined };
const alice = { ownerId: "alice", name: "Alice" };
const mallory = { ownerId: "mallory", name: "Mallory" };

function watched(broker: ConfirmationBroker, viewer: { readonly ownerId: string | undefined }): BrokerEvent[] {
  const events: BrokerEvent[] = [];
  broker.watch(viewer, (event) => events.push(event));
  return events;
}

test("the first answer counts, and all who watch are told", async () => {
  using broker = new ConfirmationBroker();
  const [events, others, all] = [watched(broker, alice), watched(broker, mallory), watched(broker, everybody)];
  const asked = request();
  const asking = new WebSocketConfirmationService(broker, { ownerId: "alice" }).request(asked);
  const [pending] = broker.pending(alice);
  const { id, hash } = pending!;
  expect(pending).toMatchObject({ hash: requestHash(asked), ownerId: "alice", request: asked });
  expect(id).toMatch(/^[\w-]{24}$/);

  expect(broker.answer({ id, hash, approve: true, comment: "go" }, alice)).toEqual({ accepted: true });
  expect(broker.answer({ id, hash, approve: false }, alice)).toEqual({ accepted: false, reason: "already_answered" });
  expect(broker.answer({ id, hash, approve: true }, alice)).toEqual({ accepted: false, reason: "already_answered" });

  const answer = await asking;
  expect(answer).toEqual({ decision: "approved", hash, reviewer: "Alice", comment: "go" });
  expect(isApproval(answer, asked)).toBe(true);
  expect(events).toEqual([
    { type: "requested", pending },
    { type: "resolved", id, resolution: { decision: "approved", reviewer: "Alice", comment: "go" } },
  ]);
  expect(all).toEqual(events);
  expect(others).toEqual([]);
  expect(broker.pending(everybody)).toEqual([]);
});

test("what is another owner's is as unknown as what never was, before and after", async () => {
  using broker = new ConfirmationBroker();
  const asking = broker.request(request(), { ownerId: "alice" });
  const { id, hash } = broker.pending(alice)[0]!;
  expect(broker.pending(mallory)).toEqual([]);
  expect(broker.find(mallory, id)).toBeUndefined();
  expect(broker.answer({ id, hash, approve: true }, mallory)).toEqual({ accepted: false, reason: "unknown" });
  expect(broker.answer({ id: "other", hash, approve: true }, alice)).toEqual({ accepted: false, reason: "unknown" });
  broker.answer({ id, hash, approve: false }, alice);
  expect(broker.answer({ id, hash, approve: true }, mallory)).toEqual({ accepted: false, reason: "unknown" });
  expect((await asking).decision).toBe("denied");
});

test("what nobody owns is seen by who sees everything", async () => {
  using broker = new ConfirmationBroker();
  const asking = new WebSocketConfirmationService(broker).request(request());
  expect(broker.pending(alice)).toEqual([]);
  const { id, hash } = broker.pending(everybody)[0]!;
  broker.answer({ id, hash, approve: true }, everybody);
  expect((await asking).decision).toBe("approved");
});

test("an answer for something else than what is asked is refused, and the question stays", async () => {
  using broker = new ConfirmationBroker();
  const asking = broker.request(request(), { ownerId: "alice" });
  const { id, hash } = broker.pending(alice)[0]!;
  const other = requestHash(request({ code: "ls" }));
  for (const wrong of [other, "", hash.slice(1), `${hash} `]) {
    expect(broker.answer({ id, hash: wrong, approve: true }, alice)).toEqual({
      accepted: false,
      reason: "hash_mismatch",
    });
  }
  expect(broker.pending(alice)).toHaveLength(1);
  broker.answer({ id, hash, approve: true }, alice);
  expect((await asking).decision).toBe("approved");
});

test("what is shown cannot be changed by who asked", async () => {
  using broker = new ConfirmationBroker();
  const asked = { ...request(), expiresAt: new Date(Date.now() + 60_000) };
  const asking = broker.request(asked, { ownerId: "alice" });
  asked.code = "rm -rf /";
  asked.expiresAt.setTime(Date.now() + 1e9);
  const { id, hash, request: shown } = broker.pending(alice)[0]!;
  expect(shown.code).toBe(request().code);
  expect(requestHash(shown)).toBe(hash);
  broker.answer({ id, hash, approve: true }, alice);
  expect(isApproval(await asking, asked)).toBe(false);
});

test("too late: the request is gone, and an answer is refused", async () => {
  using broker = new ConfirmationBroker();
  const events = watched(broker, alice);
  const asking = broker.request(expiringIn(50), { ownerId: "alice" });
  const { id, hash } = broker.pending(alice)[0]!;
  expect(await asking).toEqual({ decision: "timed_out", hash });
  expect(broker.pending(alice)).toEqual([]);
  expect(events.at(-1)).toEqual({ type: "resolved", id, resolution: { decision: "timed_out" } });
  expect(broker.answer({ id, hash, approve: true }, alice)).toEqual({ accepted: false, reason: "expired" });
  expect((await broker.request(expiringIn(-1), { ownerId: "alice" })).decision).toBe("timed_out");
  expect(events).toHaveLength(2);
});

test("the clock decides about an answer, not the timer", async () => {
  let now = 1_000_000;
  using broker = new ConfirmationBroker({ now: () => now });
  const asking = broker.request(request({ expiresAt: new Date(now + 60_000) }), { ownerId: "alice" });
  const { id, hash } = broker.pending(alice)[0]!;
  now += 60_000;
  expect(broker.answer({ id, hash, approve: true }, alice)).toEqual({ accepted: false, reason: "expired" });
  expect((await asking).decision).toBe("timed_out");
});

test("who asks may withdraw; nothing is left on his signal", async () => {
  using broker = new ConfirmationBroker();
  const events = watched(broker, alice);
  const controller = new AbortController();
  const asking = broker.request(request(), { ownerId: "alice", signal: controller.signal });
  const { id, hash } = broker.pending(alice)[0]!;
  controller.abort(new Error("gone"));
  await expect(asking).rejects.toThrow("gone");
  expect(broker.answer({ id, hash, approve: true }, alice)).toEqual({ accepted: false, reason: "withdrawn" });
  expect(events.at(-1)).toEqual({ type: "resolved", id, resolution: { decision: "withdrawn" } });
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  await expect(broker.request(request(), { signal: controller.signal })).rejects.toThrow("gone");
  expect(events).toHaveLength(2);
});

test("an owner has so many requests, and takes none of another's", async () => {
  using broker = new ConfirmationBroker({ maxPendingPerOwner: 3 });
  const hold = (ownerId: string): void => void broker.request(request(), { ownerId });
  for (let number = 0; number < 3; number += 1) hold("alice");
  expect(await broker.request(request(), { ownerId: "alice" })).toMatchObject({
    decision: "denied",
    comment: "3 requests are waiting for an answer already",
  });
  hold("mallory");
  expect(broker.pending(mallory)).toHaveLength(1);
  const { id, hash } = broker.pending(alice)[0]!;
  broker.answer({ id, hash, approve: false }, alice);
  hold("alice");
  expect(broker.pending(alice)).toHaveLength(3);
});

test("a request has so many bytes as it is sent, and so have all of an owner", async () => {
  using broker = new ConfirmationBroker({ maxRequestBytes: 3000, maxBytesPerOwner: 5000 });
  const ask = (code: string, ownerId: string) => broker.request(request({ code }), { ownerId });
  // A NUL takes six bytes as JSON.
  expect((await ask("\0".repeat(600), "alice")).comment).toMatch(/^too large to be asked: \d+ bytes, at most 3000$/);
  void ask("x".repeat(2000), "alice");
  void ask("x".repeat(2000), "alice");
  expect((await ask("x".repeat(2000), "alice")).comment).toBe("too much is waiting for an answer already");
  expect(broker.pending(alice)).toHaveLength(2);
});

test("all owners together have so many bytes", async () => {
  const size = JSON.stringify(request()).length;
  using broker = new ConfirmationBroker({ maxBytes: size * 2 });
  void broker.request(request(), { ownerId: "alice" });
  void broker.request(request(), { ownerId: "bob" });
  expect((await broker.request(request(), { ownerId: "mallory" })).decision).toBe("denied");
});

test("a closed broker denies what waits and what comes", async () => {
  const broker = new ConfirmationBroker();
  const waiting = broker.request(request());
  broker.close();
  expect((await waiting).decision).toBe("denied");
  expect((await broker.request(request())).decision).toBe("denied");
});
