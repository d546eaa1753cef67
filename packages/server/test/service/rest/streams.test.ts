import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import {
  type BatchUploadChunk,
  BatchUploadResultSchema,
  FileChunkSchema,
  type UploadChunk,
  UploadResultSchema,
} from "@agentfense/protocol/codebase";
import { EventSchema, type WatchEventsRequest } from "@agentfense/protocol/event";
import { ExecOutputSchema } from "@agentfense/protocol/sandbox";
import { create, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import { LIMITS, only, restTo, serve } from "./support.ts";

const MIB = 1024 * 1024;

describe("downloads", () => {
  const file = (chunks: (signal: AbortSignal) => AsyncGenerator<Uint8Array>) =>
    async function* (_: unknown, context: HandlerContext) {
      for await (const data of chunks(context.signal)) {
        yield create(FileChunkSchema, { data });
      }
    };

  test("the bytes of the chunks are the body", async () => {
    const rest = restTo(
      only(
        "DownloadFile",
        file(async function* () {
          yield Buffer.from("a");
          yield new Uint8Array();
          yield Buffer.from([0, 255]);
        }),
      ),
    );
    await using server = await serve(rest.handler);
    const response = await fetch(`${server.url}/v1/codebases/cb_1/files/a/b.bin?version=3`);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/octet-stream"]);
    expect(await response.bytes()).toEqual(new Uint8Array([0x61, 0, 255]));
  });

  test("an archive is a tar, an empty file is an empty body", async () => {
    const rest = restTo(
      only(
        "DownloadArchive",
        file(async function* () {}),
      ),
    );
    await using server = await serve(rest.handler);
    const response = await fetch(`${server.url}/v1/codebases/cb_1/archive`);
    expect([response.headers.get("content-type"), (await response.bytes()).byteLength]).toEqual([
      "application/x-tar",
      0,
    ]);
  });

  test("an error before the first byte is a status, a later one cuts the connection", async () => {
    const early = restTo(
      only(
        "DownloadFile",
        file(async function* () {
          yield new Uint8Array();
          throw new ConnectError("file not found", Code.NotFound);
        }),
      ),
    );
    expect(await early.json("/v1/codebases/c/files/x")).toMatchObject({
      status: 404,
      body: { code: 5, message: "file not found" },
    });

    const late = restTo(
      only(
        "DownloadFile",
        file(async function* () {
          yield Buffer.from("begin");
          throw new ConnectError("disk", Code.Internal);
        }),
      ),
    );
    await using server = await serve(late.handler);
    const response = await fetch(`${server.url}/v1/codebases/c/files/x`);
    expect(response.status).toBe(200);
    await expect(response.bytes()).rejects.toThrow();
  });

  test("a client that does not read stops the method, one that goes ends it", async () => {
    let sent = 0;
    let ended = false;
    const rest = restTo(
      only(
        "DownloadFile",
        file(async function* (signal) {
          signal.addEventListener("abort", () => {
            ended = true;
          });
          for (;;) {
            sent += 1;
            yield new Uint8Array(64 * 1024);
          }
        }),
      ),
    );
    await using server = await serve(rest.handler);
    const socket = connect(server.port, "127.0.0.1");
    socket.write("GET /v1/codebases/c/files/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await new Promise((resolve) => socket.once("readable", resolve));
    // It comes to rest when everything on the way is full.
    await eventually(async () => {
      const before = sent;
      await aWhile(300);
      expect(sent).toBe(before);
    });
    expect((sent * 64 * 1024) / MIB).toBeLessThan(32);
    socket.destroy();
    await eventually(() => expect(ended).toBe(true));
  });
});

describe("uploads", () => {
  /** Reads everything and answers with what came. */
  const collect = (seen: { first?: Message; sizes: number[]; ended?: unknown }) =>
    only("UploadFiles", async (input) => {
      try {
        for await (const message of input as AsyncIterable<UploadChunk>) {
          if (message.content.case === "data") {
            seen.sizes.push(message.content.value.byteLength);
          } else {
            seen.first = message;
          }
        }
      } catch (error) {
        seen.ended = error;
        throw error;
      }
      const size = BigInt(seen.sizes.reduce((sum, each) => sum + each, 0));
      return create(UploadResultSchema, { size });
    });

  test("path and query are the metadata, the body is the data, whatever its size", async () => {
    const seen = { sizes: [] as number[] };
    const rest = restTo(collect(seen));
    await using server = await serve(rest.handler);
    const response = await fetch(`${server.url}/v1/codebases/cb_1/files/dir/a%20b?mode=0o755&totalSize=${3 * MIB}`, {
      method: "PUT",
      body: new Uint8Array(3 * MIB),
    });
    expect(await response.json()).toMatchObject({ size: String(3 * MIB) });
    expect(seen).toMatchObject({
      first: {
        content: {
          case: "metadata",
          value: { codebaseId: "cb_1", filePath: "dir/a b", mode: 0o755, totalSize: BigInt(3 * MIB) },
        },
      },
    });
    expect(Math.max(...seen.sizes)).toBeLessThanOrEqual(256 * 1024);
  });

  test("an empty body is an empty file; a wrong parameter is refused before the method is called", async () => {
    const seen = { sizes: [] as number[] };
    const rest = restTo(collect(seen));
    await using server = await serve(rest.handler);
    const url = `${server.url}/v1/codebases/cb_1/files/x`;
    expect(await (await fetch(url, { method: "PUT" })).json()).toMatchObject({ size: "0" });
    const refused = await fetch(`${url}?mode=0644`, { method: "PUT", body: "x" });
    expect([refused.status, ((await refused.json()) as { message: string }).message]).toEqual([
      400,
      "mode has a leading zero; write 0o644 for an octal number",
    ]);
  });

  test("a method that refuses early is heard by a client that still sends", async () => {
    const rest = restTo(
      only("UploadFiles", () => {
        throw new ConnectError("codebase not found", Code.NotFound);
      }),
    );
    await using server = await serve(rest.handler);
    const response = await fetch(`${server.url}/v1/codebases/cb_1/files/x`, {
      method: "PUT",
      body: new Uint8Array(LIMITS.bodyBytes / 2),
    });
    expect([response.status, await response.json()]).toMatchObject([404, { code: 5 }]);
  });

  test("a client that goes in the middle is an error for the method, not the end of the file", async () => {
    const seen: Parameters<typeof collect>[0] = { sizes: [] };
    const rest = restTo(collect(seen));
    await using server = await serve(rest.handler);
    const socket = connect(server.port, "127.0.0.1");
    socket.write("PUT /v1/codebases/c/files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf");
    await eventually(() => expect(seen.sizes).toEqual([4]));
    socket.destroy();
    await eventually(() => expect(seen.ended).toBeInstanceOf(Error));
  });

  test("a client that stalls is given up", async () => {
    const seen: Parameters<typeof collect>[0] = { sizes: [] };
    const rest = restTo(collect(seen));
    await using server = await serve(rest.handler);
    const stalled = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from("x"));
      },
    });
    const response = await fetch(`${server.url}/v1/codebases/c/files/x`, {
      method: "PUT",
      body: stalled,
      duplex: "half",
    } as RequestInit);
    expect([response.status, await response.json()]).toMatchObject([
      499,
      { code: 1, message: "no data arrived for 2 seconds; the request was given up" },
    ]);
    expect(seen.ended).toBeInstanceOf(Error);
  });

  test("a method that reads slowly slows the client down", async () => {
    let read = 0;
    let go = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const rest = restTo(
      only("UploadFiles", async (input) => {
        for await (const _ of input as AsyncIterable<UploadChunk>) {
          read += 1;
          if (read === 2) {
            await gate;
          }
        }
        return create(UploadResultSchema);
      }),
    );
    await using server = await serve(rest.handler);
    let written = 0;
    const request = httpRequest(`${server.url}/v1/codebases/c/files/x`, { method: "PUT" });
    const answered = new Promise((resolve) => request.once("response", resolve));
    while (written < 64 * MIB && request.write(new Uint8Array(MIB))) {
      written += MIB;
      await aWhile(5);
    }
    await aWhile(200);
    expect(written).toBeLessThan(32 * MIB);
    go();
    request.end();
    await answered;
  });
});

describe("lines of JSON", () => {
  const collect = (seen: BatchUploadChunk[]) =>
    only("BatchUpload", async (input) => {
      for await (const message of input as AsyncIterable<BatchUploadChunk>) {
        seen.push(message);
      }
      return create(BatchUploadResultSchema, { filesChanged: seen.length });
    });
  const send = (rest: ReturnType<typeof restTo>, body: string) =>
    rest.json("/v1/codebases/cb_1/batch?message=m", { method: "POST", body });

  test("each is a message, and the path goes into the first one's beginning", async () => {
    const seen: BatchUploadChunk[] = [];
    const lines = [
      { begin: { codebase_id: "other", replaceAll: true } },
      { items: [{ entry: { path: "a", kind: "file" }, data: "YQ==" }] },
    ];
    const { body } = await send(restTo(collect(seen)), `${lines.map((line) => JSON.stringify(line)).join("\n\n")}\n`);
    expect(body).toMatchObject({ filesChanged: 2 });
    expect(seen[0]?.begin).toMatchObject({ codebaseId: "cb_1", replaceAll: true, message: "m" });
    expect(seen[1]).toMatchObject({ items: [{ entry: { path: "a", kind: 1 } }] });
  });

  test("a first line without a beginning gets one, and so does a body without lines", async () => {
    for (const body of ["", '{"items":[]}']) {
      const seen: BatchUploadChunk[] = [];
      expect((await send(restTo(collect(seen)), body)).status).toBe(200);
      expect(seen.map((each) => each.begin?.codebaseId)).toEqual(["cb_1"]);
    }
  });

  test("a mistake is answered with its line, whatever the method says to it", async () => {
    const text = '{}\n{"items":[{"entry":{"kind":"fil"}}]}\n';
    expect(await send(restTo(collect([])), text)).toMatchObject({
      status: 400,
      body: {
        code: 3,
        message: 'line 2: items[0].entry.kind must be one of file, directory, symlink, absent, not "fil"',
      },
    });
    expect(await send(restTo(collect([])), "{}\n[")).toMatchObject({ status: 400, body: { code: 3 } });
    expect(await send(restTo(collect([])), `{}\n${"x".repeat(LIMITS.bodyBytes + 1)}`)).toMatchObject({
      status: 413,
      body: { code: 8 },
    });
  });

  test("many lines may be longer together than one may be", async () => {
    const seen: BatchUploadChunk[] = [];
    const line = JSON.stringify({ items: [{ data: "A".repeat(1024) }] });
    expect((await send(restTo(collect(seen)), `${line}\n`.repeat(200))).status).toBe(200);
    expect(seen.length).toBe(200);
  });
});

describe("streams of messages", () => {
  const three = only("ExecStream", async function* () {
    yield create(ExecOutputSchema, { type: 1, data: Buffer.from("a\n") });
    yield create(ExecOutputSchema, { exitCode: 0 });
  });

  test("are server-sent events with an end", async () => {
    await using server = await serve(restTo(three).handler);
    const response = await fetch(`${server.url}/v1/sandboxes/sb_1/exec/stream`, {
      method: "POST",
      body: '{"command":"x"}',
    });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = (await response.text()).split("\n\n");
    expect(events.map((event) => event.split("\n")[0])).toEqual([
      ": open",
      "event: message",
      "event: message",
      "event: end",
      "",
    ]);
    const data = events.slice(1, 3).map((event) => JSON.parse(event.split("\ndata: ")[1] ?? ""));
    expect(data).toMatchObject([
      { type: "OUTPUT_TYPE_STDOUT", data: "YQo=", exitCode: null },
      { type: "OUTPUT_TYPE_UNSPECIFIED", exitCode: 0, duration: null },
    ]);
  });

  test("are lines of JSON for a client that asks for them", async () => {
    const rest = restTo(three);
    const headers = { Accept: "application/x-ndjson" };
    const response = await rest.fetch("/v1/sandboxes/sb_1/exec/stream", { method: "POST", headers });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = (await response.text())
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([{ data: "YQo=" }, { exitCode: 0 }]);
  });

  test("a refusal is a status; a later error is the last event", async () => {
    const refused = restTo(
      // biome-ignore lint/correctness/useYield: it fails before it has anything to say
      only("ExecStream", async function* () {
        throw new ConnectError("sandbox not found", Code.NotFound);
      }),
    );
    expect(await refused.json("/v1/sandboxes/sb_1/exec/stream", { method: "POST" })).toMatchObject({
      status: 404,
      body: { code: 5 },
    });
    const broken = restTo(
      only("ExecStream", async function* () {
        yield create(ExecOutputSchema);
        throw new ConnectError("gone", Code.Aborted);
      }),
    );
    const events = await (await broken.fetch("/v1/sandboxes/sb_1/exec/stream", { method: "POST" })).text();
    expect(events.endsWith('event: error\ndata: {"code":10,"message":"gone","details":[]}\n\n')).toBe(true);
    const headers = { Accept: "application/x-ndjson" };
    const lines = await (await broken.fetch("/v1/sandboxes/sb_1/exec/stream", { method: "POST", headers })).text();
    expect(lines.endsWith('\n{"error":{"code":10,"message":"gone","details":[]}}\n')).toBe(true);
  });

  test("events have ids, and a client that comes back continues after the last one", async () => {
    const after: (bigint | undefined)[] = [];
    const rest = restTo(
      only("WatchEvents", async function* (input) {
        after.push((input as WatchEventsRequest).afterSequence);
        yield create(EventSchema, { sequence: 42n });
      }),
    );
    const text = await (await rest.fetch("/v1/events/watch?after_sequence=7")).text();
    expect(text).toContain("id: 42\nevent: message\n");
    await rest.fetch("/v1/events/watch?after_sequence=7", { headers: { "Last-Event-ID": "41" } });
    await rest.fetch("/v1/events/watch");
    expect(after).toEqual([7n, 41n, undefined]);
    expect((await rest.fetch("/v1/events/watch", { headers: { "Last-Event-ID": "x" } })).status).toBe(400);
  });

  test("a quiet stream opens all the same, and ends when the client goes", async () => {
    let aborted = false;
    const rest = restTo(
      only("WatchEvents", async function* (_, context) {
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        aborted = true;
        yield create(EventSchema);
      }),
    );
    await using server = await serve(rest.handler);
    const stop = new AbortController();
    const response = await fetch(`${server.url}/v1/events/watch`, { signal: stop.signal });
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(": open\n\n");
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(": still here\n\n");
    stop.abort();
    await eventually(() => expect(aborted).toBe(true));
    await reader?.cancel().catch(() => {});
  });

  test("a client that goes ends a unary call too", async () => {
    let aborted = false;
    const begun = Promise.withResolvers<void>();
    const rest = restTo(
      only("Exec", async (_, context) => {
        begun.resolve();
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        aborted = true;
        return {};
      }),
    );
    await using server = await serve(rest.handler);
    const stop = new AbortController();
    const call = fetch(`${server.url}/v1/sandboxes/sb_1/exec`, { method: "POST", body: "{}", signal: stop.signal });
    void begun.promise.then(() => stop.abort());
    await expect(call).rejects.toThrow();
    await eventually(() => expect(aborted).toBe(true));
  });
});
