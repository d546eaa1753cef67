import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AioExecutor } from "@agentfense/agent";
import { Sandbox } from "@agentfense/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GuardedServer, type Party } from "../../../../test/support/owners.ts";

// The door as `agentfense serve` has it, with keys.

const opened = new AsyncDisposableStack();
let guarded: GuardedServer;
let sandbox: Sandbox;
let url: string;
beforeAll(async () => {
  guarded = opened.use(await GuardedServer.start());
  const directory = mkdtempSync(join(tmpdir(), "agentfense-aio-"));
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, "a.txt"), "one\n");
  writeFileSync(join(directory, ".env"), "SECRET=1\n");
  sandbox = await Sandbox.fromLocal(directory, {
    endpoint: guarded.server.grpc,
    apiKey: guarded.alice.key,
    permissions: [
      { pattern: "**", permission: "write" },
      { pattern: "/.env", permission: "none" },
    ],
  });
  opened.use(sandbox);
  url = `${guarded.server.http}/aio/${sandbox.id}`;
});
afterAll(() => opened.disposeAsync());

async function post(party: Party | undefined, path: string, body: object): Promise<{ status: number; body: string }> {
  const headers = {
    "content-type": "application/json",
    ...(party === undefined ? {} : { "x-aio-api-key": party.key }),
  };
  const response = await fetch(`${url}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.text() };
}

const CALLS = {
  "v1/bash/exec": { command: "echo ran", session_id: "s" },
  "v1/shell/exec": { command: "echo ran", id: "s" },
  "v1/code/execute": { language: "python", code: "print('ran')" },
  "v1/file/read": { file: "a.txt" },
  "v1/file/write": { file: "b.txt", content: "ran" },
  "v1/file/list": { path: "/workspace" },
  "v1/shell/sessions/create": { id: "other" },
  mcp: { jsonrpc: "2.0", id: 1, method: "initialize", params: {} },
} as const;

test("an executor works through it, with its key, and the rules hold", async () => {
  await using executor = new AioExecutor({ baseUrl: url, apiKey: guarded.alice.key });
  const risk = { level: "HIGH", detected: [] } as const;
  const code = "import os; print(open('a.txt').read(), os.path.exists('.env'), os.getcwd())";
  expect(await executor.execute({ code, language: "python", risk, securityMode: "STRICT" })).toMatchObject({
    stdout: "one\n False /workspace\n",
    exitCode: 0,
  });
});

test("without a key, or with a stranger's, nothing is told and nothing is done", async () => {
  for (const [path, body] of Object.entries(CALLS)) {
    expect((await post(undefined, path, body)).status).toBe(401);
    const stranger = await post(guarded.mallory, path, body);
    expect(stranger.status).toBe(404);
    expect(stranger.body).not.toMatch(/ran|one/);
  }
  expect((await fetch(`${url}/v1/sandbox?api_key=${guarded.mallory.key}`)).status).toBe(404);
  expect((await fetch(`${url}/v1/sandbox?api_key=${guarded.alice.key}`)).status).toBe(200);
  expect(await sandbox.files.readdir("/")).not.toContain("b.txt");
});

test("who may only look runs nothing, also not in what another key of the same owner has begun", async () => {
  expect((await post(guarded.alice, "v1/bash/exec", CALLS["v1/bash/exec"])).body).toContain("ran\\n");
  const running = { command: "read x; echo got $x", session_id: "open", async_mode: true };
  expect((await post(guarded.alice, "v1/bash/exec", running)).status).toBe(200);
  for (const path of ["v1/bash/exec", "v1/shell/exec", "v1/code/execute", "v1/file/write"] as const) {
    const answer = await post(guarded.reader, path, CALLS[path]);
    expect(answer.status).toBe(403);
    expect(answer.body).toContain('"success":false');
  }
  expect((await post(guarded.reader, "v1/bash/write", { session_id: "open", input: "x\n" })).status).toBe(404);
  expect((await post(guarded.reader, "v1/bash/output", { session_id: "open" })).status).toBe(404);
  expect((await post(guarded.alice, "v1/bash/kill", { session_id: "open" })).status).toBe(200);
});

test("with a key that was revoked, nothing goes on", async () => {
  const party = await guarded.party("alice");
  expect((await post(party, "v1/shell/exec", { command: "X=1", id: "r" })).status).toBe(200);
  await guarded.admin.grpc.call("SystemService", "RevokeKey", { key_id: party.keyId });
  expect((await post(party, "v1/shell/exec", { command: "echo $X", id: "r" })).status).toBe(401);
});
