import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Sandbox } from "@agentfense/sdk";
import { openIsolation } from "@agentfense/server/isolation";
import { quantile, timed } from "../sample.ts";
import type { CallRow } from "./calls.ts";
import { startServer } from "./server.ts";

/** What a port of a sandbox costs, against the same program on a port of the host, samples taken in turns. */
export interface PortCosts {
  readonly samples: number;
  readonly rows: readonly CallRow[];
  readonly bulk: readonly { readonly label: string; readonly mbPerSecond: number }[];
}

const PORT = 4717;
const BULK_BYTES = 256 * 2 ** 20;
const BULK_RUNS = 5;
const WARM_UP = 5;
const PAUSE_MS = 10;

/** Gives back what it gets; or, asked by HTTP, a little or a lot. */
const PROGRAM = `
import os, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
print("ready", flush=True)
block = bytes(1 << 20)
while True:
    client, _ = server.accept()
    first = client.recv(65536)
    if first.startswith(b"GET"):
        size = ${BULK_BYTES} if b"bulk" in first else 4
        client.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % size)
        for _ in range(size >> 20): client.sendall(block)
        if size == 4: client.sendall(b"pong")
    else: client.sendall(first)
    client.close()
`;

export async function measurePorts(benchmark: {
  readonly directory: string;
  readonly samples: number;
  readonly signal: AbortSignal;
}): Promise<PortCosts> {
  const { directory, samples, signal } = benchmark;
  const project = join(directory, "project");
  await mkdir(project, { recursive: true });
  const direct = spawn("/usr/bin/python3", ["-c", PROGRAM, String(PORT)], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await once(direct.stdout, "data");
    await using isolation = await openIsolation({ runtimes: ["bwrap"] });
    await using box = await isolation.create({ runtime: "bwrap", workspaces: [{ lowers: [project], rules: [] }] });
    await box.start();
    const serving = box.execStream({ command: ["/usr/bin/python3", "-c", PROGRAM, `${PORT}`], timeoutMs: 600_000 });
    await serving[Symbol.asyncIterator]().next();
    await using server = await startServer(join(directory, "server"));
    await using sandbox = await Sandbox.create({ endpoint: server.grpc });
    await sandbox.run(`cat > /tmp/serve.py; python3 /tmp/serve.py ${PORT} >/tmp/log 2>&1 &`, { stdin: PROGRAM });
    await sandbox.waitForPort(PORT);
    const { url } = await sandbox.port(PORT);

    const dial = async (port: number | string = PORT): Promise<Socket> => {
      const socket = connect({ port: Number(port), host: "127.0.0.1", noDelay: true });
      await once(socket, "connect");
      return socket;
    };
    const rows: Record<string, () => Promise<unknown>> = {
      "direct, connect and 4 bytes echoed": async () => echo(await dial()),
      "`connect()` into a box, the same": async () => echo(await box.connect(PORT)),
      "direct, HTTP GET": () => got(`http://127.0.0.1:${PORT}/`),
      "through the server, HTTP GET": () => got(url),
    };
    const measured = new Map<string, number[]>(Object.keys(rows).map((label) => [label, []]));
    for (let i = -WARM_UP; i < samples; i += 1) {
      for (const [label, sample] of Object.entries(rows)) {
        await setTimeout(PAUSE_MS, undefined, { signal });
        const ms = await timed(sample);
        if (i >= 0) measured.get(label)!.push(ms);
      }
    }
    const bulks: Record<string, () => Promise<unknown>> = {
      "direct, one connection": async () => swallowed(await dial()),
      "`connect()` into a box": async () => swallowed(await box.connect(PORT)),
      "through the server, HTTP": async () => swallowed(await dial(new URL(url).port), new URL(`${url}bulk`)),
    };
    const bulk: { label: string; mbPerSecond: number }[] = [];
    for (const [label, sample] of Object.entries(bulks)) {
      const all: number[] = [];
      for (let i = 0; i < BULK_RUNS; i += 1) all.push(await timed(sample));
      bulk.push({ label, mbPerSecond: BULK_BYTES / 1e6 / (quantile(all, 0.5) / 1000) });
    }
    return {
      samples,
      bulk,
      rows: [...measured].map(([label, all]) => ({ label, p50: quantile(all, 0.5), p99: quantile(all, 0.99) })),
    };
  } finally {
    direct.kill();
  }
}

async function echo(socket: Socket): Promise<void> {
  socket.write("ping");
  await once(socket, "data");
  socket.destroy();
}

/** The same client for all: what it costs is no part of the comparison. */
async function swallowed(socket: Socket, { pathname, search, host } = new URL("http://localhost/bulk")): Promise<void> {
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  let count = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) count += chunk.length;
  if (count < BULK_BYTES) throw new Error(`only ${count} bytes came`);
}

async function got(url: string): Promise<void> {
  const { body } = await fetch(url);
  for await (const _ of body as ReadableStream<Uint8Array>);
}
