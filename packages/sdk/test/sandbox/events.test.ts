import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ConnectionError, type SandboxClient, SandboxNotFoundError } from "../../src/index.ts";
import type { AuditEvent } from "../../src/model/records.ts";
import type { WatchEventsOptions } from "../../src/model/requests.ts";
import { followEvents } from "../../src/sandbox/events.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const lost = () => new ConnectionError("lost", { code: "CONNECTION_FAILED", retryable: true });

function event(sequence: number, type = "command_executed"): AuditEvent {
  const ids = { ownerId: "", keyId: "", sandboxId: "sb_1", codebaseId: "", sessionId: "" };
  return { sequence, time: new Date(0), type, level: "info", ...ids, data: {}, hash: "" };
}

/** A client whose watches each give these events and then fail, or end when there is no failure. */
function clientOf(...watches: readonly { readonly events?: readonly AuditEvent[]; readonly error?: Error }[]) {
  const asked: (number | undefined)[] = [];
  const watchEvents = async function* ({ afterSequence }: WatchEventsOptions = {}): AsyncGenerator<AuditEvent> {
    const { events = [], error } = watches[Math.min(asked.push(afterSequence), watches.length) - 1] ?? {};
    yield* events;
    if (error !== undefined) throw error;
  };
  return { asked, client: { watchEvents } as unknown as SandboxClient };
}

/** Reads to the end while the clock runs as fast as it can. */
async function read(client: SandboxClient, signal?: AbortSignal): Promise<{ sequences: number[]; error: unknown }> {
  const sequences: number[] = [];
  const reading = (async () => {
    for await (const { sequence } of followEvents(client, "sb_1", { signal })) sequences.push(sequence);
  })();
  let isOver = false;
  const over = reading.then(
    () => undefined,
    (error: unknown) => error,
  );
  void over.then(() => {
    isOver = true;
  });
  while (!isOver) await vi.advanceTimersByTimeAsync(100);
  return { sequences, error: await over };
}

describe("following events", () => {
  test("goes on after a lost connection where it was, without repeats", async () => {
    const { client, asked } = clientOf(
      { events: [event(3), event(5)], error: lost() },
      { error: lost() },
      { events: [event(5), event(8)] },
      { events: [event(9, "sandbox_destroyed"), event(10)] },
    );
    expect(await read(client)).toEqual({ sequences: [3, 5, 8, 9], error: undefined });
    expect(asked).toEqual([0, 5, 5, 8]);
  });

  test("gives up when the server stays away for 30 s, and not before", async () => {
    const { client, asked } = clientOf({ events: [event(1)], error: lost() }, { error: lost() });
    const startedAtMs = Date.now();
    const { sequences, error } = await read(client);
    expect(sequences).toEqual([1]);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(Date.now() - startedAtMs).toBeGreaterThan(30_000);
    expect(Date.now() - startedAtMs).toBeLessThan(34_000);
    // From 100 ms up to 2 s apart.
    expect(asked.length).toBeGreaterThan(15);
    expect(asked.length).toBeLessThan(45);
  });

  test("an error that is no lost connection is told at once", async () => {
    const gone = new SandboxNotFoundError("there is no such sandbox", { code: "SANDBOX_NOT_FOUND" });
    const { client, asked } = clientOf({ error: gone });
    expect((await read(client)).error).toBe(gone);
    expect(asked).toEqual([0]);
  });

  test("an abort ends the waiting for the server, with its reason", async () => {
    const { client } = clientOf({ error: lost() });
    const abort = new AbortController();
    const reason = new Error("enough");
    setTimeout(() => abort.abort(reason), 5000);
    const startedAtMs = Date.now();
    expect((await read(client, abort.signal)).error).toBe(reason);
    expect(Date.now() - startedAtMs).toBeLessThanOrEqual(5200);
  });
});
