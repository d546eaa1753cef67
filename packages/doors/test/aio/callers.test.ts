import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Sandbox } from "agentfense";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { aioDoor } from "../../src/aio/door.ts";
import type { DoorCaller } from "../../src/door.ts";
import { DoorClient } from "./door-client.ts";
import { DoorServer } from "./door-server.ts";

const ALICE: DoorCaller = { ownerId: "alice", role: "user", keyId: "key_a" };
const ALICE_TOO: DoorCaller = { ownerId: "alice", role: "user", keyId: "key_b" };
const UNKNOWN = "sb_00000000000000000000000000000000";

let server: DoorServer;
let sandbox: Sandbox;
let aio: DoorClient;
const browsed: string[] = [];
beforeAll(async () => {
  server = await DoorServer.open({
    maxBodyBytes: 100_000,
    mcp: async ({ id }, request, { caller }) => Response.json([id, request.method, caller.ownerId ?? null]),
    browser: {
      info: async () => ({ userAgent: "agent", cdpUrl: "ws://x", viewport: { width: 3, height: 4 } }),
      screenshot: async (_, { format }) => new TextEncoder().encode(format),
      navigate: async (_, { url, waitUntil }) => {
        browsed.push(`${url} ${waitUntil}`);
        return { url };
      },
    },
  });
  sandbox = await server.sandbox({ "a.txt": "one\n" }, [{ pattern: "**", permission: "write" }]);
  aio = new DoorClient(server.url(sandbox.id));
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

/** What a caller is answered. */
async function as<T>(caller: DoorCaller, work: () => Promise<T>): Promise<T> {
  const before = server.caller;
  server.caller = caller;
  try {
    return await work();
  } finally {
    server.caller = before;
  }
}

test("what one key began, another key does not find", async () => {
  await as(ALICE, () => aio.post("shell/exec", { command: "SECRET=1; echo mine", id: "own" }));
  await as(ALICE, () => aio.post("bash/exec", { command: "echo mine", session_id: "own" }));
  for (const caller of [ALICE_TOO, { ...ALICE, role: "read-only" } as const, server.caller]) {
    expect(await as(caller, () => aio.post("shell/view", { id: "own" }))).toMatchObject({ status: 404 });
    expect(await as(caller, () => aio.post("bash/output", { session_id: "own" }))).toMatchObject({ status: 404 });
    expect((await as(caller, () => aio.get("shell/sessions"))).data.sessions).toEqual({});
  }
  const other = await as(ALICE_TOO, () => aio.post("shell/exec", { command: 'echo "<$SECRET>"', id: "own" }));
  expect(other.data.output).toBe("<>\n");
  expect((await as(ALICE, () => aio.post("shell/view", { id: "own" }))).data.output).toBe("mine\n");
});

test("a sandbox that is not there, or no sandbox's id, is not found", async () => {
  for (const id of [UNKNOWN, "x", "..", "%2e%2e", "%ff", "sb_x%00"]) {
    const response = await fetch(`${server.url(id)}/v1/sandbox`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ success: false, data: null });
  }
});

test("MCP and the browser are those that were handed in, for this sandbox and caller", async () => {
  for (const path of ["mcp", "v1/mcp"]) {
    const response = await as(ALICE, () => aio.raw(path, { method: "POST", body: "{}" }));
    expect(await response.json()).toEqual([sandbox.id, "POST", "alice"]);
  }
  expect((await fetch(`${server.url(UNKNOWN)}/mcp`, { method: "POST", body: "{}" })).status).toBe(404);
  expect((await aio.get("browser/info")).data).toMatchObject({ cdp_url: "ws://x", viewport: { width: 3, height: 4 } });
  const shot = await aio.raw("v1/browser/screenshot?format=jpg&quality=50");
  expect([shot.headers.get("content-type"), await shot.text()]).toEqual(["image/jpeg", "jpeg"]);
  expect((await aio.post("browser/page/navigate", { url: "http://x/", wait_until: "commit" })).success).toBe(true);
  expect(browsed).toEqual(["http://x/ commit"]);
  expect(await aio.post("browser/page/click", {})).toMatchObject({ status: 501, hint: expect.any(String) });
});

test("a body that is too large is refused", async () => {
  // With a connection of its own, which ends with the answer.
  const sending = request(`${aio.url}/v1/file/write`, { method: "POST", agent: false });
  sending.on("error", () => {});
  sending.end(JSON.stringify({ file: "large", content: "x".repeat(200_000) }));
  const [response] = (await once(sending, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(413);
  expect(await sandbox.files.readdir("/")).not.toContain("large");
});

test("a sandbox that does not run says so", async () => {
  const other = await server.sandbox({}, [{ pattern: "**", permission: "write" }]);
  const client = new DoorClient(server.url(other.id));
  await client.post("shell/exec", { command: "true", id: "s" });
  await other.stop();
  expect(((await (await client.raw("v1/sandbox")).json()) as { hint: string }).hint).toContain("started");
  for (const path of ["bash/exec", "shell/exec"]) {
    expect(await client.post(path, { command: "true", session_id: "new", id: "new" })).toMatchObject({ status: 409 });
  }
  expect(await client.post("file/read", { file: "a" })).toMatchObject({ status: 409, success: false });
  await other.destroy();
  expect(await client.get("shell/sessions")).toMatchObject({ status: 404 });
});

test("keys are taken from AIO's header and from the query", () => {
  const door = aioDoor();
  expect(door.keyIn?.({ "x-aio-api-key": "k1" }, "/aio/sb_1/v1/sandbox?api_key=k2", "GET")).toBe("k1");
  expect(door.keyIn?.({}, "/aio/sb_1/v1/sandbox?api_key=k%202", "GET")).toBe("k 2");
  expect(door.keyIn?.({}, "/aio/sb_1/v1/sandbox", "GET")).toBeUndefined();
  return door.close?.();
});

test("what nobody comes back for is ended", async () => {
  await using forgetful = await DoorServer.open({ idleMs: 300 });
  const one = await forgetful.sandbox({}, [{ pattern: "**", permission: "write" }]);
  const client = new DoorClient(forgetful.url(one.id));
  expect((await client.post("shell/exec", { command: "true", id: "s" })).data).toMatchObject({ session_id: "s" });
  await eventually(async () => expect(await one.client.listSessions(one.id)).toEqual([]));
});
