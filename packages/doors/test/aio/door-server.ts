import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Rule } from "@agentfense/sdk";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { aioDoor } from "../../src/aio/door.ts";
import type { AioDoorOptions } from "../../src/aio/options.ts";
import type { Door, DoorCaller } from "../../src/door.ts";

const ADMIN: DoorCaller = { ownerId: undefined, role: "admin" };

/** The door on a real HTTP server, to real sandboxes of this process. */
export class DoorServer implements AsyncDisposable {
  readonly engine: EmbeddedEngine;
  readonly door: Door;
  /** Who the next requests are made by. */
  caller: DoorCaller = ADMIN;
  /** Calls that are answered as by a server that does not know them: "/v1/bash/". */
  hidden: string | undefined;
  readonly #server: Server;
  readonly #directories: string[] = [];

  static open(options: AioDoorOptions = {}): Promise<DoorServer> {
    return DoorServer.openWith(aioDoor(options));
  }

  static async openWith(door: Door): Promise<DoorServer> {
    const engine = await EmbeddedEngine.open();
    const server = createServer();
    const opened = new DoorServer(engine, door, server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return opened;
  }

  private constructor(engine: EmbeddedEngine, door: Door, server: Server) {
    this.engine = engine;
    this.door = door;
    this.#server = server;
    server.on("request", async (incoming, outgoing) => {
      const leaving = new AbortController();
      outgoing.once("close", () => leaving.abort());
      const request = requestOf(incoming, leaving.signal);
      const isHidden = this.hidden !== undefined && request.url.includes(this.hidden);
      const call = { caller: this.caller, transport: engine.transport };
      const response = isHidden
        ? Response.json({ detail: "Not Found" }, { status: 404 })
        : await door.answer(request, call);
      outgoing.writeHead(response.status, Object.fromEntries(response.headers));
      if (response.body === null) return outgoing.end();
      // Who leaves early has his reasons.
      await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => {});
    });
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Of a sandbox. */
  url(sandboxId: string): string {
    return `${this.origin}/aio/${sandboxId}`;
  }

  async sandbox(files: Readonly<Record<string, string>>, permissions: readonly Rule[]): Promise<Sandbox> {
    const directory = mkdtempSync(join(tmpdir(), "agentfense-aio-"));
    this.#directories.push(directory);
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), content);
    }
    return await Sandbox.fromLocal(directory, { engine: this.engine, permissions });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.door.close?.();
    this.#server.closeAllConnections();
    this.#server.close();
    await this.engine.close();
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
  }
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET", headers, url = "/" } = incoming;
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(url, "http://127.0.0.1"), {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((each) => [name, each])) as [
      string,
      string,
    ][],
    signal,
    ...(hasBody ? { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array>, duplex: "half" as const } : {}),
  });
}
