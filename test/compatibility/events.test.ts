import { describe, expect, test } from "vitest";
import { serveApi, testsCover } from "../support/api.ts";
import { aWhile } from "../support/eventually.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();

/** A codebase and a sandbox about which something is in the log. */
async function withHistory(owner: string): Promise<{ codebase: string; sandbox: string }> {
  const codebase = await api.codebase({ "a.txt": "a", "secret.txt": "s" }, owner);
  const sandbox = await api.sandbox(codebase, {
    permissions: [
      { pattern: "**", permission: "PERMISSION_READ" },
      { pattern: "/secret.txt", permission: "PERMISSION_VIEW" },
    ],
  });
  await api.exec(sandbox, "cat secret.txt");
  return { codebase, sandbox };
}

const typesOf = (events: unknown): unknown[] => (events as Message[]).map(({ type }) => type);

describe("list", () => {
  test("who did what, when, with what result", async () => {
    const { codebase, sandbox } = await withHistory("historian");
    const { events, next_page_token } = await api.call("EventService.ListEvents", { owner_id: "historian" });
    expect(typesOf(events)).toEqual(
      expect.arrayContaining([
        "codebase_created",
        "files_uploaded",
        "sandbox_created",
        "sandbox_started",
        "command_executed",
        "permission_denied",
      ]),
    );
    expect(next_page_token).toBe("");
    expect((events as Message[])[0]).toEqual({
      sequence: expect.stringMatching(/^\d+$/),
      time: { seconds: expect.any(String), nanos: expect.any(Number) },
      type: "codebase_created",
      level: "info",
      owner_id: "historian",
      key_id: "",
      sandbox_id: "",
      codebase_id: codebase,
      session_id: "",
      data: { fields: { name: expect.objectContaining({ stringValue: "project" }) } },
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const { json } = await api.rest.get(`/v1/events?sandbox_id=${sandbox}&types=command_executed`);
    expect(json).toEqual({
      events: [
        {
          sequence: expect.stringMatching(/^\d+$/),
          time: expect.stringMatching(/Z$/),
          type: "command_executed",
          level: "info",
          ownerId: "historian",
          keyId: "",
          sandboxId: sandbox,
          codebaseId: codebase,
          sessionId: "",
          data: expect.objectContaining({ command: "cat secret.txt", exit_code: 1, timed_out: false }),
          hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      ],
      nextPageToken: "",
    });
  });

  test("a refusal has its path, operation, level and rule", async () => {
    const { sandbox } = await withHistory("denied");
    const { json } = await api.rest.get(`/v1/events?sandboxId=${sandbox}&types=permission_denied`);
    expect((json.events as Message[])[0]?.data).toMatchObject({ path: "/workspace/secret.txt" });
  });

  test("page by page: everything once, oldest first", async () => {
    const { codebase } = await withHistory("pager");
    const all = await api.call("EventService.ListEvents", { codebase_id: codebase });
    const sequences = (all.events as Message[]).map(({ sequence }) => Number(sequence));
    expect(sequences.length).toBeGreaterThan(4);
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
    const seen: number[] = [];
    let token = "";
    do {
      const query = `codebase_id=${codebase}&page_size=2&page_token=${token}`;
      const { json } = await api.rest.get(`/v1/events?${query}`);
      const page = json.events as Message[];
      expect(page.length).toBeLessThanOrEqual(2);
      seen.push(...page.map(({ sequence }) => Number(sequence)));
      token = json.nextPageToken as string;
    } while (token !== "");
    expect(seen).toEqual(sequences);
  });

  test("by time: from one moment on, up to another", async () => {
    const { codebase } = await withHistory("clock");
    const { events } = await api.call("EventService.ListEvents", { codebase_id: codebase });
    const times = (events as { time: { seconds: string; nanos: number } }[]).map(({ time }) => time);
    const [first, last] = [times[0]!, times.at(-1)!];
    const after = await api.call("EventService.ListEvents", { codebase_id: codebase, after: last });
    expect((after.events as unknown[]).length).toBeGreaterThanOrEqual(1);
    expect(await api.call("EventService.ListEvents", { codebase_id: codebase, before: first })).toMatchObject({
      events: [],
    });
    const future = await api.rest.get(`/v1/events?codebase_id=${codebase}&after=2999-01-01T00:00:00Z`);
    expect(future.json).toEqual({ events: [], nextPageToken: "" });
  });

  test("refused: a bad token, a time that is none", async () => {
    await api.refused({
      method: "EventService.ListEvents",
      request: { page_token: "x" },
      rest: "GET /v1/events?page_token=x",
      status: "INVALID_ARGUMENT",
      message: "page_token is not one that this server gave out",
    });
    const { status, json } = await api.rest.get("/v1/events?after=yesterday");
    expect({ status, json }).toMatchObject({
      status: 400,
      json: { code: 3, message: 'after must be a time such as "2026-01-31T12:00:00Z"' },
    });
  });
});

describe("watch", () => {
  test("what happens from now on, over gRPC", async () => {
    const codebase = await api.codebase();
    const stream = api.grpc.stream("EventService", "WatchEvents", { codebase_id: codebase, types: ["files_uploaded"] });
    const cancelled = new Promise<{ code: number }>((resolve) => stream.on("error", resolve));
    const first = new Promise<Message>((resolve) => stream.once("data", resolve));
    const metadata = new Promise((resolve) => stream.once("metadata", resolve));
    // The watch begins when the server has it; uploads go on until the first one is seen.
    let seen = false;
    void first.then(() => {
      seen = true;
    });
    for (let round = 0; !seen; round++) {
      await api.grpc.upload(codebase, "a.txt", `round ${round}`);
      await Promise.race([first, metadata, aWhile(50)]);
    }
    expect(await first).toMatchObject({ type: "files_uploaded", codebase_id: codebase });
    stream.cancel();
    expect((await cancelled).code).toBe(1);
  });

  test("from a cursor on, nothing left out and nothing twice", async () => {
    const { codebase } = await withHistory("cursor");
    const { events } = await api.call("EventService.ListEvents", { codebase_id: codebase });
    const [begin, ...later] = (events as Message[]).map(({ sequence }) => sequence);
    const stream = api.grpc.stream("EventService", "WatchEvents", { codebase_id: codebase, after_sequence: begin });
    const seen: unknown[] = [];
    await new Promise<void>((resolve) => {
      stream.on("error", () => resolve());
      stream.on("data", (event: Message) => {
        seen.push(event.sequence);
        if (seen.length === later.length) stream.cancel();
      });
    });
    expect(seen).toEqual(later);
  });

  test("over REST as server-sent events, which go on where the last one was", async () => {
    const { codebase } = await withHistory("browser");
    const { json } = await api.rest.get(`/v1/events?codebase_id=${codebase}`);
    const sequences = (json.events as Message[]).map(({ sequence }) => sequence);

    const fromStart: unknown[] = [];
    const target = `/v1/events/watch?codebase_id=${codebase}&after_sequence=0`;
    for await (const { event, id, data } of api.rest.events("GET", target)) {
      expect({ event, id }).toEqual({ event: "message", id: data.sequence });
      fromStart.push(id);
      if (fromStart.length === sequences.length) break;
    }
    expect(fromStart).toEqual(sequences);

    const again = { headers: { "last-event-id": String(sequences.at(-2)) } };
    for await (const { id } of api.rest.events("GET", `/v1/events/watch?codebase_id=${codebase}`, undefined, again)) {
      expect(id).toBe(sequences.at(-1));
      break;
    }
  });

  test("refused: a cursor that is none", async () => {
    await api.refused({
      method: "EventService.WatchEvents",
      request: { after_sequence: -1 },
      rest: "GET /v1/events/watch?after_sequence=-1",
      status: "INVALID_ARGUMENT",
      message: "after_sequence must not be negative",
    });
  });
});

testsCover(api, COVERAGE.events);
