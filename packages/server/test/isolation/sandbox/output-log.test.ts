import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { OutputLog, type OutputPiece, OutputRoom } from "../../../src/isolation/sandbox/output-log.ts";

const MEBIBYTE = 1024 ** 2;

/** One that waits for no first reader. */
function makeLog(room = new OutputRoom(16 * MEBIBYTE), options = {}): OutputLog {
  return new OutputLog(["stdout", "stderr"], room, { firstReaderMs: 0, ...options });
}

async function rest(pieces: AsyncIterable<OutputPiece>): Promise<{ text: string; lost: number; bytes: number }> {
  let [text, lost, bytes] = ["", 0, 0];
  for await (const { data, lostBytes } of pieces) {
    if (bytes < 10_000) text += data.toString();
    lost += lostBytes;
    bytes += data.length;
  }
  return { text, lost, bytes };
}

describe("the log of a process's output", () => {
  test("gives both streams in the order in which they were printed, to everybody who comes", async () => {
    const log = makeLog();
    for (const [name, text] of [
      ["stdout", "a"],
      ["stdout", "b"],
      ["stderr", "c"],
      ["stdout", "d"],
    ] as const) {
      await log.push(name, Buffer.from(text));
    }
    log.end();
    for (let reader = 0; reader < 2; reader++) {
      expect(await rest(log.attach())).toEqual({ text: "abcd", lost: 0, bytes: 4 });
    }
  });

  test("who wants nothing that was kept gets what is added from then on, also to a block that is there", async () => {
    const log = makeLog();
    for (let i = 0; i < 3; i++) {
      await log.push("stdout", Buffer.alloc(100_000, "o"));
      await log.push("stderr", Buffer.from("old"));
    }
    const reading = rest(log.attach({ skipKept: true }));
    await log.push("stderr", Buffer.from("new"));
    await log.push("stdout", Buffer.from("er"));
    log.end();
    expect(await reading).toEqual({ text: "newer", lost: 0, bytes: 5 });
    expect((await rest(log.attach())).bytes).toBe(300_014);
  });

  test("a reader gets what is added to a block that it has read already", async () => {
    const log = makeLog();
    const reading = rest(log.attach());
    for (const text of ["a", "b", "c"]) {
      await log.push("stdout", Buffer.from(text));
      await new Promise((resolve) => setImmediate(resolve));
    }
    log.end();
    expect(await reading).toEqual({ text: "abc", lost: 0, bytes: 3 });
  });

  test("keeps the last of each stream, counts what it dropped, and is not to be outwitted by small pieces", async () => {
    const room = new OutputRoom(16 * MEBIBYTE);
    const log = makeLog(room);
    for (let i = 0; i < 20_000; i++) await log.push(i % 2 === 0 ? "stdout" : "stderr", Buffer.from("x"));
    expect(room.used).toBeLessThanOrEqual(2 * MEBIBYTE);
    log.end();
    const { lost, bytes } = await rest(log.attach());
    expect(lost).toBeGreaterThan(0);
    expect(lost + bytes).toBe(20_000);
    log.release();
    expect(room.used).toBe(0);
  });

  test("all logs of a sandbox keep within its room, and the longest loses first", async () => {
    const room = new OutputRoom(MEBIBYTE);
    const small = makeLog(room);
    await small.push("stdout", Buffer.alloc(1000, "s"));
    const logs = Array.from({ length: 5 }, () => makeLog(room));
    for (let i = 0; i < 20; i++) for (const log of logs) await log.push("stdout", Buffer.alloc(60_000));
    expect(room.used).toBeLessThanOrEqual(MEBIBYTE);
    small.end();
    expect(await rest(small.attach())).toMatchObject({ lost: 0, bytes: 1000 });
    for (const log of logs) {
      log.end();
      const { lost, bytes } = await rest(log.attach());
      expect(lost + bytes).toBe(20 * 60_000);
    }
  });

  test("what somebody attached has not read is not dropped: the process waits until it is", async () => {
    const log = makeLog();
    const reader = log.attach();
    let pushed = 0;
    const pushing = (async () => {
      for (; pushed < 100; pushed++) await log.push("stdout", Buffer.alloc(60_000));
      log.end();
    })();
    await eventually(() => pushed > 10);
    await new Promise((resolve) => setImmediate(resolve));
    expect(pushed).toBeLessThan(20);
    expect(await rest(reader)).toMatchObject({ lost: 0, bytes: 6_000_000 });
    await pushing;
  });

  test("a new process waits for its first reader, for a moment", async () => {
    const room = new OutputRoom(16 * MEBIBYTE);
    const log = new OutputLog(["stdout"], room, { firstReaderMs: 60_000 });
    const pushing = (async () => {
      for (let i = 0; i < 50; i++) await log.push("stdout", Buffer.alloc(60_000));
      log.end();
    })();
    await eventually(() => room.used > 900_000);
    expect(await rest(log.attach())).toMatchObject({ lost: 0, bytes: 3_000_000 });
    await pushing;
  });

  test("one who reads nothing is cut off, and neither the process nor other readers wait for it any more", async () => {
    const log = makeLog(undefined, { patienceMs: 500 });
    const idle = log.attach();
    await log.push("stdout", Buffer.from("first"));
    expect((await idle.next()).value).toMatchObject({ lostBytes: 0 });
    const other = rest(log.attach());
    for (let i = 0; i < 100; i++) await log.push("stdout", Buffer.alloc(60_000));
    log.end();
    expect(await other).toMatchObject({ lost: 0, bytes: 6_000_005 });
    await expect(idle.next()).rejects.toMatchObject({ code: "READER_TOO_SLOW" });
  });

  test("a reader waits for room that others hold, and gets everything when one of them reads or is cut off", async () => {
    const room = new OutputRoom(MEBIBYTE / 2);
    const held = makeLog(room, { patienceMs: 500 });
    const idle = held.attach();
    await held.push("stdout", Buffer.alloc(MEBIBYTE / 2 - 1000));
    held.end();
    const log = makeLog(room, { patienceMs: 400 });
    const reading = rest(log.attach());
    for (let i = 0; i < 20; i++) await log.push("stdout", Buffer.alloc(60_000));
    log.end();
    expect(await reading).toMatchObject({ lost: 0, bytes: 1_200_000 });
    await expect(idle.next()).rejects.toMatchObject({ code: "READER_TOO_SLOW" });
  });

  test("one that is forgotten while its process waits for a reader keeps nothing", async () => {
    const room = new OutputRoom(16 * MEBIBYTE);
    const log = makeLog(room);
    log.attach();
    const pushing = (async () => {
      for (let i = 0; i < 100; i++) await log.push("stdout", Buffer.alloc(60_000));
    })();
    await eventually(() => room.used > 900_000);
    log.release();
    await pushing;
    expect(room.used).toBe(0);
  });

  test("one who leaves holds nobody any more", async () => {
    const log = makeLog();
    const left = log.attach();
    const pushing = (async () => {
      for (let i = 0; i < 100; i++) await log.push("stdout", Buffer.alloc(60_000));
    })();
    left[Symbol.dispose]();
    await pushing;
  });
});
