import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { SystemService } from "@agentfense/protocol/system";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import type { Door } from "../../../src/service/http/doors.ts";
import { openTestService, type TestService, USER } from "./fixture.ts";

/** Tells who asks, as the door and as a call through it know him; a WebSocket of it says the same, then echoes. */
class SampleDoor implements Door {
  readonly prefix = "/sample/";
  closed = 0;

  keyIn(_headers: unknown, target: string): string | undefined {
    return new URL(target, "http://localhost").searchParams.get("key") ?? undefined;
  }

  async answer(request: Request, { caller, transport }: Parameters<Door["answer"]>[1]): Promise<Response> {
    if (request.url.endsWith("/defect")) throw new Error("secret detail of /etc/shadow");
    const { ownerId } = await createClient(SystemService, transport).getServerInfo({});
    const body = request.body === null ? "" : await request.text();
    return Response.json({ caller: caller.ownerId ?? "", ownerId, method: request.method, bytes: body.length });
  }

  upgrade(...[, socket, head, { caller }]: Parameters<NonNullable<Door["upgrade"]>>): void {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n${caller.ownerId}\n`,
    );
    socket.write(head);
    socket.pipe(socket);
  }

  async close(): Promise<void> {
    this.closed += 1;
  }
}

let door: SampleDoor;
let open: TestService;
beforeEach(async () => {
  door = new SampleDoor();
  open = await openTestService({ keys: "required", doors: [door], allowedOrigins: ["https://ours.example"] });
});
afterEach(async () => {
  await open[Symbol.asyncDispose]();
});

const get = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
  fetch(`http://${open.http}${path}`, { ...init, headers });

test("whoever has a key is let in, and his calls are made as him", async () => {
  for (const [path, headers] of [
    ["/sample/x", { authorization: `Bearer ${USER}` }],
    ["/sample/x", { "x-api-key": USER }],
    [`/sample/x?key=${USER}`, {}],
  ] as const) {
    expect(await (await get(path, headers)).json()).toMatchObject({ caller: "alice", ownerId: "alice" });
  }
});

test("nobody else is", async () => {
  for (const [path, headers] of [
    ["/sample/x", {}],
    ["/sample/x?key=wrong", {}],
    // The usual place counts: a good key elsewhere does not mend a bad one.
    [`/sample/x?key=${USER}`, { authorization: "Bearer wrong" }],
  ] as const) {
    const answer = await get(path, headers);
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({ code: 16 });
  }
  expect(open.journal.calls).toEqual([]);
});

test("the key of a door opens nothing else", async () => {
  expect((await get(`/v1/system/info?key=${USER}`)).status).not.toBe(200);
  expect((await get(`/samples?key=${USER}`)).status).toBe(404);
});

test("forms are taken from programs and not from pages", async () => {
  const form = () => {
    const body = new FormData();
    body.set("file", new Blob(["content"]), "a.txt");
    return { method: "POST", body };
  };
  const key = { "x-api-key": USER };
  expect((await get("/sample/x", key, form())).status).toBe(200);
  expect((await get("/sample/x", { ...key, origin: "https://ours.example" }, form())).status).toBe(415);
  expect((await get("/sample/x", { ...key, origin: "https://evil.example" }, form())).status).toBe(403);
  expect((await get("/v1/codebases", key, form())).status).toBe(415);
  const plain = { method: "POST", body: "text" };
  expect((await get("/sample/x", { ...key, "content-type": "text/plain" }, plain)).status).toBe(415);
});

test("a defect is told without what it was about", async () => {
  const answer = await get("/sample/defect", { "x-api-key": USER });
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain("shadow");
  expect(open.log.join()).toContain("/etc/shadow");
});

test("it is not on the gRPC port", async () => {
  const answer = await fetch(`http://${open.grpc}/sample/x`, { headers: { "x-api-key": USER } });
  expect(answer.status).toBe(404);
});

/** What the server says to a request for a WebSocket. */
async function shake(path: string, headers: Record<string, string>): Promise<{ socket: Socket; said: () => string }> {
  const [host, port] = open.http.split(":");
  const socket = connect(Number(port), host);
  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  const lines = Object.entries({ host: open.http, connection: "Upgrade", upgrade: "websocket", ...headers });
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
  await eventually(() => text.includes("\r\n\r\n"));
  return { socket, said: () => text };
}

test("a WebSocket passes the same rules", async () => {
  const { socket, said } = await shake("/sample/ws", { "x-api-key": USER });
  await eventually(() => said().endsWith("alice\n"));
  socket.write("hello");
  await eventually(() => said().endsWith("hello"));
  socket.destroy();

  for (const [path, headers, status] of [
    ["/sample/ws", {}, 401],
    ["/sample/ws?key=wrong", {}, 401],
    [`/sample/ws?key=${USER}`, { origin: "https://evil.example" }, 403],
    [`/sample/ws?key=${USER}`, { origin: "null" }, 403],
    ["/v1/events", { "x-api-key": USER }, 404],
  ] as const) {
    const refused = await shake(path, headers);
    expect(refused.said()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    if (!refused.socket.destroyed) await once(refused.socket, "close");
  }
});

test("a client that would rather speak HTTP/2 gets its answer", async () => {
  const { socket, said } = await shake("/healthz", { upgrade: "h2c", "http2-settings": "" });
  expect(said()).toMatch(/^HTTP\/1.1 200 /);
  socket.destroy();
});

test("a WebSocket ends with its key", async () => {
  const { socket, said } = await shake("/sample/ws", { "x-api-key": USER });
  await eventually(() => said().endsWith("alice\n"));
  open.keys.drop(USER);
  await once(socket, "close");
});

test("the end of the server closes doors, and what is connected", async () => {
  const { socket, said } = await shake("/sample/ws", { "x-api-key": USER });
  await eventually(() => said().endsWith("alice\n"));
  const closed = once(socket, "close");
  await open.service.drain(100);
  await closed;
  expect(door.closed).toBe(1);
});
