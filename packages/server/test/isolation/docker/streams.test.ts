import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ProcessHome } from "../../../src/isolation/docker/container.ts";
import { ContainerProcess } from "../../../src/isolation/docker/process.ts";
import { Demultiplexer, FrameScanner } from "../../../src/isolation/docker/streams.ts";

const NONCE = "0123456789abcdef0123456789abcdef";

const frame = (text: string) => `\x1e${NONCE} ${text}\x1e`;

/** Feeds a text in pieces and tells data from frames. */
function scan(text: string, cuts: readonly number[]): { data: string; frames: string[] } {
  const scanner = new FrameScanner(NONCE);
  const bytes = Buffer.from(text, "latin1");
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const result = { data: "", frames: [] as string[] };
  for (const [index, place] of places.entries()) {
    for (const piece of scanner.scan(bytes.subarray(places[index - 1] ?? 0, place))) {
      if (piece.kind === "frame") result.frames.push(piece.text);
      else result.data += piece.data.toString("latin1");
    }
  }
  result.data += scanner.rest().toString("latin1");
  return result;
}

describe("frames between output", () => {
  test("are found wherever the stream is cut, and everything else is kept", () => {
    const noise = fc.constantFrom("a", "\x1e", `\x1e${NONCE.slice(0, 9)}`, `\x1e${NONCE}`, NONCE, " ", "\n", "\xff");
    const part = fc.oneof(
      noise.map((data) => ({ data })),
      fc.constantFrom("ended 0 0", "status x y").map((text) => ({ text })),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 8 }), (parts, cuts) => {
        // A piece of noise before a frame or a space could complete an opening of its own: keep them apart.
        const text = parts.map((item) => ("text" in item ? frame(item.text) : `${item.data}.`)).join("");
        const expected = {
          data: parts.map((item) => ("text" in item ? "" : `${item.data}.`)).join(""),
          frames: parts.flatMap((item) => ("text" in item ? [item.text] : [])),
        };
        expect(scan(text, cuts)).toEqual(expected);
      }),
    );
  });

  test("that never end are output after all", () => {
    const endless = `\x1e${NONCE} ${"x".repeat(100_000)}`;
    expect(scan(endless, [10, 50_000])).toEqual({ data: endless, frames: [] });
  });
});

test("the engine's multiplexed stream comes apart wherever it is cut", () => {
  const piece = fc.record({ name: fc.constantFrom("stdout", "stderr"), data: fc.uint8Array({ maxLength: 40 }) });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), fc.array(fc.nat(), { maxLength: 10 }), (pieces, cuts) => {
      const bytes = Buffer.concat(
        pieces.flatMap(({ name, data }) => {
          const header = Buffer.alloc(8);
          header[0] = name === "stdout" ? 1 : 2;
          header.writeUInt32BE(data.length, 4);
          return [header, Buffer.from(data)];
        }),
      );
      const got: Record<string, number[]> = { stdout: [], stderr: [] };
      const demultiplexer = new Demultiplexer((name, part) => got[name]?.push(...part));
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
      for (const [index, place] of places.entries()) demultiplexer.feed(bytes.subarray(places[index - 1] ?? 0, place));
      const expected = (wanted: string) =>
        pieces.filter(({ name }) => name === wanted).flatMap(({ data }) => [...data]);
      expect(got).toEqual({ stdout: expected("stdout"), stderr: expected("stderr") });
    }),
  );
});

/** A home whose one process does with its first line what it is told. */
async function homeOf(process: (socket: Socket, mark: string, seal: string) => void) {
  const server = createServer((socket) =>
    socket.once("data", (firstLine) => {
      const [mark = "", seal = ""] = firstLine.toString().trim().split(" ");
      process(socket, mark, seal);
    }),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  const connection = connect((server.address() as { port: number }).port, "127.0.0.1");
  onTestFinished(() => {
    connection.destroy();
    server.close();
  });
  const helper = { clear: vi.fn(async () => 0) };
  const restart = vi.fn(async () => void connection.destroy());
  const awake = (work: () => Promise<void>) => work();
  return { helper, restart, awake, leave: vi.fn(), startCommand: async () => ({ id: "", connection }) };
}

function start(home: object, signal?: AbortSignal): Promise<ContainerProcess> {
  const command = { script: "", argv: ["/bin/true"], env: {}, workdir: "/", stdin: false };
  return ContainerProcess.start(home as ProcessHome, command, { signal });
}

function multiplexed(stream: 1 | 2, text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(text.length, 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

describe("a command that cannot be cancelled in time", () => {
  test("because it has ended by then loses what it left in the background", async () => {
    const home = await homeOf((socket, mark, seal) => {
      const ended = `\x1e${mark} ended ${seal} 0 0\x1e`;
      const started = `\x1e${mark} started 41 42 0\x1e`;
      socket.write(Buffer.concat([multiplexed(2, `${started}${ended}`), multiplexed(1, ended)]));
    });
    await expect(start(home, AbortSignal.abort())).rejects.toMatchObject({ code: "CANCELLED" });
    await vi.waitUntil(() => home.helper.clear.mock.calls.length > 0, { timeout: 60_000 });
    expect(home.helper.clear).toHaveBeenCalledExactlyOnceWith({ root: 41, wrapper: 42 });
    expect(home.leave).toHaveBeenCalledOnce();
    expect(home.restart).not.toHaveBeenCalled();
  });

  test("because somebody holds its script up ends with the container: it would run when it is let go", async () => {
    const home = await homeOf(() => {});
    await expect(start(home, AbortSignal.abort())).rejects.toMatchObject({ code: "CANCELLED" });
    await vi.waitUntil(() => home.restart.mock.calls.length > 0, { timeout: 60_000 });
    expect(home.restart).toHaveBeenCalledExactlyOnceWith(home.helper);
  });
});

test("output in the place of a script that was held up is bounded", async () => {
  let sent = 0;
  const home = await homeOf((socket) => {
    const megabyte = multiplexed(1, "x".repeat(2 ** 20));
    // Who writes again from the callback of a write that failed is called again, without end, until the socket knows that it is closed.
    const flood = (error?: Error | null): void => {
      sent += 1;
      if (!error) socket.write(megabyte, flood);
    };
    socket.on("error", () => {});
    flood();
  });
  await expect(start(home)).rejects.toMatchObject({ code: "RUNTIME_UNAVAILABLE" });
  expect(home.restart).toHaveBeenCalledOnce();
  expect(sent).toBeGreaterThan(32);
});
