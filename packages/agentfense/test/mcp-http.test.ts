import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { processesWith } from "../../../test/support/leftovers.ts";
import { call, read } from "./mcp-client.ts";
import { type Surroundings, start } from "./run-cli.ts";
import { instanceOf, isMountedBelow, places } from "./sandbox-places.ts";

/** Starts `agentfense mcp --http` on a free port; ends it with the test. */
async function startHttp(args: readonly string[], surroundings: Surroundings, lines = 2) {
  const child = start(["mcp", "--http=127.0.0.1:0", ...args, "project"], surroundings);
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  const said: string[] = [];
  const reader = createInterface({ input: child.stderr! }).on("line", (line) => said.push(line));
  while (said.length < lines) await once(reader, "line");
  const [, url] = /MCP on (http:\S+)$/.exec(said[0]!)!;
  const [, key] = /Bearer (\S+)$/.exec(said[1] ?? "") ?? [];
  return { child, exited, said, url: new URL(url!), key };
}

async function connect(url: URL, key: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }) as Parameters<Client["connect"]>[0]);
  onTestFinished(() => client.close());
  return client;
}

/** Sends exactly these headers: `fetch` would not. */
async function statusOf(url: URL, headers: Readonly<Record<string, string>>, method = "POST"): Promise<number> {
  const sent = request(url, { method, headers: { "content-type": "application/json", ...headers } });
  sent.end(method === "POST" ? "{}" : undefined);
  const [response] = (await once(sent, "response")) as [NodeJS.ReadableStream & { statusCode: number }];
  response.resume();
  return response.statusCode;
}

test("two sessions over HTTP share the sandbox, strangers are refused, and a signal ends it all", async () => {
  const { surroundings, temporary } = await places("root");
  const { child, exited, said, url, key } = await startHttp([], surroundings);
  const [one, other] = await Promise.all([connect(url, key!), connect(url, key!)]);
  expect((await one.listTools()).tools).toHaveLength(7);
  expect(await call(one, "write_file", { path: "output/a", content: "of one" })).toMatchObject({ isError: false });
  expect(await call(other, "read_file", { path: "output/a" })).toMatchObject({ text: "of one" });
  expect((await call(other, "shell", { command: "cat .env" })).text).not.toContain("made-up");
  expect(await read(other, "agentfense://changes")).toContain("/output/a");

  const authorization = `Bearer ${key}`;
  await expect(connect(url, "wrong")).rejects.toThrow();
  expect(await statusOf(url, {})).toBe(401);
  expect(await statusOf(url, { authorization, origin: "http://attacker.example" })).toBe(403);
  expect(await statusOf(url, { authorization, host: `attacker.example:${url.port}` })).toBe(403);
  expect(await statusOf(new URL("/", url), { authorization })).toBe(404);
  expect(await statusOf(url, { authorization }, "GET")).toBe(400);
  expect(await statusOf(url, { authorization })).toBe(400);

  // Who leaves in the middle of a request, with a key and without, disturbs nobody.
  for (const line of ["", `Authorization: ${authorization}\r\n`]) {
    const socket = createConnection(Number(url.port), url.hostname);
    const head = `POST /mcp HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\n${line}Content-Length: 99\r\n`;
    await new Promise((resolve) => socket.write(`${head}\r\n{"a":`, resolve));
    socket.destroy();
  }
  expect((await other.listTools()).tools).toHaveLength(7);

  // One session ends, and the other goes on; a call of its own is running when the signal comes.
  await (one.transport as StreamableHTTPClientTransport).terminateSession();
  const mark = `48${Date.now() % 1e6}.5`;
  call(other, "shell", { command: `sleep ${mark}` }).catch(() => {}); // its answer never comes
  await eventually(() => expect(processesWith(mark)).not.toEqual([]));
  const instance = instanceOf(child.pid!)!;
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
  expect(processesWith(mark)).toEqual([]);
  expect(isMountedBelow(instance)).toBe(false);
  expect(await readdir(temporary)).toEqual([]);
  expect(said.slice(2)).toContain("  added     /output/a");
});

test("a key of one's own is taken from the environment and not printed", async () => {
  const { surroundings } = await places("root");
  const env = { ...surroundings.env, AGENTFENSE_API_KEY: "own-key-made-up" };
  const { said, url } = await startHttp(["--allow-host", "box.example"], { ...surroundings, env }, 1);
  const client = await connect(url, "own-key-made-up");
  expect(await call(client, "list_files", { path: "src" })).toMatchObject({ text: "src/events.js\nsrc/tracker.js" });
  expect(await statusOf(url, { authorization: "Bearer own-key-made-up", host: "box.example" })).toBe(400);
  expect(said.join("\n")).not.toContain("own-key-made-up");
});
