import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestService, type TestService, USER } from "./fixture.ts";

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Unlike `fetch`, lets a test say Host and Origin as it likes. */
async function send(
  address: string,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const [host, port] = address.split(":");
  return await new Promise((resolve, reject) => {
    const call = request(
      {
        host,
        port,
        path,
        method: options.method ?? "GET",
        headers: options.headers ?? {},
        setHost: false,
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    call.on("error", reject);
    call.end(options.body);
  });
}

const RPC = "/sandbox.v1.SystemService/GetServerInfo";
const CHANGE = "/v1/keys";

let open: TestService;
let keyed: TestService;
beforeAll(async () => {
  open = await openTestService({
    allowedHosts: ["Fence.Example.org"],
    allowedOrigins: ["https://console.example.org"],
  });
  keyed = await openTestService({ keys: "required" });
});
afterAll(async () => {
  await open[Symbol.asyncDispose]();
  await keyed[Symbol.asyncDispose]();
});

describe("the Host header", () => {
  test.each(["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]", "fence.example.org:99"])(
    "%s is ours",
    async (host) => {
      expect(await send(open.http, "/v1/server", { headers: { host } })).toMatchObject({ status: 200 });
    },
  );

  test.each([
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.nip.io:8080",
    "192.168.1.7",
    "fence.example.org.evil.example",
  ])("%s is refused on both ports, for every path", async (host) => {
    for (const path of ["/v1/server", "/healthz", "/metrics", "/openapi.json", RPC, "/nothing"]) {
      for (const port of [open.http, open.grpc]) {
        const answer = await send(port, path, { headers: { host } });
        expect(answer.status).toBe(403);
        expect(JSON.parse(answer.body)).toMatchObject({ code: 7, details: [] });
      }
    }
  });

  test.each(["", "a b", "[::", "ev/il", "user@localhost", "localhost:port"])("%j is no host", async (host) => {
    expect(await send(open.http, "/v1/server", { headers: { host } })).toMatchObject({ status: 400 });
  });

  test("with a valid key any host will do, with a wrong one none", async () => {
    const host = "fence.internal";
    expect(await send(keyed.http, "/v1/server", { headers: { host } })).toMatchObject({ status: 403 });
    expect(await send(keyed.http, "/v1/server", { headers: { host, "x-api-key": "af_wrong" } })).toMatchObject({
      status: 403,
    });
    expect(await send(keyed.http, "/v1/server", { headers: { host, "x-api-key": USER } })).toMatchObject({
      status: 200,
    });
    expect(await send(keyed.http, "/v1/server", { headers: { host, authorization: `bearer ${USER}` } })).toMatchObject({
      status: 200,
    });
  });

  test("without keys a key is no excuse", async () => {
    const headers = { host: "evil.example", "x-api-key": USER };
    expect(await send(open.http, "/v1/server", { headers })).toMatchObject({ status: 403 });
  });
});

describe("the Origin header", () => {
  const post = { method: "POST", body: "{}" };
  const json = { host: "localhost", "content-type": "application/json" };

  test.each([
    "http://evil.example",
    "null",
    "https://console.example.org.evil.example",
    "http://console.example.org",
    "file://",
  ])("%s may not call, on either port, also with a preflight", async (origin) => {
    const before = open.journal.calls.length;
    for (const [port, path] of [
      [open.http, CHANGE],
      [open.http, RPC],
      [open.grpc, RPC],
    ] as const) {
      const answer = await send(port, path, { ...post, headers: { ...json, origin } });
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([403, 7]);
      expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
      expect(await send(port, path, { method: "OPTIONS", headers: { host: "localhost", origin } })).toMatchObject({
        status: 403,
      });
    }
    expect(open.journal.calls.length).toBe(before);
  });

  test("pages of the server itself may call", async () => {
    const host = open.http.replace("127.0.0.1", "localhost");
    const headers = { ...json, host, origin: `http://${host}` };
    expect(await send(open.http, CHANGE, { ...post, headers })).toMatchObject({ status: 200 });
  });

  test("a page of the same name on another port is another page", async () => {
    const host = open.http.replace("127.0.0.1", "localhost");
    const headers = { ...json, host, origin: "http://localhost:3000" };
    expect(await send(open.http, CHANGE, { ...post, headers })).toMatchObject({ status: 403 });
  });

  test("an allowed page asks first, calls, and may read the answer", async () => {
    const origin = "https://console.example.org";
    const preflight = await send(open.http, CHANGE, {
      method: "OPTIONS",
      headers: { host: "localhost", origin, "access-control-request-method": "POST" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST, PUT, DELETE",
      "access-control-allow-headers": expect.stringMatching(/Content-Type.*Authorization.*X-Api-Key/),
      vary: "Origin",
    });
    expect(preflight.headers).not.toHaveProperty("access-control-allow-credentials");
    for (const path of [CHANGE, RPC]) {
      const answer = await send(open.http, path, { ...post, headers: { ...json, origin } });
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "Origin" });
    }
  });

  test("counts over HTTP/2 too, where the host does not", async () => {
    const status = async (headers: Record<string, string>): Promise<unknown> => {
      const session = connectHttp2(`http://${open.http}`);
      const call = session.request({ ":path": "/v1/server", ...headers });
      const answer = await new Promise<Record<string, unknown>>((resolve) => call.once("response", resolve));
      session.destroy();
      return answer[":status"];
    };
    expect(await status({ ":authority": "fence.internal" })).toBe(200);
    expect(await status({ origin: "http://evil.example" })).toBe(403);
    expect(await status({ ":authority": "evil.example", origin: "http://evil.example" })).toBe(403);
    expect(await status({ origin: "https://console.example.org" })).toBe(200);
  });

  test("without an Origin nothing is said about sharing", async () => {
    const { headers } = await send(open.http, "/v1/server", { headers: { host: "localhost" } });
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("the content type of a body", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    "text/json",
    "application/jsonx",
  ])("%j changes nothing", async (type) => {
    const before = open.journal.calls.length;
    const headers: Record<string, string> = { host: "localhost", ...(type === "" ? {} : { "content-type": type }) };
    for (const [port, path] of [
      [open.http, CHANGE],
      [open.grpc, "/sandbox.v1.SystemService/CreateKey"],
    ] as const) {
      const answer = await send(port, path, { method: "POST", headers, body: '{"ownerId":"x"}' });
      expect([answer.status, JSON.parse(answer.body).code]).toEqual([415, 3]);
    }
    expect(open.journal.calls.length).toBe(before);
  });

  test.each(["application/json", "application/json; charset=utf-8", "Application/JSON"])(
    "%s is taken",
    async (type) => {
      const headers = { host: "localhost", "content-type": type };
      expect(await send(open.http, CHANGE, { method: "POST", headers, body: "{}" })).toMatchObject({ status: 200 });
    },
  );

  test("a call without a body needs none", async () => {
    const headers = { host: "localhost", "content-length": "0" };
    expect(await send(open.http, CHANGE, { method: "POST", headers })).toMatchObject({ status: 200 });
  });

  test("a file may be put without one", async () => {
    const headers = { host: "localhost", "transfer-encoding": "chunked" };
    const answer = await send(open.http, "/v1/codebases/cb_1/files/a.txt", { method: "PUT", headers, body: "content" });
    expect(answer).toMatchObject({ status: 200 });
  });
});
