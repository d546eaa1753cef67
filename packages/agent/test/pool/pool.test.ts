import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { PoolError } from "../../src/errors.ts";
import { SandboxPool } from "../../src/pool/pool.ts";
import { settled } from "./manual-clock.ts";
import { type Piece, Workshop } from "./workshop.ts";

const failure = (code: PoolError["code"]) => expect.objectContaining({ name: "PoolError", code });

test("a session gets the same instance however often it asks, and one release ends it", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool();
  expect(pool.state("a")).toBe("IDLE");
  const first = await pool.acquire("a");
  expect([await pool.acquire("a"), pool.state("a")]).toEqual([first, "BUSY"]);
  await pool.release("a");
  expect(pool.state("a")).toBe("IDLE");
  await pool.release("a");
  expect(pool.metrics()).toMatchObject({ acquired: 1, released: 1, busy: 0 });
});

test("a session that asks while it is being served waits for the same instance", async () => {
  const workshop = new Workshop();
  const gate = workshop.close("create");
  await using pool = await workshop.pool();
  const [one, two] = [pool.acquire("a"), pool.acquire("a")];
  expect(pool.state("a")).toBe("ACQUIRING");
  gate.resolve();
  expect(await one).toBe(await two);
  expect(pool.metrics()).toMatchObject({ created: 1, acquired: 1 });
});

test("sessions that come at the same moment never share an instance, nor make more than the most", async () => {
  const workshop = new Workshop();
  const gate = workshop.close("create");
  await using pool = await workshop.pool({ max: 3 });
  const asked = ["a", "b", "c", "d", "e"].map((session) => pool.acquire(session));
  expect(pool.metrics()).toMatchObject({ alive: 3, creating: 3, waiting: 5 });
  gate.resolve();
  const first = await Promise.all(asked.slice(0, 3));
  expect(new Set(first).size).toBe(3);
  await Promise.all(["a", "b"].map((session) => pool.release(session)));
  const rest = await Promise.all(asked.slice(3));
  expect(new Set([...first, ...rest]).size).toBe(5);
  expect(workshop.peak).toBe(3);
});

test("who came first is served first, also before one who comes when an instance is free", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  await pool.acquire("first");
  const served: string[] = [];
  const asked = ["a", "b", "c"].map((session) => pool.acquire(session).then(() => served.push(session)));
  for (const session of ["first", "a", "b"]) {
    await pool.release(session);
    await settled();
  }
  await Promise.all(asked);
  expect(served).toEqual(["a", "b", "c"]);
});

test("without a way to reset it, an instance is replaced after its first session", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1 });
  const first = await pool.acquire("a");
  await pool.release("a");
  expect(workshop.alive.has(first)).toBe(false);
  expect(await pool.acquire("b")).not.toBe(first);
});

test("an instance that was reset is lent again; one that could not be is destroyed", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  const first = await pool.acquire("a");
  await pool.release("a");
  expect(await pool.acquire("b")).toBe(first);
  workshop.bad.add(first.number);
  await pool.release("b");
  expect(workshop.destroyed).toEqual([first.number]);
  expect(await pool.acquire("c")).not.toBe(first);
  expect(pool.metrics().failures).toEqual({ create: 0, reset: 1, check: 0, destroy: 0 });
});

test("nobody gets an instance while it is being reset", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  const first = await pool.acquire("a");
  const gate = workshop.close("reset");
  const released = pool.release("a");
  const second = pool.acquire("b");
  await settled();
  expect(pool.state("b")).toBe("ACQUIRING");
  gate.resolve();
  await released;
  expect(await second).toBe(first);
});

test("a reset that does not end is given up, and the one who waits gets another instance", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset, stepTimeoutMs: 500 });
  const first = await pool.acquire("a");
  const gate = workshop.close("reset");
  const released = pool.release("a");
  const second = pool.acquire("b");
  await workshop.clock.advance(500);
  await released;
  expect(await second).not.toBe(first);
  expect(workshop.alive.has(first)).toBe(false);
  gate.resolve();
});

test("a broken instance is never lent again", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  const first = await pool.acquire("a");
  await pool.release("a", { broken: true });
  expect([workshop.resets, workshop.destroyed]).toEqual([[], [first.number]]);
  const second = await pool.acquire("a");
  expect(await pool.markBroken("a", first)).toBe(false);
  expect(pool.state("a")).toBe("BUSY");
  expect(await pool.markBroken("a", second)).toBe(true);
  expect([pool.state("a"), workshop.alive.size]).toEqual(["IDLE", 0]);
  expect(await pool.markBroken("a")).toBe(false);
  expect(await pool.acquire("a")).not.toBe(second);
});

test("the minimum is made ahead and kept up, in the background", async () => {
  const workshop = new Workshop();
  const gate = workshop.close("create");
  await using pool = await workshop.pool({ min: 2, max: 4 });
  expect(pool.metrics()).toMatchObject({ creating: 2, idle: 0 });
  const warm = pool.warm();
  gate.resolve();
  await warm;
  expect(pool.metrics()).toMatchObject({ creating: 0, idle: 2 });
  await pool.acquire("a");
  await pool.markBroken("a");
  await pool.warm();
  expect(pool.metrics()).toMatchObject({ alive: 2, idle: 2, created: 3, destroyed: 1 });
});

test("idle instances beyond the minimum go when their time is over, the one used last as the last", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ min: 1, max: 3, reset: workshop.reset, idleMs: 1_000 });
  const [one, two, three] = await Promise.all(["a", "b", "c"].map((session) => pool.acquire(session)));
  await pool.release("a");
  await workshop.clock.advance(600);
  await pool.release("b");
  await pool.release("c");
  await workshop.clock.advance(500);
  expect(workshop.destroyed).toEqual([one?.number]);
  expect(await pool.acquire("d")).toBe(three);
  await pool.release("d");
  await workshop.clock.advance(5_000);
  expect(workshop.destroyed).toEqual([one?.number, two?.number]);
  expect(pool.metrics()).toMatchObject({ alive: 1, idle: 1 });
});

test("idle instances are checked, one after the other, and a bad one is replaced", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ min: 2, check: workshop.check, checkIntervalMs: 1_000 });
  await pool.warm();
  workshop.bad.add(1);
  const gate = workshop.close("check");
  await workshop.clock.advance(1_000);
  expect([workshop.checks, pool.metrics().idle]).toEqual([[1], 1]);
  expect((await pool.acquire("a")).number).toBe(2);
  gate.resolve();
  await settled();
  expect(workshop.destroyed).toEqual([1]);
  expect((await pool.acquire("b")).number).toBe(3);
  await workshop.clock.advance(5_000);
  expect(workshop.checks).toEqual([1]);
});

test("a check does not make an instance younger", async () => {
  const workshop = new Workshop();
  const options = { check: workshop.check, checkIntervalMs: 400, idleMs: 1_000 };
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset, ...options });
  await pool.acquire("a");
  await pool.release("a");
  await workshop.clock.advance(1_000);
  expect([workshop.checks, workshop.destroyed]).toEqual([[1, 1], [1]]);
});

test("who waited too long is told, and leaves nothing behind", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset, acquireTimeoutMs: 1_000 });
  await pool.acquire("a");
  const late = expect(pool.acquire("b")).rejects.toEqual(failure("ACQUIRE_TIMEOUT"));
  const patient = pool.acquire("c", { timeoutMs: 9_000 });
  await workshop.clock.advance(1_000);
  await late;
  expect(pool.state("b")).toBe("IDLE");
  await pool.release("a");
  expect((await patient).number).toBe(1);
  expect(pool.metrics()).toMatchObject({ timeouts: 1, waiting: 0, busy: 1 });
});

test("of two who wait for one session, the less patient one leaves alone", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  await pool.acquire("a");
  const hasty = expect(pool.acquire("b", { timeoutMs: 10 })).rejects.toEqual(failure("ACQUIRE_TIMEOUT"));
  const patient = pool.acquire("b", { timeoutMs: 1_000 });
  await workshop.clock.advance(10);
  await hasty;
  expect(pool.state("b")).toBe("ACQUIRING");
  await pool.release("a");
  expect((await patient).number).toBe(1);
});

test("an aborted wait throws the reason, and the next in the queue is served", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  await pool.acquire("a");
  const ending = new AbortController();
  const given = expect(pool.acquire("b", { signal: ending.signal })).rejects.toThrow("changed my mind");
  const next = pool.acquire("c");
  ending.abort(new Error("changed my mind"));
  await given;
  await expect(pool.acquire("d", { signal: ending.signal })).rejects.toThrow("changed my mind");
  await pool.release("a");
  expect((await next).number).toBe(1);
  expect([pool.state("b"), pool.state("d")]).toEqual(["IDLE", "IDLE"]);
});

test("a release at the very moment of the timeout loses neither the instance nor the one who waits", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  for (const order of ["release first", "timeout first"] as const) {
    await pool.acquire("a");
    const outcome = pool.acquire("b", { timeoutMs: 100 }).then(
      () => "served",
      (error: PoolError) => error.code,
    );
    const timeout = workshop.clock.advance(100);
    const [, , how] = await Promise.all(
      order === "release first"
        ? [pool.release("a"), timeout, outcome]
        : [timeout, timeout.then(() => pool.release("a")), outcome],
    );
    const expected = how === "served" ? { state: "BUSY", busy: 1, idle: 0 } : { state: "IDLE", busy: 0, idle: 1 };
    expect({ state: pool.state("b"), ...pool.metrics() }).toMatchObject({ ...expected, alive: 1, waiting: 0 });
    await pool.release("b");
  }
});

test("a session released while it waits leaves the queue", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  await pool.acquire("a");
  const waiting = expect(pool.acquire("b")).rejects.toEqual(failure("NOT_ACQUIRED"));
  await pool.release("b");
  await waiting;
  expect([pool.state("b"), pool.metrics().waiting]).toEqual(["IDLE", 0]);
});

test("after a failure another instance is made, each time after a longer pause", async () => {
  const workshop = new Workshop();
  workshop.createFailures.push(new Error("no room"), new Error("no room"));
  await using pool = await workshop.pool({ retryMs: 100 });
  const waiting = pool.acquire("a");
  await workshop.clock.advance(99);
  expect(pool.metrics()).toMatchObject({ failures: { create: 1 }, creating: 0, waiting: 1 });
  await workshop.clock.advance(1);
  expect(pool.metrics().failures.create).toBe(2);
  await workshop.clock.advance(199);
  expect(pool.metrics().created).toBe(0);
  await workshop.clock.advance(1);
  expect((await waiting).number).toBe(1);
});

test("when nothing can be made and nothing is there, all who wait are told why", async () => {
  const workshop = new Workshop();
  workshop.createFailures.push(...Array.from({ length: 3 }, () => new Error("no image")));
  await using pool = await workshop.pool({ max: 1, createAttempts: 3, retryMs: 10 });
  const told = Promise.all(
    ["a", "b"].map((session) =>
      expect(pool.acquire(session)).rejects.toEqual(
        expect.objectContaining({ code: "CREATE_FAILED", message: "no instance can be made: no image" }),
      ),
    ),
  );
  await workshop.clock.advance(100);
  await told;
  const later = pool.acquire("c");
  await workshop.clock.advance(5_000);
  expect((await later).number).toBe(1);
});

test("while another instance is in use, a failure to make one is no reason to turn anybody away", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 2, createAttempts: 1, reset: workshop.reset });
  const first = await pool.acquire("a");
  workshop.createFailures.push(...Array.from({ length: 20 }, () => new Error("no room")));
  const waiting = pool.acquire("b");
  await workshop.clock.advance(10_000);
  expect(pool.state("b")).toBe("ACQUIRING");
  await pool.release("a");
  expect(await waiting).toBe(first);
});

test("who waits for an instance that crashes gets another one", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  await pool.acquire("a");
  const waiting = pool.acquire("b");
  await pool.markBroken("a");
  expect((await waiting).number).toBe(2);
  expect(workshop.peak).toBe(1);
});

test("warming up fails when nothing can be made", async () => {
  const workshop = new Workshop();
  workshop.createFailures.push(...Array.from({ length: 9 }, () => new Error("no image")));
  await using pool = await workshop.pool({ min: 1, createAttempts: 2 });
  const warm = expect(pool.warm()).rejects.toEqual(failure("CREATE_FAILED"));
  await workshop.clock.advance(1_000);
  await warm;
  const ending = new AbortController();
  const given = expect(pool.warm({ signal: ending.signal })).rejects.toThrow("enough");
  ending.abort(new Error("enough"));
  await given;
});

test("what comes of a creation after its time is destroyed, and room is kept for it until then", async () => {
  const workshop = new Workshop();
  const made = Promise.withResolvers<Piece>();
  const usual = workshop.options();
  let calls = 0;
  const pool = new SandboxPool<Piece>({
    ...usual,
    max: 1,
    createTimeoutMs: 100,
    create: (signal) => {
      calls += 1;
      return calls === 1 ? made.promise : usual.create(signal);
    },
  });
  await pool.start();
  const waiting = pool.acquire("a");
  await workshop.clock.advance(1_000);
  expect(pool.metrics()).toMatchObject({ alive: 1, creating: 1 });
  const late = { number: 77 };
  workshop.alive.add(late);
  made.resolve(late);
  await workshop.clock.advance(1_000);
  expect((await waiting).number).toBe(1);
  expect(workshop.destroyed).toEqual([77]);
  expect(pool.metrics()).toMatchObject({ created: 2, destroyed: 1, failures: { create: 1 } });
  await pool.stop();
});

test("a creation that does not end is given up, and what it gives some day is destroyed", async () => {
  const workshop = new Workshop();
  const usual = workshop.options();
  const deaf: PromiseWithResolvers<Piece>[] = [];
  const pool = new SandboxPool<Piece>({
    ...usual,
    max: 1,
    createTimeoutMs: 100,
    stepTimeoutMs: 50,
    create: (signal) => {
      if (deaf.length === 2) return usual.create(signal);
      deaf.push(Promise.withResolvers());
      return deaf.at(-1)!.promise;
    },
  });
  await pool.start();
  const gone = expect(pool.acquire("a")).rejects.toEqual(failure("NOT_RUNNING"));
  const stopped = pool.stop();
  await workshop.clock.advance(50);
  await Promise.all([gone, stopped]);

  await pool.start();
  const waiting = pool.acquire("a");
  await workshop.clock.advance(300);
  expect((await waiting).number).toBe(1);
  for (const [at, late] of deaf.entries()) {
    const piece = { number: 70 + at };
    workshop.alive.add(piece);
    late.resolve(piece);
  }
  await settled();
  expect(workshop.destroyed).toEqual([70, 71]);
  await pool.stop();
  expect([workshop.alive.size, workshop.clock.timers]).toEqual([0, 0]);
});

test("an instance that is in the pool already is not taken for a new one", async () => {
  const workshop = new Workshop();
  const only = { number: 1 };
  workshop.alive.add(only);
  await using pool = await workshop.pool({ create: async () => only, createAttempts: 1, max: 2 });
  expect(await pool.acquire("a")).toBe(only);
  const second = expect(pool.acquire("b", { timeoutMs: 1_000 })).rejects.toEqual(failure("ACQUIRE_TIMEOUT"));
  await workshop.clock.advance(1_000);
  await second;
});

test("nothing is lent before the start and after the stop, and it can be started again", async () => {
  const workshop = new Workshop();
  const pool = new SandboxPool(workshop.options());
  await expect(pool.acquire("a")).rejects.toEqual(failure("NOT_RUNNING"));
  await pool.start();
  await pool.acquire("a");
  await pool.stop();
  await expect(pool.acquire("a")).rejects.toEqual(failure("NOT_RUNNING"));
  await pool.release("a");
  await pool.stop();
  await pool.start();
  expect((await pool.acquire("a")).number).toBe(2);
  await pool.stop();
  expect([workshop.alive.size, workshop.clock.timers]).toEqual([0, 0]);
});

test("stopping leaves nothing: neither idle, used, waiting, being made nor being reset", async () => {
  const workshop = new Workshop();
  const pool = await workshop.pool({ max: 4, reset: workshop.reset });
  await Promise.all(["idle", "used", "reset"].map((session) => pool.acquire(session)));
  await pool.release("idle");
  const resetting = workshop.close("reset");
  const released = pool.release("reset");
  await pool.acquire("other");
  workshop.close("create");
  const made = expect(pool.acquire("made")).rejects.toEqual(failure("NOT_RUNNING"));
  const waiting = expect(pool.acquire("waiting")).rejects.toEqual(failure("NOT_RUNNING"));
  const warm = pool.warm();
  await settled();
  const stopped = pool.stop();
  await expect(pool.acquire("new")).rejects.toEqual(failure("NOT_RUNNING"));
  await expect(pool.start()).rejects.toEqual(failure("NOT_RUNNING"));
  await Promise.all([made, waiting, warm]);
  resetting.resolve();
  await Promise.all([stopped, released]);
  expect([workshop.alive.size, workshop.making, workshop.clock.timers]).toEqual([0, 0, 0]);
  expect(pool.metrics()).toMatchObject({ alive: 0, waiting: 0, created: 3, destroyed: 3 });
  expect(["used", "other", "made"].map((session) => pool.state(session))).toEqual(["IDLE", "IDLE", "IDLE"]);
});

test("those in use get their grace, and no more", async () => {
  const workshop = new Workshop();
  const pool = await workshop.pool();
  await Promise.all(["quick", "slow"].map((session) => pool.acquire(session)));
  const stopped = pool.stop({ graceMs: 1_000 });
  await pool.release("quick");
  expect(workshop.destroyed).toEqual([1]);
  await workshop.clock.advance(999);
  expect(workshop.alive.size).toBe(1);
  await workshop.clock.advance(1);
  await stopped;
  expect(workshop.alive.size).toBe(0);

  await pool.start();
  await pool.acquire("a");
  const early = pool.stop({ graceMs: 1_000 });
  await pool.release("a");
  await early;
  expect(workshop.clock.timers).toBe(0);
});

test("what cannot be destroyed is told by the stop, after the others are gone", async () => {
  const workshop = new Workshop();
  const usual = workshop.options();
  const stuck = new Error("it clings to life");
  const pool = new SandboxPool<Piece>({
    ...usual,
    destroy: async (piece) => {
      if (piece.number === 1) throw stuck;
      await usual.destroy(piece);
    },
  });
  await pool.start();
  await Promise.all(["a", "b"].map((session) => pool.acquire(session)));
  const [first, second] = [pool.stop(), pool.stop()];
  await expect(first).rejects.toMatchObject({ errors: [stuck] });
  await expect(second).rejects.toMatchObject({ errors: [stuck] });
  await pool.stop();
  expect(workshop.destroyed).toEqual([2]);
  expect(pool.metrics()).toMatchObject({ alive: 0, failures: { destroy: 1 } });
});

test("everything that happens is told, and a listener that throws disturbs nothing", async () => {
  const workshop = new Workshop();
  const warned = Promise.withResolvers<Error>();
  process.once("warning", (warning) => warned.resolve(warning));
  const usual = workshop.options();
  const pool = new SandboxPool({
    ...usual,
    onEvent: (event) => {
      usual.onEvent?.(event);
      if (event.type === "created") throw new Error("not interested");
    },
  });
  await pool.start();
  await pool.acquire("a");
  await pool.release("a");
  await pool.stop();
  expect(workshop.events).toEqual([
    { type: "created", tookMs: 0 },
    { type: "acquired", sessionId: "a", waitedMs: 0 },
    { type: "released", sessionId: "a", broken: false },
    { type: "destroyed", why: "used" },
  ]);
  expect((await warned.promise).message).toBe("a listener threw: not interested");
});

test("how long was waited is told", async () => {
  const workshop = new Workshop();
  await using pool = await workshop.pool({ max: 1, reset: workshop.reset });
  await pool.acquire("a");
  const waiting = pool.acquire("b");
  await workshop.clock.advance(300);
  await pool.release("a");
  await waiting;
  expect(pool.metrics().waitMs).toEqual({ mean: 150, p95: 300, max: 300 });
});

test("options that make no sense are refused", async () => {
  const workshop = new Workshop();
  for (const options of [{ max: 0 }, { min: 3, max: 2 }, { min: -1 }, { idleMs: Number.NaN }, { createAttempts: 0 }]) {
    expect(() => new SandboxPool(workshop.options(options))).toThrow(/of a pool is .*; it must be/);
  }
  await using pool = await workshop.pool();
  await expect(pool.acquire("")).rejects.toThrow("a session needs an id");
  await expect(pool.acquire("a", { timeoutMs: Number.POSITIVE_INFINITY })).rejects.toThrow("timeoutMs of a pool");
  expect(pool.metrics().waiting).toBe(0);
});

test("an instance from a warm pool is there at once, whatever making, checking or clearing away another takes", async () => {
  const workshop = new Workshop();
  await using pool = new SandboxPool({ ...workshop.options({ min: 5 }), clock: undefined });
  await pool.start();
  await pool.warm();
  const never = Promise.withResolvers<void>();
  workshop.hold = { create: never, check: never, reset: never, destroy: never };
  for (const session of ["a", "b", "c", "d", "e"]) {
    let isThere = false;
    void pool.acquire(session).then(() => {
      isThere = true;
    });
    await turn(); // microtasks only: no timer, no process, no other thread
    expect([session, isThere]).toEqual([session, true]);
  }
  never.resolve();
});
