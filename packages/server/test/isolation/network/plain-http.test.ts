import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, type RequestOptions, request } from "node:http";
import { buffer, text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import {
  DEAD_ADDRESS,
  EVIL_ADDRESS,
  GOOD_ADDRESS,
  type Internet,
  openInternet,
} from "../../../../../test/support/internet.ts";
import { refusal } from "../../../src/isolation/network/policy.ts";
import { parseSecretRule } from "../../../src/isolation/network/secrets.ts";
import { closed, type FilteredBox, networkPolicy, openFilteredBox } from "./filtered-box.ts";
import { refusedRequests } from "./refused-requests.ts";

const LIST = [
  ...["good.test", "second.test", "inner.test", "dead.test"],
  { host: "seen.test", methods: ["GET"], paths: ["/v1/*"] },
];

let internet: Internet;
let box: FilteredBox;

beforeAll(async () => {
  internet = await openInternet({
    ...{ "good.test": [GOOD_ADDRESS], "second.test": [GOOD_ADDRESS], "seen.test": [GOOD_ADDRESS] },
    ...{ "evil.test": [EVIL_ADDRESS], "inner.test": ["169.254.169.254"], "dead.test": [DEAD_ADDRESS] },
  });
  const secret = { ...parseSecretRule("API_KEY", ["second.test"], "header x-api-key"), value: "sk-Zq7Rw91kLmXyT" };
  box = await openFilteredBox(internet, LIST, [secret]);
});

beforeEach(() => {
  internet.seen.length = 0;
});

afterAll(async () => {
  await box[Symbol.asyncDispose]();
  await internet[Symbol.asyncDispose]();
});

/** What a request as these bytes is answered with, to the end of the connection. */
async function raw(bytes: string, host = "good.test"): Promise<string> {
  const socket = await box.dial(host, 80);
  socket.write(bytes, "latin1");
  const answer = await text(socket);
  socket.destroy();
  return answer;
}

async function start(path: string, options: RequestOptions = {}) {
  const host = await box.addressOf("good.test");
  return request({ host, port: box.actualPort(80), path, setHost: false, headers: { Host: "good.test" }, ...options });
}

async function get(path: string, options: RequestOptions = {}): Promise<IncomingMessage> {
  const asked = await start(path, options);
  const [response] = await once(asked.end(), "response");
  return response as IncomingMessage;
}

describe("a request to a listed host", () => {
  test("arrives with its own headers, without those of the connection", async () => {
    const headers = {
      Host: "GOOD.test",
      "X-Mine": "1",
      Connection: "close, x-hop",
      "X-Hop": "2",
      TE: "trailers",
      "Proxy-Authorization": "3",
    };
    const response = await get("/a?b=c", { headers });
    expect(await text(response)).toBe("good GET /a?b=c");
    expect(response.headers["set-cookie"]).toEqual(["one=1", "two=2"]);
    expect(internet.seen).toEqual([
      { server: "good", method: "GET", url: "/a?b=c", headers: ["Host", "good.test", "X-Mine", "1"] },
    ]);
    await eventually(() =>
      box.events.some(({ kind, host, port }) => kind === "allowed" && host === "good.test" && port === 80),
    );
  });

  test("is followed by others on the same connection, each looked at by itself", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const path of ["/1", "/2", "/3"]) expect(await text(await get(path, { agent }))).toBe(`good GET ${path}`);
    const other = await get("/4", { agent, headers: { Host: "evil.test" } });
    expect([other.statusCode, await text(other)]).toEqual([403, `${refusal("evil.test")}\n`]);
    agent.destroy();
    expect(internet.seen.map(({ url }) => url)).toEqual(["/1", "/2", "/3"]);
  });

  test("has a body of any length, told or not, and gets one", async () => {
    const body = randomBytes(5 * 1024 * 1024);
    const sha256 = createHash("sha256").update(body).digest("hex");
    for (const headers of [
      { "Content-Length": body.length },
      { "Transfer-Encoding": "chunked" },
      { Expect: "100-continue", "Content-Length": body.length },
    ]) {
      const asked = await start("/body", { method: "POST", headers: { Host: "good.test", ...headers } });
      asked.end(body);
      const [response] = await once(asked, "response");
      expect(JSON.parse(await text(response))).toEqual({ bytes: body.length, sha256 });
    }
    expect(await buffer(await get(`/large?bytes=${body.length}`))).toHaveLength(body.length);
  });

  test("gets an answer that comes in pieces as it comes", async () => {
    const events = await get("/events");
    let got = "";
    events.on("data", (piece) => {
      got += piece;
    });
    await eventually(() => got === "data: first\n\n");
    await text(await get("/events/next"));
    await eventually(() => events.readableEnded);
    expect(got).toBe("data: first\n\ndata: second\n\n");
  });

  test("gets the host's early answer though its body is not read", async () => {
    const asked = await start("/early", {
      method: "POST",
      headers: { Host: "good.test", "Transfer-Encoding": "chunked" },
    });
    asked.on("error", () => {}).write("begun");
    const [response] = await once(asked, "response");
    expect([response.statusCode, await text(response)]).toEqual([413, "too much"]);
    asked.destroy();
  });

  test("that breaks on the host's side is answered, and one that the box gives up is given up there", async () => {
    const broken = await get("/broken");
    expect([broken.statusCode, await text(broken)]).toEqual([502, "good.test broke the connection off\n"]);
    const before = internet.connections;
    const asked = await start("/never");
    asked.on("error", () => {}).end();
    await eventually(() => internet.connections > before);
    asked.destroy();
    await eventually(() => internet.connections <= before);
  });

  test("with HTTP/1.0 or a wish for HTTP/2 is answered in HTTP/1.1", async () => {
    expect(await raw("GET /old HTTP/1.0\r\nHost: good.test\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 200 OK[\s\S]*good GET \/old$/,
    );
    const wish = "Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    expect(await raw(`GET /h2c HTTP/1.1\r\nHost: good.test\r\n${wish}\r\n`)).toMatch(/good GET \/h2c/);
    expect(internet.seen.at(-1)?.headers).toEqual(["Host", "good.test"]);
  });

  test("is a WebSocket both ways, with what was sent ahead", async () => {
    const socket = await box.dial("good.test", 80);
    const sent = randomBytes(2 * 1024 * 1024);
    socket.write(
      "GET /socket HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    socket.end(sent);
    const answer = await buffer(socket);
    const end = answer.indexOf("\r\n\r\n") + 4;
    expect(answer.subarray(0, end).toString()).toMatch(
      /^HTTP\/1\.1 101 [\s\S]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/,
    );
    expect(answer.subarray(end).equals(sent)).toBe(true);
  });

  test("may be refused its WebSocket by the host", async () => {
    const answer = await raw(
      "GET /refused HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 401 No\r\n[\s\S]*nope$/);
  });
});

describe("a request that is not exactly one for the host", () => {
  test.each(refusedRequests("good.test", "good.test"))(
    "%s is answered by the gate, and nobody else sees it",
    async (_, bytes, answer) => {
      expect(await raw(bytes)).toMatch(answer);
      expect(internet.seen).toEqual([]);
    },
  );

  test("ends the connection: what is behind it is no request", async () => {
    const answer = await raw(
      "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\nGET /behind HTTP/1.1\r\nHost: good.test\r\n\r\n",
    );
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(internet.seen).toEqual([]);
  });

  test("is no WebSocket behind others that wait for their answers", async () => {
    const upgrade = "GET /socket HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    expect(await raw(`GET /never HTTP/1.1\r\nHost: good.test\r\n\r\n${upgrade}`)).toBe("");
    expect(internet.seen.map(({ url }) => url)).not.toContain("/socket");
  });

  test("hides nothing in a body: the framing that arrives is ours", async () => {
    const inner = "GET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    const bytes = `POST /body HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`;
    expect(await raw(bytes)).toContain(`"bytes":${inner.length}`);
    expect(internet.seen.map(({ url }) => url)).toEqual(["/body"]);
  });

  test("is not one of many ahead of their answers", async () => {
    const socket = await box.dial("good.test", 80);
    socket.resume().write("GET /never HTTP/1.1\r\nHost: good.test\r\n\r\n".repeat(5000));
    await closed(socket);
    expect(internet.seen.length).toBeLessThanOrEqual(1);
  });

  test("nor of a method or path that the list does not have", async () => {
    const head = (line: string) => `${line} HTTP/1.1\r\nHost: seen.test\r\nConnection: close\r\n\r\n`;
    expect(await raw(head("GET /v1/x"), "seen.test")).toContain("good GET /v1/x");
    expect(await raw(head("GET /v2/x?key=1"), "seen.test")).toMatch(
      /403 [\s\S]*GET \/v2\/x at seen\.test is not on this sandbox's list/,
    );
    expect(await raw(head("GET /v1/../v2"), "seen.test")).toMatch(/403/);
    expect(await raw(head("DELETE /v1/x"), "seen.test")).toMatch(/403/);
    expect(internet.seen.map(({ url }) => url)).toEqual(["/v1/x"]);
  });
});

test("the placeholder of a secret travels as it is, even to the secret's own host, and each place is told", async () => {
  const key = box.placeholders.API_KEY!;
  const head = `POST /body?q=${key} HTTP/1.1\r\nHost: second.test\r\nConnection: close\r\nx-api-key: ${key}`;
  const answer = await raw(`${head}\r\nContent-Length: ${key.length}\r\n\r\n${key}`, "second.test");
  expect(answer).toContain(createHash("sha256").update(key).digest("hex"));
  expect(internet.seen).toEqual([
    expect.objectContaining({ url: `/body?q=${key}`, headers: expect.arrayContaining(["x-api-key", key]) }),
  ]);
  const told = () => box.events.filter(({ kind }) => kind === "secret_misplaced");
  await eventually(() => expect(told()).toHaveLength(3));
  const where = ["the address", "the header x-api-key", "the body"];
  const rule = "the value goes into header x-api-key of requests to second.test alone";
  expect(told()).toEqual(
    where.map((place) => ({
      ...{ kind: "secret_misplaced", host: "second.test", port: 80, count: 1 },
      sentence: `the placeholder of API_KEY went to second.test without TLS in ${place}; ${rule}`,
    })),
  );
});

test("a host at a forbidden address is refused with the reason, one that is down is a bad gateway", async () => {
  expect(await raw("GET / HTTP/1.1\r\nHost: inner.test\r\nConnection: close\r\n\r\n", "inner.test")).toMatch(
    /403 [\s\S]*no public address/,
  );
  expect(await raw("GET / HTTP/1.1\r\nHost: dead.test\r\nConnection: close\r\n\r\n", "dead.test")).toMatch(
    /502 [\s\S]*cannot be reached/,
  );
});

test("a connection of a name that is taken off the list is cut between two requests", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  await text(await get("/1", { agent }));
  await box.gate.update(networkPolicy("second.test"));
  await eventually(() => Object.keys(agent.freeSockets).length === 0);
  await box.gate.update(networkPolicy(...LIST));
  expect(await text(await get("/2", { agent }))).toBe("good GET /2");
  agent.destroy();
});
