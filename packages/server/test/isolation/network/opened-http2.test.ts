import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { GOOD_ADDRESS, type Internet, makeCertificates, openInternet } from "../../../../../test/support/internet.ts";
import { parseSecretRule } from "../../../src/isolation/network/secrets.ts";
import { type FilteredBox, networkPolicy, openFilteredBox } from "./filtered-box.ts";

const VALUE = "ghp_Zq7Rw91kLmXyTAbCdEfGhIjKlMnOpQrStUv1";
const CALL = "/test.Echo/Call";

interface Seen {
  readonly headers: IncomingHttpHeaders;
  /** The code with which its stream was reset, when it is closed. */
  reset?: number;
}

let internet: Internet;
let host: Http2SecureServer;
let box: FilteredBox;
let placeholder: string;
const seen: Seen[] = [];
let sessions = 0;

beforeAll(async () => {
  const names = ["api.test", "calls.test", "old.test"];
  const { ca, key, cert } = makeCertificates(names);
  host = createSecureServer({ key, cert })
    .on("stream", serve)
    .on("session", () => void sessions++);
  host.listen(0, "127.0.0.1");
  const old = createHttpsServer({ key, cert }, (_request, response) => response.end("old"));
  old.listen(0, "127.0.0.1");
  await Promise.all([once(host, "listening"), once(old, "listening")]);
  internet = await openInternet(Object.fromEntries(names.map((name) => [name, [GOOD_ADDRESS]])));
  const ports = { 443: (host.address() as AddressInfo).port, 22: (old.address() as AddressInfo).port };
  Object.assign(internet, { seam: { ...internet.seam, ports, certificates: [ca] } });
  const secret = { ...parseSecretRule("KEY", ["api.test", "old.test"], "header x-api-key"), value: VALUE };
  const lines = ["api.test", { host: "calls.test", methods: ["POST"], paths: [CALL] }, "old.test:22"];
  box = await openFilteredBox(internet, lines, [secret]);
  placeholder = box.placeholders.KEY!;
});

afterAll(async () => {
  await box[Symbol.asyncDispose]();
  await internet[Symbol.asyncDispose]();
  host.close();
});

beforeEach(() => {
  seen.splice(0);
  box.events.splice(0);
});

/** Sends back what it gets, with the key that came along, wherever a response can have it. */
function serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const one: Seen = { headers };
  seen.push(one);
  stream
    .on("error", () => {})
    .once("close", () => {
      one.reset = stream.rstCode;
    });
  const key = String(headers["x-api-key"]);
  const path = headers[":path"]!;
  if (path === CALL) return void serveCall(stream, key);
  if (path === "/empty") return void stream.respond({ ":status": 204, "x-echo": key }, { endStream: true });
  if (path === "/packed") {
    stream.respond({ "content-encoding": "gzip" });
    return void stream.end(gzipSync(`packed ${key}`));
  }
  if (path === "/broken") {
    stream.respond({});
    return void stream.write("begun", () => stream.destroy(new Error("broken")));
  }
  if (path === "/never") return;
  stream.respond({ "x-echo": key, "content-type": "text/plain" }, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers({ "x-last": `last ${key}` }));
  stream.write(`${key} `);
  stream.pipe(stream);
}

/** gRPC: one message for each, and the key in a message, in the first metadata and in the last. */
function serveCall(stream: ServerHttp2Stream, key: string): void {
  stream.respond({ "content-type": "application/grpc", "x-echo": key }, { waitForTrailers: true });
  stream.once("wantTrailers", () =>
    stream.sendTrailers({ "grpc-status": "0", "grpc-message": `bye ${key}`, "x-last": key }),
  );
  stream.on("data", (piece: Buffer) => {
    const said = piece.subarray(5).toString();
    stream.write(message(said === "key" ? `${key} ${VALUE.slice(0, 12)}` : said));
  });
  stream.once("end", () => stream.end());
}

function message(content: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(content.length, 1);
  return Buffer.concat([head, Buffer.from(content)]);
}

/** A client that was not made for this: gRPC's own. */
async function caller(name: string, port = 443): Promise<grpc.Client> {
  return new grpc.Client(
    `${await box.addressOf(name)}:${box.actualPort(port)}`,
    grpc.credentials.createSsl(box.authority),
    { "grpc.ssl_target_name_override": name, "grpc.default_authority": port === 443 ? name : `${name}:${port}` },
  );
}

const plain = { to: (content: string) => Buffer.from(content), from: (bytes: Buffer) => bytes.toString() };

function metadata(): grpc.Metadata {
  const made = new grpc.Metadata();
  made.set("x-api-key", placeholder);
  return made;
}

function unary(client: grpc.Client, path: string, content: string) {
  return new Promise<{ error: grpc.ServiceError | null; answer: string | undefined }>((resolve) =>
    client.makeUnaryRequest(path, plain.to, plain.from, content, metadata(), (error, answer) =>
      resolve({ error, answer }),
    ),
  );
}

test("gRPC gets through with the value, and messages, metadata and the status come back with the placeholder", async () => {
  const client = await caller("api.test");
  const call = client.makeBidiStreamRequest(CALL, plain.to, plain.from, metadata());
  const [first, status] = [once(call, "metadata"), once(call, "status")];
  const answers = call[Symbol.asyncIterator]();
  const ask = async (content: string): Promise<string> => {
    call.write(content);
    return (await answers.next()).value as string;
  };
  // The next message is not sent before the answer to this one is here: were the beginning of a value held back, all would stand.
  expect(await ask(VALUE.slice(0, 20))).toBe(VALUE.slice(0, 20));
  expect(await ask("key")).toBe(`${placeholder} ${VALUE.slice(0, 12)}`);
  expect(await ask("")).toBe("");
  call.end();
  expect((await answers.next()).done).toBe(true);
  expect((await first)[0].get("x-echo")).toEqual([placeholder]);
  const [last] = (await status) as [grpc.StatusObject];
  expect([last.code, last.details, last.metadata.get("x-last")]).toEqual([0, `bye ${placeholder}`, [placeholder]]);
  expect(seen.map(({ headers }) => [headers["x-api-key"], headers.te])).toEqual([[VALUE, "trailers"]]);
  expect(await unary(client, CALL, "one more")).toEqual({ error: null, answer: "one more" });
  expect(box.events.map(({ kind }) => kind)).toContain("secret_used");
  client.close();
});

test("a call that is cancelled is cancelled at the host", async () => {
  const client = await caller("api.test");
  const call = client.makeBidiStreamRequest("/never", plain.to, plain.from, metadata()).on("error", () => {});
  call.write("x");
  await eventually(() => expect(seen).toHaveLength(1));
  call.cancel();
  await eventually(() => expect(seen[0]!.reset).toBe(constants.NGHTTP2_CANCEL));
  client.close();
});

test("a method that is not listed is refused in gRPC's words, and so is a host that does not speak HTTP/2", async () => {
  const client = await caller("calls.test");
  expect(await unary(client, CALL, "x")).toEqual({ error: null, answer: "x" });
  const { error } = await unary(client, "/test.Echo/Other", "x");
  const sentence = "POST /test.Echo/Other at calls.test is not on this sandbox's list; ask your user for it";
  expect([error?.code, error?.details]).toEqual([grpc.status.PERMISSION_DENIED, sentence]);
  expect(seen.map(({ headers }) => headers[":path"])).toEqual([CALL]);
  await eventually(() =>
    expect(box.events).toContainEqual(expect.objectContaining({ kind: "denied", host: "calls.test", sentence })),
  );
  client.close();
  const late = await caller("old.test", 22);
  const { error: old } = await unary(late, CALL, "x");
  expect([old?.code, old?.details]).toEqual([
    grpc.status.UNAVAILABLE,
    expect.stringMatching(/^old\.test cannot be reached: /),
  ]);
  late.close();
});

async function session(): Promise<ClientHttp2Session> {
  const socket = await box.dialTls("api.test", { ALPNProtocols: ["h2"], ca: box.authority });
  return connect("https://api.test", { createConnection: () => socket }).on("error", () => {});
}

async function ask(client: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: Buffer) {
  const stream = client.request(
    { ":path": "/", "x-api-key": placeholder, ...headers },
    { endStream: body === undefined },
  );
  const trailers: IncomingHttpHeaders = {};
  stream.on("trailers", (more) => Object.assign(trailers, more));
  if (body !== undefined) stream.end(body);
  const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders];
  return { status: answer[":status"], headers: answer, body: await text(stream), trailers };
}

test("plain HTTP/2 is read, changed and masked like HTTP/1.1, over one connection to the host", async () => {
  const before = sessions;
  const client = await session();
  const large = Buffer.alloc(4 * 1024 * 1024, "y");
  const [first, second, third, fourth] = await Promise.all([
    ask(client, { ":method": "POST", "accept-encoding": "gzip", range: "bytes=0-3" }, large),
    ask(client, { ":path": "/empty", connection: undefined }),
    ask(client, { ":path": "/packed" }),
    ask(client, { ":method": "HEAD", cookie: ["a=1", "b=2"] }),
  ]);
  expect(first.body === `${placeholder} ${large}`).toBe(true);
  expect([first.headers["x-echo"], first.trailers["x-last"]]).toEqual([placeholder, `last ${placeholder}`]);
  expect([second.status, second.headers["x-echo"], second.body]).toEqual([204, placeholder, ""]);
  expect([third.body, third.headers["content-encoding"]]).toEqual([`packed ${placeholder}`, undefined]);
  expect([fourth.status, fourth.body]).toEqual([200, ""]);
  expect(seen.map(({ headers }) => headers["x-api-key"])).toEqual([VALUE, VALUE, VALUE, VALUE]);
  expect(seen[0]!.headers).toMatchObject({ "accept-encoding": "identity", ":authority": "api.test" });
  expect(seen[0]!.headers.range).toBeUndefined();
  expect(sessions - before).toBe(1);
  client.close();
});

test("an answer that the host breaks off does not look whole", async () => {
  const client = await session();
  const stream = client.request({ ":path": "/broken" }).on("error", () => {});
  stream.resume();
  await new Promise<void>((resolve) => stream.once("close", resolve));
  expect(stream.rstCode).not.toBe(constants.NGHTTP2_NO_ERROR);
  client.close();
});

test.each([
  ["for another host", { ":authority": "calls.test" }, 421],
  ["for a host that is not listed", { ":authority": "evil.test" }, 403],
  ["with two hosts", { ":authority": "api.test", host: "calls.test" }, 400],
  ["with an odd host", { ":authority": "api.test:443." }, 400],
  ["for another protocol", { ":scheme": "http" }, 400],
  ["for no path", { ":method": "OPTIONS", ":path": "*" }, 400],
  ["TRACE", { ":method": "TRACE" }, 403],
] as [string, OutgoingHttpHeaders, number][])(
  "a request %s is refused, told, and never reaches the host",
  async (_, headers, status) => {
    const client = await session();
    expect(await ask(client, headers)).toMatchObject({ status });
    expect(seen).toEqual([]);
    await eventually(() => expect(box.events).toContainEqual(expect.objectContaining({ kind: "denied", port: 443 })));
    client.close();
  },
);

test("CONNECT leads nowhere, and what is no HTTP/2 ends the connection", async () => {
  const client = await session();
  const tunnel = client.request({ ":method": "CONNECT", ":authority": "evil.test:443" }).on("error", () => {});
  tunnel.resume();
  const answered = once(tunnel, "response").then(([answer]) => answer[":status"] as number);
  expect(await Promise.race([answered, once(tunnel, "close").then(() => 400)])).toBeGreaterThanOrEqual(400);
  client.destroy();
  const socket = await box.dialTls("api.test", { ALPNProtocols: ["h2"], ca: box.authority });
  socket.write("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
  socket.resume();
  await once(socket, "close");
  expect(seen).toEqual([]);
});

test("a list that no longer has the host cuts calls that are under way", async () => {
  const client = await session();
  const stream = client.request({ ":path": "/never" }).on("error", () => {});
  stream.resume();
  await eventually(() => expect(seen).toHaveLength(1));
  const closed = once(client, "close");
  await box.gate.update(networkPolicy("calls.test:443"));
  await closed;
  await eventually(() => expect(seen[0]!.reset).toBeDefined());
});
