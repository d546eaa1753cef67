import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { createServer as createTlsServer, request as httpsRequest, type Server } from "node:https";
import { type AddressInfo, connect, createServer, type Server as NetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxAuthority } from "../../../src/isolation/network/certificates.ts";
import { openTls } from "../../../src/isolation/network/inspect.ts";
import { RequestReader } from "../../../src/isolation/network/requests.ts";
import { parseSecretRule, placeholderFor, type Secret, SecretSet } from "../../../src/isolation/network/secrets.ts";
import { hostTrust } from "../../../src/isolation/network/trust.ts";
import { TurnShare } from "../../../src/isolation/network/turn-share.ts";
import { networkPolicy } from "./filtered-box.ts";
import { refusedRequests } from "./refused-requests.ts";

const run = promisify(execFile);
const HOST = "api.test";
const VALUE = "sk-ant-api03-Zq7+Rw/91kLm=XyT";

/** Whom the outside world trusts. */
const world = new SandboxAuthority([HOST, "other.test"]);
const trust = hostTrust([world.pem]);
const reader = new RequestReader();

let directory: string;
const open: (Server | NetServer)[] = [];
const sockets = new Set<Socket>();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "agentfense-opened-"));
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of open.splice(0)) server.close();
  await rm(directory, { recursive: true, force: true });
});

async function listening(server: Server | NetServer): Promise<number> {
  open.push(server);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

interface Upstream {
  readonly port: number;
  /** What arrived: method, target, headers, body. */
  readonly requests: {
    method: string;
    url: string;
    headers: Record<string, string | string[] | undefined>;
    body: string;
  }[];
  readonly server: Server;
}

/** A host outside. By default it sends back what it was sent, as JSON. */
async function host(
  options: { name?: string; answer?: RequestListener; authority?: SandboxAuthority } = {},
): Promise<Upstream> {
  const { key, certificate } = (options.authority ?? world).leafFor(options.name ?? HOST);
  const requests: Upstream["requests"] = [];
  const server = createTlsServer({ key, cert: certificate }, async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method!, url: request.url!, headers: request.headers, body });
    if (options.answer !== undefined) options.answer(request, response);
    else response.end(JSON.stringify(requests.at(-1)));
  });
  return { port: await listening(server), requests, server };
}

interface Opened {
  readonly port: number;
  readonly authority: SandboxAuthority;
  readonly events: string[];
  readonly secret: Secret;
}

/** The opened way to a host, with one secret. */
async function opened(
  upstream: Upstream,
  {
    place = "header x-api-key",
    hosts = [HOST],
    rule = {},
    name = HOST,
  }: { place?: string; hosts?: string[]; rule?: object; name?: string } = {},
): Promise<Opened> {
  const authority = new SandboxAuthority([name]);
  const secret: Secret = {
    ...parseSecretRule("API_KEY", hosts, place),
    value: VALUE,
    placeholder: placeholderFor(VALUE),
  };
  const secrets = new SecretSet([secret]);
  const events: string[] = [];
  const server = createServer((socket) => {
    const port = (server.address() as AddressInfo).port;
    const policy = networkPolicy({ host: name, ports: [port], ...rule }, `second.test:${port}`);
    openTls(
      socket,
      {
        host: name,
        port,
        secrets,
        share: new TurnShare(),
        policy: () => policy,
        dial: async () => {
          const dialled = connect(upstream.port, "127.0.0.1");
          await once(dialled, "connect");
          return dialled;
        },
        onDenied: (sentence) => events.push(`denied: ${sentence}`),
        onMisplaced: (sentence) => events.push(`misplaced: ${sentence}`),
      },
      { authority, reader, trust },
    );
  });
  return { port: await listening(server), authority, events, secret };
}

async function curl(way: Opened, options: readonly string[], { path = "/", name = HOST } = {}): Promise<string> {
  const ca = join(directory, "ca.pem");
  await writeFile(ca, way.authority.pem);
  const fixed = [
    "-sS",
    "--max-time",
    "60",
    "--noproxy",
    "*",
    "--cacert",
    ca,
    "--resolve",
    `${name}:${way.port}:127.0.0.1`,
  ];
  const { stdout } = await run("curl", [...fixed, ...options, `https://${name}:${way.port}${path}`]);
  return stdout;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

async function ask(
  way: Opened,
  {
    path = "/",
    body,
    ...more
  }: { method?: string; path?: string; headers?: Record<string, string>; body?: string; agent?: false } = {},
): Promise<Answer> {
  const request = httpsRequest({
    host: "127.0.0.1",
    port: way.port,
    servername: HOST,
    ca: way.authority.pem,
    path,
    agent: false,
    ...more,
    headers: { host: `${HOST}:${way.port}`, ...more.headers },
  });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("latin1")) text += chunk;
  return { status: response.statusCode!, headers: response.headers, body: text };
}

/** Sends bytes over one TLS connection and gives all that comes back. */
async function raw(way: Opened, text: string): Promise<string> {
  const socket = connectTls({ host: "127.0.0.1", port: way.port, servername: HOST, ca: way.authority.pem });
  socket.on("error", () => {});
  socket.write(text, "latin1");
  let all = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    all += chunk;
  });
  await once(socket, "close");
  return all;
}

test("the value arrives in its place from curl, Node and Python, and the echo has the placeholder", async () => {
  const upstream = await host();
  const way = await opened(upstream);
  const { placeholder } = way.secret;
  expect(JSON.parse(await curl(way, ["-H", `x-api-key: ${placeholder}`])).headers["x-api-key"]).toBe(placeholder);
  const { body } = await ask(way, { headers: { "X-API-Key": placeholder } });
  expect(JSON.parse(body).headers["x-api-key"]).toBe(placeholder);
  const program = [
    "import ssl, sys, urllib.request, socket",
    "real = socket.getaddrinfo",
    "socket.getaddrinfo = lambda host, *more: real('127.0.0.1', *more)",
    "context = ssl.create_default_context(cafile=sys.argv[1])",
    "request = urllib.request.Request(sys.argv[2], headers={'x-api-key': sys.argv[3]})",
    "print(urllib.request.urlopen(request, context=context).read().decode())",
  ].join("\n");
  const { stdout } = await run("python3", [
    "-c",
    program,
    join(directory, "ca.pem"),
    `https://${HOST}:${way.port}/`,
    placeholder,
  ]);
  expect(JSON.parse(stdout).headers["x-api-key"]).toBe(placeholder);
  expect(upstream.requests.map(({ headers }) => headers["x-api-key"])).toEqual([VALUE, VALUE, VALUE]);
  expect(way.events).toEqual([]);
});

test("bearer, basic, query and body reach the host with the value", async () => {
  for (const [place, options, path, seen] of [
    [
      "bearer",
      (ph: string) => ["-H", `Authorization: Bearer ${ph}`],
      () => "/",
      ({ headers }) => headers.authorization === `Bearer ${VALUE}`,
    ],
    [
      "basic",
      (ph: string) => ["-u", `me:${ph}`],
      () => "/",
      ({ headers }) => Buffer.from(String(headers.authorization).slice(6), "base64").toString() === `me:${VALUE}`,
    ],
    [
      "query key",
      () => [],
      (ph: string) => `/?a=b&key=${ph}`,
      ({ url }) => url === `/?a=b&key=${encodeURIComponent(VALUE)}`,
    ],
    ["body", (ph: string) => ["-d", `{"key":"${ph}"}`], () => "/", ({ body }) => body === `{"key":"${VALUE}"}`],
  ] as [string, (ph: string) => string[], (ph: string) => string, (request: Upstream["requests"][0]) => boolean][]) {
    const upstream = await host();
    const way = await opened(upstream, { place });
    const { placeholder } = way.secret;
    const echo = await curl(way, options(placeholder), { path: path(placeholder) });
    expect(upstream.requests.map(seen), place).toEqual([true]);
    expect(echo).not.toContain(VALUE);
    expect(echo).not.toContain(encodeURIComponent(VALUE));
    expect(echo).not.toContain(Buffer.from(`me:${VALUE}`).toString("base64").slice(4, -4));
    expect(way.events).toEqual([]);
  }
});

test("anywhere else the placeholder travels as it is, and each place is told", async () => {
  const upstream = await host();
  const way = await opened(upstream);
  const { placeholder } = way.secret;
  await curl(way, ["-H", `x-other: ${placeholder}`, "-d", `text ${placeholder}`], { path: `/?q=${placeholder}` });
  const [request] = upstream.requests;
  expect(request).toMatchObject({ url: `/?q=${placeholder}`, body: `text ${placeholder}` });
  expect(request!.headers["x-other"]).toBe(placeholder);
  const told = (where: string) =>
    `misplaced: the placeholder of API_KEY went to api.test in ${where}; the value goes into header x-api-key of requests to api.test alone`;
  expect(way.events).toEqual([told("the address"), told("the header x-other"), told("the body")]);
});

test("an opened host that a secret is not for gets the placeholder", async () => {
  const upstream = await host({ name: "other.test" });
  const way = await opened(upstream, { name: "other.test" });
  await curl(way, ["-H", `x-api-key: ${way.secret.placeholder}`], { name: "other.test" });
  expect(upstream.requests[0]!.headers["x-api-key"]).toBe(way.secret.placeholder);
  expect(way.events).toEqual([
    expect.stringContaining("the placeholder of API_KEY went to other.test in the header x-api-key"),
  ]);
});

/** An answer in pieces, each of which goes out by itself. */
function inPieces(pieces: readonly (string | Buffer)[], headers: Record<string, string> = {}): RequestListener {
  return async (_request, response) => {
    response.writeHead(200, headers);
    for (const piece of pieces) await new Promise((resolve) => response.write(piece, resolve));
    response.end();
  };
}

test("an echo is masked in headers, across chunks, and packed although nobody asked for it", async () => {
  const text = `key ${VALUE} and ${Buffer.from(VALUE).toString("base64")}.\nkey ${VALUE}`;
  const packed = gzipSync(text);
  for (const answer of [
    inPieces([...text], { "x-echo": `you sent ${VALUE}` }),
    inPieces([packed.subarray(0, 20), packed.subarray(20)], { "content-encoding": "gzip", "x-echo": VALUE }),
    inPieces([text], { "content-length": String(text.length), "set-cookie": `key=${encodeURIComponent(VALUE)}` }),
  ]) {
    const upstream = await host({ answer });
    const way = await opened(upstream);
    const { placeholder } = way.secret;
    const { headers, body } = await ask(way, {
      headers: { "x-api-key": placeholder, "accept-encoding": "gzip, br", range: "bytes=0-3" },
    });
    expect(body).toBe(
      text
        .replaceAll(VALUE, placeholder)
        .replace(Buffer.from(VALUE).toString("base64"), (found) =>
          body.slice(text.indexOf(found), text.indexOf(found) + found.length),
        ),
    );
    expect(body).not.toContain(Buffer.from(VALUE).toString("base64").slice(0, 30));
    expect(JSON.stringify(headers)).not.toContain(VALUE);
    expect(JSON.stringify(headers)).not.toContain(encodeURIComponent(VALUE));
    expect(headers["content-encoding"]).toBeUndefined();
    expect(upstream.requests[0]!.headers).toMatchObject({ "accept-encoding": "identity" });
    expect(upstream.requests[0]!.headers.range).toBeUndefined();
  }
});

test("an encoding that cannot be read is not passed on", async () => {
  const way = await opened(await host({ answer: inPieces([VALUE], { "content-encoding": "rot13" }) }));
  expect(await ask(way)).toMatchObject({ status: 502, body: "api.test answered in an encoding that cannot be read\n" });
});

test("events go on one by one while the response lasts", async () => {
  let next: (() => void) | undefined;
  const answer: RequestListener = async (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const number of [1, 2, 3]) {
      response.write(`data: ${number} ${VALUE}\n\n`);
      await new Promise<void>((resolve) => {
        next = resolve;
      });
    }
    response.end();
  };
  const way = await opened(await host({ answer }));
  const request = httpsRequest({
    host: "127.0.0.1",
    port: way.port,
    servername: HOST,
    ca: way.authority.pem,
    headers: { host: `${HOST}:${way.port}` },
    agent: false,
  });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const seen: string[] = [];
  // The host sends the next one only when this one has arrived: were it held back, nothing would go on.
  for await (const chunk of response.setEncoding("utf8")) {
    seen.push(chunk as string);
    next?.();
  }
  expect(seen).toEqual([1, 2, 3].map((number) => `data: ${number} ${way.secret.placeholder}\n\n`));
});

test("a host whose certificate is of an unknown authority, or for another name, gets no request", async () => {
  for (const upstream of [
    await host({ authority: new SandboxAuthority([HOST]) }),
    await host({ name: "other.test" }),
  ]) {
    const way = await opened(upstream);
    const { status, body } = await ask(way, { headers: { "x-api-key": way.secret.placeholder } });
    expect(status).toBe(502);
    expect(body).toMatch(/^api\.test cannot be reached: .*(self-signed|unable to|does not match)/);
    expect(upstream.requests).toEqual([]);
  }
});

test("a request for another host on an opened connection is refused, also as the second one", async () => {
  const upstream = await host();
  const way = await opened(upstream);
  expect(await ask(way, { headers: { host: "second.test" } })).toMatchObject({ status: 421 });
  expect(await ask(way, { headers: { host: `${HOST}.` } })).toMatchObject({ status: 400 });
  expect(await ask(way, { headers: { host: HOST } })).toMatchObject({ status: 400 }); // the port is not the usual one
  const answers = await raw(
    way,
    `GET /1 HTTP/1.1\r\nHost: ${HOST}:${way.port}\r\n\r\nGET /2 HTTP/1.1\r\nHost: second.test\r\n\r\n`,
  );
  expect(answers).toMatch(/^HTTP\/1\.1 200 .*HTTP\/1\.1 421 /s);
  expect(upstream.requests.map(({ url }) => url)).toEqual(["/1"]);
  expect(way.events).toHaveLength(4);
});

test.each(refusedRequests("NAME", "HOST"))(
  "a request %s is refused, told, and never reaches the host",
  async (_, bytes, answer) => {
    const upstream = await host();
    const way = await opened(upstream);
    expect(await raw(way, bytes.replaceAll("NAME", HOST).replaceAll("HOST", `${HOST}:${way.port}`))).toMatch(answer);
    expect(upstream.requests).toEqual([]);
    expect(way.events).toEqual([expect.stringMatching(/^denied: /)]);
  },
);

test("methods and paths of a rule are held to, for each request", async () => {
  const upstream = await host();
  const way = await opened(upstream, { rule: { methods: ["GET"], paths: ["/v1/*"] } });
  expect(await ask(way, { path: "/v1/a?b=/c" })).toMatchObject({ status: 200 });
  for (const [method, path] of [
    ["POST", "/v1/a"],
    ["GET", "/v2/a"],
    ["GET", "/v1/../v2"],
    ["GET", "/v1/%2e%2e/v2"],
    ["HEAD", "/v1/a"],
  ] as const) {
    expect(await ask(way, { method, path })).toMatchObject({ status: 403 });
  }
  expect(way.events[0]).toBe("denied: POST /v1/a at api.test is not on this sandbox's list; ask your user for it");
  expect(upstream.requests.map(({ url }) => url)).toEqual(["/v1/a?b=/c"]);
});

test("a redirect to another host is the program's to follow, and has nothing but the placeholder", async () => {
  const answer = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(302, { location: `https://other.test/?key=${VALUE}` }).end();
  };
  const way = await opened(await host({ answer }));
  const { status, headers } = await ask(way, { headers: { "x-api-key": way.secret.placeholder } });
  expect([status, headers.location]).toEqual([302, `https://other.test/?key=${way.secret.placeholder}`]);
});

test("a body of many megabytes passes both ways, in chunks and with a length, and waits for whoever is slow", async () => {
  const size = 8 * 1024 * 1024;
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.method === "POST") response.end("got it");
    else inPieces(Array.from({ length: 64 }, () => Buffer.alloc(size / 64, "x")))(request, response as never);
  };
  const upstream = await host({ answer });
  const way = await opened(upstream);
  expect((await ask(way)).body.length).toBe(size);
  const file = join(directory, "large");
  await writeFile(file, Buffer.alloc(size, "y"));
  expect(await curl(way, ["--data-binary", `@${file}`])).toBe("got it");
  expect(
    await curl(way, ["-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "--data-binary", `@${file}`]),
  ).toBe("got it");
  expect(upstream.requests.slice(1).map(({ body }) => body.length)).toEqual([size, size]);
});

/** A frame of a WebSocket, as servers send them. */
function frame(text: string): Buffer {
  const length = text.length < 126 ? [text.length] : [126, text.length >> 8, text.length & 0xff];
  return Buffer.concat([Buffer.of(0x81, ...length), Buffer.from(text)]);
}

test("a WebSocket passes both ways, its handshake gets the value, and what comes back in a frame is masked", async () => {
  const upstream = await host();
  const seen: string[] = [];
  const frames = [frame(`hello ${VALUE}`), frame("x"), frame(`${"y".repeat(200)} ${VALUE}`)];
  upstream.server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    seen.push(String(request.headers["x-api-key"]), String(request.headers["sec-websocket-extensions"]));
    const answer = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nx-echo: ${VALUE}\r\n\r\n`;
    socket.write(Buffer.concat([Buffer.from(answer), frames[0]!.subarray(0, 20)]));
    // Each further byte goes out by itself; the last frame has no length of one byte.
    socket.once("data", async (chunk: Buffer) => {
      const rest = Buffer.concat([frames[0]!.subarray(20), ...frames.slice(1), frame(chunk.toString())]);
      for (const byte of rest) await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
      socket.end();
    });
  });
  const way = await opened(upstream);
  const headers = `Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-extensions: permessage-deflate\r\nx-api-key: ${way.secret.placeholder}`;
  const answer = await raw(way, `GET / HTTP/1.1\r\nHost: ${HOST}:${way.port}\r\n${headers}\r\n\r\nfrom inside`);
  expect(answer).toMatch(/^HTTP\/1\.1 101 /);
  const expected = Buffer.concat([...frames, frame("from inside")])
    .toString("latin1")
    .replaceAll(VALUE, way.secret.placeholder);
  expect(answer.slice(answer.indexOf("\r\n\r\n") + 4)).toBe(expected);
  expect(answer).toContain(`x-echo: ${way.secret.placeholder}\r\n`);
  expect(seen).toEqual([VALUE, "undefined"]);
});

test("a frame of a WebSocket goes on when it is whole, whatever it ends with", async () => {
  const upstream = await host();
  upstream.server.on("upgrade", (_request: IncomingMessage, socket: Socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.write(frame(VALUE.slice(0, 15)));
    socket.once("data", () => socket.end()); // not before the frame has been seen inside
  });
  const way = await opened(upstream);
  const socket = connectTls({ host: "127.0.0.1", port: way.port, servername: HOST, ca: way.authority.pem });
  socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}:${way.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  let all = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    all += chunk;
    if (all.endsWith(VALUE.slice(0, 15))) socket.write("seen");
  });
  await once(socket, "close");
  expect(all).toContain(VALUE.slice(0, 15));
});

test("a client that speaks nothing but HTTP/2 gets that, one that offers both speaks HTTP/1.1", async () => {
  const way = await opened(await host());
  const protocol = (ALPNProtocols: string[]) =>
    new Promise<string>((resolve) => {
      const socket = connectTls({
        host: "127.0.0.1",
        port: way.port,
        servername: HOST,
        ca: way.authority.pem,
        ALPNProtocols,
      });
      socket.once("secureConnect", () => {
        resolve(String(socket.alpnProtocol));
        socket.destroy();
      });
      socket.once("error", ({ message }) => resolve(message));
    });
  expect(await protocol(["h2", "http/1.1"])).toBe("http/1.1");
  expect(await protocol(["h2"])).toBe("h2");
  expect(await protocol(["spdy/3"])).toMatch(/no application protocol/i);
});

test("one connection to the host serves one request after the other, and its end is the end of the box's", async () => {
  const upstream = await host();
  let connections = 0;
  upstream.server.on("secureConnection", () => {
    connections += 1;
  });
  const way = await opened(upstream);
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${HOST}:${way.port}\r\n\r\n`;
  upstream.server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === "/3") response.shouldKeepAlive = false;
  });
  const answers = await raw(way, get("/1") + get("/2") + get("/3"));
  expect(answers.match(/HTTP\/1\.1 200 /g)).toHaveLength(3);
  expect(connections).toBe(1);
});
