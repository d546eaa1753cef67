import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import { type Caller, maySee } from "../../../src/runtime/caller.ts";
import { PortTokens } from "../../../src/runtime/ports/tokens.ts";
import { RuntimeError } from "../../../src/runtime/runtime-error.ts";
import { openTestService, type TestService } from "./fixture.ts";

// What listens in the sandbox is a server of this process here: the way into a sandbox has tests of its own.

const SANDBOX = `sb_${"a1".repeat(16)}`;
const OTHER = `sb_${"b2".repeat(16)}`;
const [KEY, FOREIGN, READER] = ["af_key_owner", "af_key_foreign", "af_key_reader"];
const KEY_ID = `key_${"0".repeat(32)}`;
const OWNER: Caller = { ownerId: "alice", role: "user", keyId: KEY_ID };
const HOUR = 3_600_000;

let inside: Server;
let seen: IncomingMessage[];
let answer: (request: IncomingMessage, response: import("node:http").ServerResponse) => void;
let tokens: PortTokens;
let nowMs: number;
let service: TestService;
let open: TestService;
let port: number;

beforeAll(async () => {
  nowMs = Date.now();
  tokens = new PortTokens(undefined, () => nowMs);
  inside = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(inside, "listening");
  service = await openService("required");
});

beforeEach(() => {
  seen = [];
  answer = (_request, response) => response.end("inside\n");
  ({ port } = inside.address() as AddressInfo);
  open = service;
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  inside.close();
  inside.closeAllConnections();
});

async function openService(keys: "required" | "off"): Promise<TestService> {
  const made = await openTestService({
    keys,
    tokens,
    sandboxes: {
      connect: async (caller, id, wanted, _signal) => {
        if (id !== SANDBOX || !maySee(caller, "alice"))
          throw new RuntimeError("SANDBOX_NOT_FOUND", "sandbox not found");
        if (wanted !== port) throw new RuntimeError("PORT_CLOSED", `nothing listens at port ${wanted} of the sandbox`);
        const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
        await once(socket, "connect");
        return socket;
      },
    },
  });
  made.keys
    .add(KEY, OWNER)
    .add(FOREIGN, { ownerId: "bob", role: "user", keyId: `key_${"1".repeat(32)}` })
    .add(READER, { ownerId: "alice", role: "read-only", keyId: `key_${"2".repeat(32)}` });
  return made;
}

const token = (changes: Partial<Parameters<PortTokens["make"]>[0]> = {}): string =>
  tokens.make({ sandboxId: SANDBOX, port, expiresAtMs: nowMs + HOUR, keyId: KEY_ID, ...changes });
const base = (id = SANDBOX, number = port): string => `/v1/sandboxes/${id}/ports/${number}`;
const hostName = (): string => `${port}-${SANDBOX}.localhost:${open.http.split(":")[1]}`;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function ask(
  path: string,
  headers: Record<string, string | string[]> = {},
  { method = "GET", body }: { method?: string; body?: string | Buffer } = {},
): Promise<Answer> {
  const [host, number] = open.http.split(":");
  const request = httpRequest({ host, port: number, path, headers, method, agent: false });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: (await buffer(response)).toString() };
}

const asOwner = { authorization: `Bearer ${KEY}` };

describe("who gets in", () => {
  test("a key of the owner does, and what is asked for arrives", async () => {
    expect(await ask(`${base()}/a/b?c=d&e`, asOwner)).toMatchObject({ status: 200, body: "inside\n" });
    expect(seen[0]).toMatchObject({ method: "GET", url: "/a/b?c=d&e" });
    await ask(base(), asOwner);
    await ask(`${base()}?x`, asOwner);
    expect(seen.map(({ url }) => url)).toEqual(["/a/b?c=d&e", "/", "/?x"]);
  });

  test("a token in a header or in the query does, and is not passed on", async () => {
    expect(await ask(`${base()}/h`, { "x-agentfense-token": token() })).toMatchObject({ status: 200 });
    expect(await ask(`${base()}/q?a=1&agentfense_token=${token()}&b=2`)).toMatchObject({ status: 200 });
    expect(seen.map(({ url }) => url)).toEqual(["/h", "/q?a=1&b=2"]);
    expect(seen.flatMap(({ rawHeaders }) => rawHeaders).join()).not.toContain("afp.");
  });

  test.each([
    ["nobody", () => ({}), 401],
    ["a key that is none", () => ({ authorization: "Bearer af_key_wrong" }), 401],
    ["a key of somebody else", () => ({ authorization: `Bearer ${FOREIGN}` }), 404],
    ["a key for reading", () => ({ authorization: `Bearer ${READER}` }), 403],
    ["a token that has expired", () => ({ "x-agentfense-token": token({ expiresAtMs: nowMs - 1 }) }), 401],
    ["a token of another sandbox", () => ({ "x-agentfense-token": token({ sandboxId: OTHER }) }), 401],
    ["a token of another port", () => ({ "x-agentfense-token": token({ port: port - 1 }) }), 401],
    ["a token of a key that is gone", () => ({ "x-agentfense-token": token({ keyId: `key_${"9".repeat(32)}` }) }), 401],
    ["a token that was made without a key", () => ({ "x-agentfense-token": token({ keyId: undefined }) }), 401],
    [
      "a token with another time in it",
      () => ({ "x-agentfense-token": token().replace(/\.(\d{13})\./, ".9$1.") }),
      401,
    ],
    ["a token with another mark", () => ({ "x-agentfense-token": `${token().slice(0, -2)}AA` }), 401],
    [
      "a token of another server",
      () => ({
        "x-agentfense-token": new PortTokens().make({
          sandboxId: SANDBOX,
          port,
          expiresAtMs: nowMs + HOUR,
          keyId: KEY_ID,
        }),
      }),
      401,
    ],
    ["a wrong token, with a right key", () => ({ ...asOwner, "x-agentfense-token": "afp.x" }), 401],
  ])("%s does not", async (_who, headers, status) => {
    expect(await ask(`${base()}/`, headers())).toMatchObject({ status });
    expect(seen).toEqual([]);
  });

  test("LIVE-10 two tokens that differ do not", async () => {
    const headers = { "x-agentfense-token": token() };
    expect(await ask(`${base()}/?agentfense_token=${token({ expiresAtMs: nowMs + 1 })}`, headers)).toMatchObject({
      status: 401,
    });
  });

  test("a cookie is no token where the API is", async () => {
    expect(await ask(`${base()}/`, { cookie: `agentfense_port=${token()}` })).toMatchObject({ status: 401 });
  });

  test("what runs is cut when the key behind its token is revoked", async () => {
    answer = (_request, response) => void response.write("first ");
    const [host, number] = open.http.split(":");
    const request = httpRequest({
      host,
      port: number,
      path: `${base()}/`,
      headers: { "x-agentfense-token": token() },
      agent: false,
    });
    request.on("error", () => {}).end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.on("error", () => {});
    await once(response, "data");
    open.keys.drop(KEY);
    onTestFinished(() => void open.keys.add(KEY, OWNER));
    response.resume();
    await withoutHanging(() => new Promise((resolve) => response.once("close", resolve)));
    expect(response.complete).toBe(false);
    expect(await ask(`${base()}/`, { "x-agentfense-token": token() })).toMatchObject({ status: 401 });
  });
});

describe("on a host name of its own", () => {
  const visit = (path: string, headers: Record<string, string> = {}) =>
    ask(path, { host: hostName(), accept: "text/html,*/*", ...headers });

  test("a link sets a cookie for that name and leads on without the token; the cookie opens the port", async () => {
    const welcome = await visit(`/a%20b/?x=1&agentfense_token=${token()}&y=2`);
    expect(welcome).toMatchObject({
      status: 200,
      body: expect.stringContaining('content="0;url=/a%20b/?x=1&amp;y=2"'),
    });
    expect(welcome.headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    const [cookie = ""] = welcome.headers["set-cookie"] ?? [];
    expect(cookie).toMatch(/^agentfense_port=afp\.[^;]+; Path=\/; HttpOnly; SameSite=Strict; Expires=[^;]+$/);
    expect(seen).toEqual([]);
    const own = `theme=dark; ${cookie.split(";")[0]}; lang=en`;
    expect(await visit("/a%20b/?x=1", { cookie: own })).toMatchObject({ status: 200, body: "inside\n" });
    expect(seen[0]?.headers).toMatchObject({ cookie: "theme=dark; lang=en", host: hostName() });
  });

  test("a link cannot lead elsewhere", async () => {
    const { body } = await visit(`//evil.example/"><script>?agentfense_token=${token()}`);
    expect(body).toBe('<!doctype html><meta http-equiv="refresh" content="0;url=/">');
  });

  test("the API does not exist there, with or without a key", async () => {
    for (const path of ["/v1/sandboxes", "/healthz", "/openapi.json", "/sandbox.v1.SandboxService/ListSandboxes"]) {
      expect(await ask(path, { host: hostName(), ...asOwner })).toMatchObject({ status: 200, body: "inside\n" });
    }
    expect(seen.map(({ url }) => url)).toContain("/v1/sandboxes");
    expect(JSON.stringify(seen.map(({ headers }) => headers))).not.toContain(KEY);
    expect(open.journal.calls).toEqual([]);
  });

  test.each([
    [`0-${SANDBOX}.localhost`],
    [`65536-${SANDBOX}.localhost`],
    [`080-${SANDBOX}.localhost`],
    [`80-${SANDBOX}.localhost.`],
    ["80-sb_xyz.localhost"],
    [`80-${SANDBOX}.localhost.evil.example`],
    [`80-${SANDBOX}.evil.example`],
  ])("%s is nobody's name, even with a key", async (host) => {
    const { status } = await ask("/v1/sandboxes", { host });
    expect(status).toBe(403);
  });

  test("two host names are refused", async () => {
    const socket = connect(Number(open.http.split(":")[1]), "127.0.0.1");
    socket.end(`GET / HTTP/1.1\r\nHost: ${hostName()}\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect((await buffer(socket)).toString()).toMatch(/^HTTP\/1\.1 400 /);
  });

  test("pages of other origins are refused, and those of its own are not", async () => {
    const cookie = `agentfense_port=${token()}`;
    expect(await visit("/", { cookie, origin: "http://evil.example" })).toMatchObject({ status: 403 });
    expect(await visit("/", { cookie, origin: `http://${port}-${OTHER}.localhost` })).toMatchObject({ status: 403 });
    expect(await visit("/", { cookie, origin: `http://${hostName()}` })).toMatchObject({ status: 200 });
  });

  test("LIVE-11 its pages are foreign to the API", async () => {
    const origin = `http://${hostName()}`;
    const { status, headers } = await ask("/v1/sandboxes", { ...asOwner, origin });
    expect([status, headers["access-control-allow-origin"]]).toEqual([403, undefined]);
  });

  test("cookies for other names, and ours, cannot be set", async () => {
    answer = (_request, response) => {
      const cookies = ["a=1; Path=/", "b=2; Domain=localhost", "agentfense_port=x", "c=3;domain =.localhost"];
      response.setHeader("set-cookie", cookies).end();
    };
    expect((await visit("/", { cookie: `agentfense_port=${token()}` })).headers["set-cookie"]).toEqual(["a=1; Path=/"]);
  });
});

describe("on the path of the API", () => {
  test("what a page could do to its origin is taken away", async () => {
    answer = (_request, response) => {
      for (const name of ["set-cookie", "service-worker-allowed", "clear-site-data", "access-control-allow-origin"]) {
        response.setHeader(name, "x");
      }
      response.setHeader("www-authenticate", "Basic");
      response.setHeader("content-security-policy", "default-src *");
      response.setHeader("location", "/login");
      response.end();
    };
    const { headers } = await ask(`${base()}/`, asOwner);
    expect(headers).toEqual({
      "content-security-policy": "default-src *, sandbox",
      "x-content-type-options": "nosniff",
      location: `${base()}/login`,
      date: expect.any(String),
      connection: "close",
      "content-length": "0",
    });
  });

  test("keys, cookies and what belongs to the connection are not passed on", async () => {
    await ask(`${base()}/`, {
      ...asOwner,
      "x-api-key": KEY,
      cookie: "a=b",
      connection: "x-hop, close",
      "x-hop": "1",
      te: "trailers",
      "proxy-authorization": "x",
      "x-forwarded-for": "10.0.0.1",
      forwarded: "for=10.0.0.1",
      "x-mine": "kept",
    });
    expect(seen[0]?.headers).toEqual({
      "x-mine": "kept",
      host: `localhost:${port}`,
      "x-forwarded-proto": "http",
      connection: "close",
    });
  });
});

test("without keys everybody gets in who gets in at all, and foreign pages do not", async () => {
  open = await openService("off");
  onTestFinished(() => open[Symbol.asyncDispose]());
  expect(await ask(`${base()}/`)).toMatchObject({ status: 200 });
  expect(await ask("/", { host: hostName() })).toMatchObject({ status: 200 });
  expect(await ask(`${base()}/`, { origin: "null" })).toMatchObject({ status: 403 });
  expect(
    await ask("/", { host: hostName(), origin: "http://evil.example" }, { method: "POST", body: "a=b" }),
  ).toMatchObject({
    status: 403,
  });
});

describe("what is carried", () => {
  test("a port where nothing listens is named", async () => {
    expect(await ask(`${base(SANDBOX, 81)}/`, asOwner)).toMatchObject({
      status: 502,
      body: expect.stringContaining("nothing listens at port 81 of the sandbox"),
    });
  });

  test("20 MB each way arrive unchanged, with and without a length", async () => {
    answer = (request, response) => void request.pipe(response);
    const body = randomBytes(20 << 20);
    const hash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
    const echo = await fetch(`http://${open.http}${base()}/`, { method: "POST", headers: asOwner, body });
    expect(hash(await echo.bytes())).toBe(hash(body));
    const streamed = new ReadableStream({
      start(controller) {
        controller.enqueue(body);
        controller.close();
      },
    });
    const init = { method: "PUT", headers: asOwner, body: streamed, duplex: "half" } as RequestInit;
    expect(hash(await (await fetch(`http://${open.http}${base()}/`, init)).bytes())).toBe(hash(body));
    expect(seen.map(({ headers }) => [headers["content-length"], headers["transfer-encoding"]])).toEqual([
      [String(body.length), undefined],
      [undefined, "chunked"],
    ]);
  });

  test("the head of an answer comes before there is content, and the content when there is", async () => {
    for (const length of [undefined, 5, 1_000_000]) {
      let made: import("node:http").ServerResponse | undefined;
      answer = (_request, response) => {
        made = response;
        response.writeHead(200, length === undefined ? {} : { "content-length": length }).flushHeaders();
      };
      const [host, number] = open.http.split(":");
      const request = httpRequest({ host, port: number, path: `${base()}/`, headers: asOwner, agent: false }).end();
      const [response] = (await withoutHanging(() => once(request, "response"))) as [IncomingMessage];
      expect(response.statusCode).toBe(200);
      made?.end("x".repeat(length ?? 5));
      expect((await buffer(response)).length).toBe(length ?? 5);
    }
  });

  test("an answer comes as it is made, and its breaking off shows", async () => {
    const steps = Promise.withResolvers<void>();
    answer = async (request, response) => {
      response.write("one");
      await steps.promise;
      request.socket.destroy();
    };
    const response = await fetch(`http://${open.http}${base()}/`, { headers: asOwner });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("one");
    steps.resolve();
    await expect(reader.read()).rejects.toThrow();
  });

  test("a long answer of a known length is as long as that, however it comes, and its breaking off shows", async () => {
    const whole = randomBytes(3_000_001);
    const head = (length: number): string => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;
    const raw = createTcpServer((socket) => void socket.once("data", (asked) => send(socket, asked.toString()))).listen(
      0,
    );
    onTestFinished(() => void raw.close());
    const send = async (socket: Socket, asked: string): Promise<void> => {
      socket.on("error", () => {});
      if (asked.startsWith("HEAD")) socket.end(head(whole.length));
      else if (asked.includes("/together")) socket.end(Buffer.concat([Buffer.from(head(whole.length)), whole]));
      else if (asked.includes("/more")) socket.end(Buffer.concat([Buffer.from(head(whole.length)), whole, whole]));
      else if (asked.includes("/half")) socket.end(Buffer.concat([Buffer.from(head(whole.length)), whole.subarray(9)]));
      else {
        socket.write(head(whole.length));
        await setImmediate();
        socket.end(whole);
      }
    };
    ({ port } = raw.address() as AddressInfo);
    const get = (path: string, method = "GET"): Promise<Response> =>
      fetch(`http://${open.http}${base()}/${path}`, { headers: asOwner, method });
    for (const path of ["together", "more", "apart"]) {
      expect(whole.equals(await (await get(path)).bytes()), path).toBe(true);
    }
    await expect((await get("half")).bytes()).rejects.toThrow();
    const { headers } = await get("", "HEAD");
    expect(headers.get("content-length")).toBe(String(whole.length));
  });

  test("a program whose answer nobody reads is held up", async () => {
    const length = 64 * 2 ** 20;
    const block = Buffer.alloc(2 ** 20);
    let sent = 0;
    const stuck = Promise.withResolvers<void>();
    answer = async (_request, response) => {
      response.writeHead(200, { "content-length": length });
      for (; sent < length; sent += block.length) {
        if (response.write(block)) continue;
        const drained = once(response, "drain");
        // Nothing moves although the loop has turned many times: everything on the way is full.
        for (let turns = 0, at = -1; turns < 2000; turns++) {
          const { bytesWritten } = response.socket!;
          if (bytesWritten !== at) turns = 0;
          at = bytesWritten;
          await setImmediate();
          if (!response.writableNeedDrain) break;
        }
        if (response.writableNeedDrain) stuck.resolve();
        await drained;
      }
      response.end();
    };
    const [host, number] = open.http.split(":");
    const request = httpRequest({ host, port: number, path: `${base()}/`, headers: asOwner, agent: false }).end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    await stuck.promise;
    expect(sent).toBeLessThan(length);
    expect((await buffer(response)).length).toBe(length);
  });

  test("who leaves ends what was asked for", async () => {
    answer = (_request, response) => void response.write("x");
    const leaving = new AbortController();
    const response = await fetch(`http://${open.http}${base()}/`, { headers: asOwner, signal: leaving.signal });
    expect(response.status).toBe(200);
    leaving.abort();
    await eventually(() => expect(seen[0]?.socket.destroyed).toBe(true));
  });

  test("statuses, methods and answers without a body pass", async () => {
    answer = (request, response) => {
      response.statusCode = request.method === "DELETE" ? 204 : request.method === "HEAD" ? 200 : 418;
      response.end(request.method === "DELETE" ? undefined : "body");
    };
    expect(await ask(`${base()}/`, asOwner, { method: "PATCH", body: "x" })).toMatchObject({
      status: 418,
      body: "body",
    });
    expect(await ask(`${base()}/`, asOwner, { method: "DELETE" })).toMatchObject({ status: 204, body: "" });
    expect(await ask(`${base()}/`, asOwner, { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });

  test("HTTP/2 passes as well", async () => {
    answer = (request, response) => void request.pipe(response);
    const session = connectHttp2(`http://${open.http}`);
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":path": `${base()}/two`, ...asOwner });
    stream.end("over two");
    expect((await buffer(stream)).toString()).toBe("over two");
    expect(seen[0]?.url).toBe("/two");
  });

  test("an answer that is not HTTP is no answer", async () => {
    const liar = createTcpServer((socket: Socket) => socket.end("220 smtp ready\r\n")).listen(0, "127.0.0.1");
    onTestFinished(() => void liar.close());
    await once(liar, "listening");
    ({ port } = liar.address() as AddressInfo);
    expect(await ask(`${base()}/`, asOwner)).toMatchObject({
      status: 502,
      body: expect.stringContaining("no answer that is HTTP"),
    });
  });

  test.each([
    ["two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n"],
    ["a length and pieces", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"],
    ["endless headers", `X: ${"x".repeat(200_000)}\r\n`],
  ])("an answer with %s is refused", async (_what, lines) => {
    const liar = createTcpServer((socket: Socket) => {
      socket.on("error", () => {}).end(`HTTP/1.1 200 OK\r\n${lines}\r\nx`);
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void liar.close());
    await once(liar, "listening");
    ({ port } = liar.address() as AddressInfo);
    expect(await ask(`${base()}/`, asOwner)).toMatchObject({ status: 502 });
  });

  test("LIVE-10 a request in two meanings does not get through", async () => {
    const socket = connect(Number(open.http.split(":")[1]), "127.0.0.1");
    socket.end(
      `POST ${base()}/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: 5\r\n` +
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    expect((await buffer(socket)).toString()).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen).toEqual([]);
  });

  test("WebSockets are carried both ways on both forms, and are let in alike", async () => {
    const sockets = new WebSocketServer({ server: inside });
    onTestFinished(() => void sockets.close());
    sockets.on("connection", (socket) =>
      socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary })),
    );
    const echo = async (url: string, headers: Record<string, string>): Promise<Buffer> => {
      const socket = new WebSocket(url, { headers });
      onTestFinished(() => socket.terminate());
      await once(socket, "open");
      const big = randomBytes(1 << 20);
      socket.send(big);
      const [back] = (await once(socket, "message")) as [Buffer];
      expect(back.equals(big)).toBe(true);
      socket.close(4001, "bye");
      const [code] = await once(socket, "close");
      expect(code).toBe(4001);
      return back;
    };
    await echo(`ws://${open.http}${base()}/ws`, asOwner);
    await echo(`ws://${open.http}/ws`, { host: hostName(), cookie: `agentfense_port=${token()}` });
    for (const headers of [{}, { ...asOwner, origin: "http://evil.example" }]) {
      const refused = new WebSocket(`ws://${open.http}${base()}/ws`, { headers });
      const [error] = await once(refused, "error");
      expect(String(error)).toMatch(/40[13]/);
    }
  });

  test("a side of a WebSocket that vanishes takes the other along, and no listeners heap up on either", async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn);
    onTestFinished(() => void process.off("warning", warn));
    const sockets = new WebSocketServer({ server: inside });
    onTestFinished(() => void sockets.close());
    for (const vanishing of ["outside", "inside"]) {
      const accepted = once(sockets, "connection");
      const outer = new WebSocket(`ws://${open.http}${base()}/ws`, { headers: asOwner });
      const [[inner]] = (await Promise.all([accepted, once(outer, "open")])) as [[WebSocket], unknown];
      const [gone, left] = vanishing === "outside" ? [outer, inner] : [inner, outer];
      const ended = once(left, "close");
      gone.terminate();
      expect((await ended)[0]).toBe(1006);
    }
    expect(warnings.map(({ message }) => message)).toEqual([]);
  });

  test("a refusal to become a WebSocket is passed on", async () => {
    inside.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 418 No\r\nContent-Length: 3\r\n\r\ntea"));
    const socket = new WebSocket(`ws://${open.http}${base()}/ws`, { headers: asOwner });
    const [error] = await once(socket, "error");
    expect(String(error)).toContain("418");
  });
});
