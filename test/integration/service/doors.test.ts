import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AioExecutor, ConfirmationReviewer, isApproval, RemoteConfirmationService } from "@agentfense/agent";
import { Sandbox } from "@agentfense/sdk";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestServer } from "../../support/server.ts";

// The doors beside gRPC and REST, as `agentfense serve` opens them.

let server: TestServer;
let sandbox: Sandbox;
const opened = new AsyncDisposableStack();

beforeAll(async () => {
  server = opened.use(await TestServer.start({ settings: { server: { aio_browser: "/usr/bin/chromium" } } }));
  const project = await mkdtemp(join(tmpdir(), "agentfense-doors-"));
  opened.defer(() => rm(project, { recursive: true, force: true }));
  await writeFile(join(project, "README.md"), "# readme\n");
  await writeFile(join(project, ".env"), "SECRET=canary\n");
  sandbox = opened.use(await Sandbox.fromLocal(project, { endpoint: server.grpc, preset: "development" }));
});
afterAll(() => opened.disposeAsync());

const aio = (path: string): string => `${server.http}/aio/${sandbox.id}${path}`;

test("a client of the AIO sandbox works in a sandbox of ours, under its rules", async () => {
  await using executor = new AioExecutor({ baseUrl: aio("") });
  const outcome = await executor.execute({
    code: "cat README.md .env",
    language: "bash",
    risk: { level: "LOW", detected: [] },
    securityMode: "STRICT",
  });
  expect(outcome).toMatchObject({ stdout: "# readme\n", exitCode: 1 });
  expect(outcome.stderr).toContain("No such file");
  const read = await fetch(aio("/v1/file/read"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ file: "/workspace/.env", sudo: true }),
  });
  expect(read.status).toBe(200);
  expect(await read.json()).toMatchObject({ success: false, data: { error_type: "not_found" } });
});

test("it has a browser in there, which sees what the rules show", async () => {
  const go = async (url: string) => {
    const body = JSON.stringify({ url });
    const headers = { "content-type": "application/json" };
    return (await fetch(aio("/v1/browser/page/navigate"), { method: "POST", headers, body })).json();
  };
  const info = await (await fetch(aio("/v1/browser/info"))).json();
  expect(info).toMatchObject({ success: true, data: { user_agent: expect.stringContaining("Chrome") } });
  expect(await go("file:///workspace/README.md")).toMatchObject({ success: true });
  const image = await fetch(aio("/v1/browser/screenshot"));
  expect(
    Buffer.from(await image.arrayBuffer())
      .subarray(1, 4)
      .toString(),
  ).toBe("PNG");
  expect(await go("file:///workspace/.env")).toMatchObject({ success: false });
});

test("nobody's sandbox is not there", async () => {
  expect((await fetch(`${server.http}/aio/sb_${"0".repeat(32)}/v1/sandbox`)).status).toBe(404);
});

test("the official MCP client lists and calls tools", async () => {
  const client = new Client({ name: "test", version: "1" });
  // Its types were not written for exactOptionalPropertyTypes.
  await client.connect(new StreamableHTTPClientTransport(new URL(aio("/mcp"))) as Transport);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["run_code", "shell", "read_file"]));
  const readme = await client.callTool({ name: "read_file", arguments: { path: "README.md" } });
  expect(JSON.stringify(readme.content)).toContain("# readme");
  const secret = await client.callTool({ name: "read_file", arguments: { path: ".env" } });
  expect(secret.isError).toBe(true);
  await client.close();
});

test("what an agent asks elsewhere is answered by whoever is connected", async () => {
  await using reviewer = await ConfirmationReviewer.connect({ endpoint: server.http });
  const asking = new RemoteConfirmationService({ endpoint: server.http });
  const request = {
    sessionId: "s1",
    action: "run_code",
    code: "rm -rf build",
    risk: { level: "HIGH", detected: [] },
    reason: "it deletes",
    expiresAt: new Date(Date.now() + 60_000),
  } as const;
  const answer = asking.request(request);
  for await (const { id, request: shown } of reviewer) {
    expect(shown.code).toBe("rm -rf build");
    await reviewer.answer(id, true);
    break;
  }
  expect(isApproval(await answer, request)).toBe(true);
});

test("each can be left out", async () => {
  await using closed = await TestServer.start({ settings: { server: { aio: false, confirmations: false } } });
  expect((await fetch(`${closed.http}/aio/sb_x/v1/sandbox`)).status).toBe(404);
  expect((await fetch(`${closed.http}/v1/confirmations`)).status).toBe(404);
  expect((await fetch(`${server.http}/v1/confirmations`)).status).toBe(426);
});
