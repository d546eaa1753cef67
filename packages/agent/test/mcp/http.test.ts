import { describe, expect, test } from "vitest";
import { z } from "zod";
import { eventually } from "../../../../test/support/eventually.ts";
import { requestHash } from "../../src/confirmation/hash.ts";
import { ClientConfirmationService, MCP_APPROVALS, type McpApproval } from "../../src/mcp/client-confirmation.ts";
import { mcpHttpHandler } from "../../src/mcp/http.ts";
import { declareTool } from "../../src/tools/tool.ts";
import { fileWorld } from "../tools/support.ts";
import { call, connect, handlerFor, INITIALIZE, KEY, request } from "./support.ts";

describe("who may come", () => {
  test.each<[string, Record<string, string>, number]>([
    ["the right key", {}, 200],
    ["the key in X-Api-Key", { authorization: "", "x-api-key": KEY }, 200],
    ["localhost, in capitals and with a port", { host: "LOCALHOST:80" }, 200],
    ["IPv6", { host: "[::1]:80" }, 200],
    ["no key", { authorization: "" }, 401],
    ["a wrong key", { authorization: "Bearer wrong" }, 401],
    ["an empty key", { authorization: "Bearer " }, 401],
    ["part of the key", { authorization: `Bearer ${KEY.slice(0, -1)}` }, 401],
    ["another scheme", { authorization: `Basic ${KEY}` }, 401],
    ["another name in Host", { host: "attacker.example" }, 403],
    ["no Host", { host: "" }, 403],
    ["our name as a user", { host: "127.0.0.1@attacker.example" }, 403],
    ["our name as a part", { host: "127.0.0.1.attacker.example" }, 403],
    ["a page", { origin: "https://attacker.example" }, 403],
    ["a page of this machine", { origin: "http://127.0.0.1:9" }, 403],
    ["a page without an address", { origin: "null" }, 403],
  ])("%s: %j → %i", async (_what, headers, status) => {
    const handler = handlerFor({ world: (await fileWorld()).world });
    const response = await handler(request({ headers, body: JSON.stringify(INITIALIZE) }));
    expect(response.status).toBe(status);
    expect(response.headers.has("mcp-session-id")).toBe(status === 200);
    await response.body?.cancel();
  });

  test("an empty key lets nobody in; only false leaves keys to others", async () => {
    const { world } = await fileWorld();
    for (const [apiKey, status] of [
      ["", 401],
      [false, 200],
    ] as const) {
      await using handler = mcpHttpHandler({ world, apiKey });
      const response = await handler(request({ headers: { authorization: "" }, body: JSON.stringify(INITIALIZE) }));
      expect(response.status).toBe(status);
    }
  });

  test("names and pages that were allowed", async () => {
    const { world } = await fileWorld();
    const handler = handlerFor({ world, allowedHosts: ["mcp.example"], allowedOrigins: ["https://app.example"] });
    const ask = async (headers: Record<string, string>) => {
      const response = await handler(request({ headers, body: JSON.stringify(INITIALIZE) }));
      await response.body?.cancel();
      return response.status;
    };
    expect(await ask({ host: "mcp.example" })).toBe(200);
    expect(await ask({ host: "mcp.example", origin: "https://app.example" })).toBe(200);
    expect(await ask({ host: "mcp.example", origin: "http://app.example" })).toBe(403);
    expect(await ask({ host: "localhost" })).toBe(403);
  });
});

describe("what is not as the protocol has it", () => {
  test.each<[string, RequestInit & { headers?: Record<string, string> }, number]>([
    ["no JSON", { body: "{" }, 400],
    ["no body", {}, 400],
    ["no message", { body: "[1]" }, 400],
    ["a call without a session", { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }, 400],
    ["a session that is not there", { headers: { "mcp-session-id": "x" }, body: JSON.stringify(INITIALIZE) }, 404],
    ["a GET without a session", { method: "GET" }, 400],
    ["another method", { method: "PUT", body: "{}" }, 400],
    ["another type", { headers: { "content-type": "text/plain" }, body: JSON.stringify(INITIALIZE) }, 415],
    [
      "a client that takes no events",
      { headers: { accept: "application/json" }, body: JSON.stringify(INITIALIZE) },
      406,
    ],
    ["too much", { body: " ".repeat(5 * 1024 * 1024) }, 413],
  ])("%s is refused and begins no session", async (_what, init, status) => {
    const handler = handlerFor({ world: (await fileWorld()).world, maxSessions: 1 });
    const response = await handler(request(init));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ jsonrpc: "2.0", error: { message: expect.any(String) } });
    // The only place is still free.
    await connect(handler);
  });

  test("a method that is not there and a call without a name are errors of the protocol, and the session goes on", async () => {
    const client = await connect(handlerFor({ world: (await fileWorld()).world }));
    await expect(client.request({ method: "no/such" }, z.object({}))).rejects.toThrow("-32601");
    await expect(client.request({ method: "tools/call", params: {} }, z.object({}))).rejects.toThrow("expected string");
    await expect(client.readResource({ uri: "agentfense://nothing" })).rejects.toThrow("-32002");
    expect(await call(client, "no_such_tool", {})).toMatchObject({ isError: true });
    expect(await call(client, "list_files", {})).toMatchObject({ text: "(nothing)", isError: false });
  });
});

describe("sessions", () => {
  test("two clients have one each, on one world", async () => {
    const handler = handlerFor({ world: (await fileWorld()).world });
    const [one, other] = [await connect(handler), await connect(handler)];
    await call(one, "write_file", { path: "a", content: "of one" });
    expect(await call(other, "read_file", { path: "a" })).toMatchObject({ text: "of one" });
    await one.close();
    expect((await other.listTools()).tools).toHaveLength(7);
  });

  test("there are no more than was said; one that ends makes room", async () => {
    const handler = handlerFor({ world: (await fileWorld()).world, maxSessions: 2 });
    const [one] = [await connect(handler), await connect(handler)];
    await expect(connect(handler)).rejects.toThrow("there are 2 sessions already");
    await (one.transport as unknown as { terminateSession(): Promise<void> }).terminateSession();
    await connect(handler);
  });

  test("one that nobody uses ends, one with an open stream does not", async () => {
    const handler = handlerFor({ world: (await fileWorld()).world, idleMs: 100, maxSessions: 2 });
    const listening = await connect(handler); // the client keeps a stream open
    const response = await handler(request({ body: JSON.stringify(INITIALIZE) }));
    await response.text();
    const id = response.headers.get("mcp-session-id")!;
    const ping = () => handler(request({ headers: { "mcp-session-id": id }, body: '{"jsonrpc":"2.0","method":"x"}' }));
    // Asking it would keep it alive, so what is asked is whether there is room for another.
    await eventually(async () =>
      expect((await handler(request({ body: JSON.stringify(INITIALIZE) }))).status).toBe(200),
    );
    expect((await ping()).status).toBe(404);
    expect((await listening.listTools()).tools).toHaveLength(7);
  });

  test("a session is its owner's alone, and all end with the handler", async () => {
    const { McpSessions } = await import("../../src/mcp/sessions.ts");
    const { mcpSource } = await import("../../src/mcp/source.ts");
    const { world } = await fileWorld();
    await using sessions = new McpSessions();
    const open = async () => mcpSource({ world });
    const begun = await sessions.handle(request({ body: JSON.stringify(INITIALIZE) }), { owner: "alice", open });
    await begun.text();
    const id = begun.headers.get("mcp-session-id")!;
    const list = () =>
      request({ headers: { "mcp-session-id": id }, body: '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' });
    expect((await sessions.handle(list(), { owner: "mallory", open })).status).toBe(404);
    expect((await sessions.handle(list(), { owner: "alice", open })).status).toBe(200);
    await sessions[Symbol.asyncDispose]();
    expect((await sessions.handle(list(), { owner: "alice", open })).status).toBe(503);
  });
});

describe("calls that need somebody's agreement", () => {
  const risky = declareTool({
    name: "risky",
    description: "Does something risky.",
    input: z.strictObject({ what: z.string() }),
    risk: "HIGH",
    effects: { readOnly: false, destructive: true, openWorld: false },
    handler: async ({ what }) => ({ text: `did ${what}` }),
  });

  async function clientFor(approval: McpApproval, onElicit?: Parameters<typeof connect>[1] & object) {
    const confirmation = new ClientConfirmationService(approval);
    const { world } = await fileWorld({ tools: [risky], confirmation });
    return await connect(handlerFor({ world, confirmation }), onElicit);
  }

  const DID = { text: "did it", isError: false };
  const DENIED = { text: expect.stringMatching(/^this call was not approved, and nothing was done/), isError: true };
  const NOBODY = {
    text:
      "this call was not approved, and nothing was done: this MCP client cannot ask its user; " +
      'to have such calls run unasked, make the server with new ClientConfirmationService("never")',
    isError: true,
  };

  test.each<[McpApproval, typeof DID, typeof DID, boolean]>([
    ["ask", DID, NOBODY, true],
    ["never", DID, DID, false],
  ])("%s: with a client that can ask, and with one that cannot", async (approval, withUser, without, asks) => {
    const shown: string[] = [];
    const onElicit = (message: string) => {
      shown.push(message);
      return { action: "accept" as const, content: { approve: true } };
    };
    expect(await call(await clientFor(approval, { onElicit }), "risky", { what: "it" })).toMatchObject(withUser);
    expect(shown).toHaveLength(asks ? 1 : 0);
    for (const message of shown) expect(message).toMatch(/risky.*HIGH.*\{"what":"it"\}/s);
    expect(await call(await clientFor(approval), "risky", { what: "it" })).toMatchObject(without);
  });

  test.each([
    ["says no", { action: "accept" as const, content: { approve: false } }],
    ["declines", { action: "decline" as const }],
    ["closes the question", { action: "cancel" as const }],
    ["accepts without an answer", { action: "accept" as const }],
  ])("a user who %s has said no", async (_what, answer) => {
    const client = await clientFor("ask", { onElicit: () => answer });
    expect(await call(client, "risky", { what: "it" })).toMatchObject(DENIED);
  });

  test("a client that fails to ask has not said yes", async () => {
    const client = await clientFor("ask", { onElicit: () => Promise.reject(new Error("no window")) });
    expect(await call(client, "risky", { what: "it" })).toMatchObject(DENIED);
  });

  test("what is too long to be shown in full is not agreed to", async () => {
    const client = await clientFor("ask", { onElicit: () => ({ action: "accept", content: { approve: true } }) });
    expect(await call(client, "risky", { what: "x".repeat(30_000) })).toMatchObject(DENIED);
  });

  test("each client is asked about its own calls", async () => {
    const confirmation = new ClientConfirmationService();
    const { world } = await fileWorld({ tools: [risky], confirmation });
    const handler = handlerFor({ world, confirmation });
    const yes = await connect(handler, { onElicit: () => ({ action: "accept", content: { approve: true } }) });
    const no = await connect(handler, { onElicit: () => ({ action: "decline" }) });
    const answers = await Promise.all([yes, no, yes, no].map((client) => call(client, "risky", { what: "it" })));
    expect(answers.map(({ isError }) => isError)).toEqual([false, true, false, true]);
  });

  test("outside of a client's call there is nobody to ask", async () => {
    const wanted = { ask: "denied", never: "approved" };
    for (const approval of MCP_APPROVALS) {
      const question = {
        sessionId: "s",
        action: "risky",
        code: "x",
        risk: { level: "HIGH" as const, detected: [] },
        reason: "r",
        expiresAt: new Date(Date.now() + 60_000),
      };
      const answer = await new ClientConfirmationService(approval).request(question);
      expect(answer).toMatchObject({ decision: wanted[approval], hash: requestHash(question) });
    }
  });
});

test("cancelling a call aborts it, and so does the end of the handler", async () => {
  const began: PromiseWithResolvers<AbortSignal>[] = [Promise.withResolvers(), Promise.withResolvers()];
  let count = 0;
  const browser = {
    execute: (_action: unknown, _context: unknown, { signal }: { readonly signal?: AbortSignal | undefined } = {}) => {
      began[count++]!.resolve(signal!);
      return new Promise<never>((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
    },
  };
  const handler = handlerFor({ world: (await fileWorld({ browser })).world });
  const client = await connect(handler);
  const cancelled = new AbortController();
  const first = call(client, "browser_wait", { ms: 1 }, cancelled.signal);
  const firstSignal = await began[0]!.promise;
  cancelled.abort();
  await expect(first).rejects.toThrow();
  await eventually(() => expect(firstSignal.aborted).toBe(true));

  const second = call(client, "browser_wait", { ms: 1 });
  second.catch(() => {});
  const secondSignal = await began[1]!.promise;
  expect(secondSignal.aborted).toBe(false);
  await handler[Symbol.asyncDispose]();
  expect(secondSignal.aborted).toBe(true);
});

test("a client has no more than 32 calls at a time", async () => {
  const { promise: free, resolve } = Promise.withResolvers<void>();
  const browser = { execute: () => free.then(() => ({ success: true })) };
  const client = await connect(handlerFor({ world: (await fileWorld({ browser })).world }));
  const calls = Array.from({ length: 40 }, () => call(client, "browser_wait", { ms: 1 }));
  const refused: string[] = [];
  for (const each of calls) void each.then(({ text, isError }) => isError && refused.push(text));
  await eventually(() => expect(refused).toHaveLength(8));
  expect(new Set(refused)).toEqual(new Set(["more than 32 calls at a time"]));
  resolve();
  expect((await Promise.all(calls)).filter(({ isError }) => !isError)).toHaveLength(32);
});

test("the audit trail of a world without a sandbox is its own events, and there are no changes", async () => {
  const client = await connect(handlerFor({ world: (await fileWorld()).world }));
  await call(client, "list_files", {});
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["agentfense://audit"]);
  expect((await client.listResourceTemplates()).resourceTemplates).toEqual([]);
  const [content] = (await client.readResource({ uri: "agentfense://audit" })).contents as { text: string }[];
  expect(JSON.parse(content!.text)).toMatchObject([
    { type: "called", tool: "list_files" },
    { type: "finished", isError: false },
  ]);
  await expect(client.readResource({ uri: "agentfense://changes" })).rejects.toThrow("-32002");
});
