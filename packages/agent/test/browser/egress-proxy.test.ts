import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { hostname } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EgressProxy } from "../../src/browser/chromium/proxy.ts";
import { UrlPolicy, type UrlRules } from "../../src/browser/url/policy.ts";

const seen: string[] = [];
const site = createServer((incoming, outgoing) => {
  seen.push(`${incoming.method} ${incoming.url} ${JSON.stringify(incoming.headers["proxy-authorization"] ?? "")}`);
  incoming.pipe(outgoing.setHeader("X-Site", "yes"));
});
let port: number;

beforeAll(async () => {
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  ({ port } = site.address() as AddressInfo);
});

afterAll(() => {
  site.close();
  site.closeAllConnections();
});

async function proxyWith(rules: UrlRules) {
  const refused: string[] = [];
  const proxy = await EgressProxy.listen(new UrlPolicy(rules, "external"), (where, reason) =>
    refused.push(`${where}: ${reason}`),
  );
  return { proxy, refused };
}

function basic({ credentials: { username, password } }: EgressProxy): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** The status and the body, or how it ended. */
async function post(proxy: EgressProxy, url: string, authorization?: string): Promise<string> {
  const { hostname: host, port: proxyPort } = new URL(proxy.address);
  const headers = { host: new URL(url).host, ...(authorization && { "proxy-authorization": authorization }) };
  const outgoing = request({ host, port: proxyPort, method: "POST", path: url, headers, agent: false });
  outgoing.end("hello");
  try {
    const [response] = await once(outgoing, "response");
    return `${response.statusCode} ${(await response.toArray()).join("")}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

/** The first line that comes back, and whether bytes then go through. */
async function tunnel(proxy: EgressProxy, target: string, authorization = basic(proxy)): Promise<string> {
  const { hostname: host, port: proxyPort } = new URL(proxy.address);
  const socket = connect(Number(proxyPort), host);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: ${authorization}\r\n\r\n`);
  let text = "";
  socket.on("data", (data) => {
    const isFirst = text === "";
    text += data;
    if (isFirst && text.includes(" 200 "))
      socket.write("GET /tunnelled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  });
  socket.on("error", () => {});
  await once(socket, "close");
  return text
    .split("\r\n")
    .filter((line) => line.startsWith("HTTP/1.1"))
    .join(", ");
}

test("passes on what is allowed, without the credentials", async () => {
  const { proxy, refused } = await proxyWith({ allow: [`http://127.0.0.1:${port}/open/**`] });
  await using _ = proxy;
  seen.length = 0;
  expect(await post(proxy, `http://127.0.0.1:${port}/open/a?b`, basic(proxy))).toBe("200 hello");
  expect(await tunnel(proxy, `127.0.0.1:${port}`)).toBe("HTTP/1.1 200 OK, HTTP/1.1 200 OK");
  expect(seen).toEqual(['POST /open/a?b ""', 'GET /tunnelled ""']);
  expect(refused).toEqual([]);
  expect(await post(proxy, `http://127.0.0.1:${port}/closed`, basic(proxy))).toBe("ECONNRESET");
  expect(refused).toEqual([`http://127.0.0.1:${port}/closed: it is not among what is allowed`]);
});

test("does nothing for those who do not know the password", async () => {
  const { proxy } = await proxyWith({ allow: [`http://127.0.0.1:${port}`] });
  await using _ = proxy;
  seen.length = 0;
  expect(await post(proxy, `http://127.0.0.1:${port}/`)).toBe("407 ");
  expect(await post(proxy, `http://127.0.0.1:${port}/`, basic(proxy).replace(/.$/, "!"))).toBe("407 ");
  expect(await tunnel(proxy, `127.0.0.1:${port}`, "Basic eDp5")).toBe("HTTP/1.1 407 Proxy Authentication Required");
  expect(seen).toEqual([]);
});

test("connects to no private address, by whatever name", async () => {
  // It has an entry in /etc/hosts, or a name server of a local network knows it.
  const name = hostname();
  const { address } = await lookup(name);
  const { proxy, refused } = await proxyWith({ allow: ["http://*/**"] });
  await using _ = proxy;
  seen.length = 0;
  for (const host of [name, "127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"]) {
    expect(await post(proxy, `http://${host}:${port}/`, basic(proxy))).toBe("ECONNRESET");
    expect(await tunnel(proxy, `${host}:${port}`)).toBe("");
  }
  expect(seen).toEqual([]);
  expect(refused).toHaveLength(12);
  expect(refused[0]).toContain(`${name} is ${address}, an address of this machine or its networks`);
});

test("a name is as good as its address, if it is not known to be private", async () => {
  const name = hostname();
  const { address } = await lookup(name);
  const { proxy: unaware } = await proxyWith({ allow: [`http://${name}:${port}`] });
  await using _ = unaware;
  expect(await post(unaware, `http://${name}:${port}/`, basic(unaware))).toBe("ECONNRESET");
  const both = [`http://${name}:${port}`, `http://${address.includes(":") ? `[${address}]` : address}:${port}`];
  const { proxy: aware, refused } = await proxyWith({ allow: both });
  await using _too = aware;
  await post(aware, `http://${name}:${port}/`, basic(aware));
  expect(refused).toEqual([]);
});

test("a private name that somebody allowed is reached", async () => {
  const { proxy } = await proxyWith({ allow: [`http://localhost:${port}`] });
  await using _ = proxy;
  expect(await post(proxy, `http://localhost:${port}/`, basic(proxy))).toBe("200 hello");
});

test("ends all connections when it ends", async () => {
  const { proxy } = await proxyWith({ allow: [`http://127.0.0.1:${port}`] });
  const { hostname: host, port: proxyPort } = new URL(proxy.address);
  const socket = connect(Number(proxyPort), host);
  socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nProxy-Authorization: ${basic(proxy)}\r\n\r\n`);
  await once(socket, "data");
  const closed = once(socket, "close");
  await proxy[Symbol.asyncDispose]();
  await closed;
  const again = connect(Number(proxyPort), host);
  const [error] = await once(again, "error");
  expect(error.code).toBe("ECONNREFUSED");
});
