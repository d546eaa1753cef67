import type { ServiceError } from "@grpc/grpc-js";
import { beforeAll, describe, expect, test } from "vitest";
import { serveApi, testsCover, UNKNOWN } from "../support/api.ts";
import { eventually } from "../support/eventually.ts";
import type { Message } from "../support/proto.ts";
import { COVERAGE } from "./coverage.ts";

const api = serveApi();
let sandbox: string;
beforeAll(async () => {
  sandbox = await api.sandbox(await api.codebase({ "index.html": "hello from the sandbox\n" }));
  const serve = "setsid python3 -m http.server 4711 --bind 127.0.0.1 > /tmp/log 2>&1 &";
  await api.exec(sandbox, serve);
});

const waiting = (port: number, seconds: number): Message => ({ sandbox_id: sandbox, port, timeout: { seconds } });

/** All that a connection says to these messages. */
async function forward(...messages: Message[]): Promise<{ received: Message[]; error?: ServiceError }> {
  const call = api.grpc.duplex("SandboxService", "ForwardPort");
  const received: Message[] = [];
  const { promise, resolve } = Promise.withResolvers<{ received: Message[]; error?: ServiceError }>();
  call.on("data", (message: Message) => void received.push(message));
  call.on("error", (error: ServiceError) => resolve({ received, error }));
  call.on("end", () => resolve({ received }));
  for (const message of messages) call.write(message);
  call.end();
  return await promise;
}

describe("a port", () => {
  test("is waited for", async () => {
    await api.call("SandboxService.WaitForPort", waiting(4711, 60));
    const body = { port: 4711, timeout: "60s" };
    expect(await api.rest.request("POST", `/v1/sandboxes/${sandbox}/ports/wait`, body)).toMatchObject({ status: 200 });
  });

  test("is reached by the links that are given", async () => {
    const port = await api.call("SandboxService.GetPort", { sandbox_id: sandbox, port: 4711 });
    expect(port).toMatchObject({ sandbox_id: sandbox, port: 4711, token: expect.stringMatching(/^afp\./) });
    expect(port.url).toBe(`${api.server.http}/v1/sandboxes/${sandbox}/ports/4711/`);
    const page = await fetch(String(port.url), { headers: { "x-agentfense-token": String(port.token) } });
    expect([page.status, await page.text()]).toEqual([200, "hello from the sandbox\n"]);
    const host = `4711-${sandbox}.localhost:${new URL(api.server.http).port}`;
    expect(port.host_url).toBe(`http://${host}/?agentfense_token=${port.token}`);
    const given = await api.rest.request("POST", `/v1/sandboxes/${sandbox}/ports`, { port: 4711, expires_in: "60s" });
    expect(given.json).toMatchObject({ port: 4711, url: port.url });
  });

  test("carries bytes, and each side ends for itself", async () => {
    await api.call("SandboxService.WaitForPort", waiting(4711, 60));
    const { received, error } = await forward(
      { open: { sandbox_id: sandbox, port: 4711 } },
      { data: Buffer.from("GET / HTTP/1.0\r\n\r\n") },
      { end: true },
    );
    expect(error).toBeUndefined();
    expect(received[0]?.data).toBeUndefined();
    expect(received.at(-1)).toMatchObject({ end: true });
    const bytes = Buffer.concat(received.flatMap(({ data }) => (data === undefined ? [] : [data as Buffer])));
    expect(bytes.toString()).toMatch(/200 OK[\s\S]*\r\n\r\nhello from the sandbox\n$/);
  });
});

test("links to a port, and its first connection, are in the audit log", async () => {
  const own = await api.sandbox(await api.codebase({ "a.txt": "" }));
  await api.exec(own, "setsid python3 -m http.server 4713 --bind 127.0.0.1 > /tmp/log 2>&1 &");
  await api.call("SandboxService.WaitForPort", { sandbox_id: own, port: 4713, timeout: { seconds: 60 } });
  const { url } = await api.call("SandboxService.GetPort", { sandbox_id: own, port: 4713 });
  for (const path of ["a.txt", "b.txt", "a.txt"]) await (await fetch(`${url}${path}`)).text();
  const types = ["port_link_made", "port_opened"];
  await eventually(async () => {
    const { events } = await api.call("EventService.ListEvents", { sandbox_id: own, types });
    const seen = (events as Message[]).map(({ type, data }) => [type, JSON.stringify(data)]).sort();
    expect(seen).toEqual(types.map((type) => [type, expect.stringContaining("4713")]));
  });
});

describe("is refused:", () => {
  test("a port where nothing listens", async () => {
    const { error } = await forward({ open: { sandbox_id: sandbox, port: 4712 } });
    expect([error?.code, error?.details]).toEqual([9, "nothing listens at port 4712 of the sandbox"]);
    await api.refused({
      method: "SandboxService.WaitForPort",
      request: { sandbox_id: sandbox, port: 4712, timeout: { nanos: 1_000_000 } },
      rest: `POST /v1/sandboxes/${sandbox}/ports/wait`,
      body: { port: 4712, timeout: "0.001s" },
      status: "FAILED_PRECONDITION",
      message: "nothing listened at port 4712 of the sandbox within 1 ms",
    });
    expect(await api.rest.request("GET", `/v1/sandboxes/${sandbox}/ports/4712/`)).toMatchObject({ status: 502 });
  });

  test("a sandbox that nobody has", async () => {
    await api.refused({
      method: "SandboxService.GetPort",
      request: { sandbox_id: UNKNOWN.sandbox, port: 80 },
      rest: `POST /v1/sandboxes/${UNKNOWN.sandbox}/ports`,
      body: { port: 80 },
      status: "NOT_FOUND",
      message: "sandbox not found",
    });
    expect(await api.rest.request("GET", `/v1/sandboxes/${UNKNOWN.sandbox}/ports/80/`)).toMatchObject({ status: 404 });
  });

  test("a token for longer than a week", async () => {
    await api.refused({
      method: "SandboxService.GetPort",
      request: { sandbox_id: sandbox, port: 80, expires_in: { seconds: 8 * 86_400 } },
      rest: `POST /v1/sandboxes/${sandbox}/ports`,
      body: { port: 80, expires_in: "691200s" },
      status: "INVALID_ARGUMENT",
      message: "expires_in is a week at most",
    });
  });
});

test("a token is worth nothing when its sandbox is gone", async () => {
  const gone = await api.sandbox(await api.codebase());
  const { url, token } = await api.call("SandboxService.GetPort", { sandbox_id: gone, port: 80 });
  await api.call("SandboxService.DestroySandbox", { sandbox_id: gone });
  const answer = await fetch(String(url), { headers: { "x-agentfense-token": String(token) } });
  expect(answer.status).toBe(404);
});

testsCover(api, COVERAGE.ports);
