import { once } from "node:events";
import { connect } from "node:net";
import { EventService } from "@agentfense/protocol/event";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { SystemService } from "@agentfense/protocol/system";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { eventually, HANG_MS, withoutHanging } from "../../../../../test/support/eventually.ts";
import { openTestService } from "./fixture.ts";

async function codeOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "OK",
    (error: unknown) => Code[ConnectError.from(error).code],
  );
}

function clients(open: Awaited<ReturnType<typeof openTestService>>) {
  const transport = createGrpcTransport({ baseUrl: `http://${open.grpc}` });
  return { sandboxes: createClient(SandboxService, transport), events: createClient(EventService, transport) };
}

async function watchAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

test("running commands end, watches are sent home, and the ports close", async () => {
  const open = await openTestService();
  const { sandboxes, events } = clients(open);
  const exec = codeOf(sandboxes.exec({ command: "held" }));
  const rest = fetch(`http://${open.http}/v1/sandboxes/sb_1/exec`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ command: "held" }),
  });
  const watch = codeOf(watchAll(events.watchEvents({})));
  await eventually(() => open.journal.calls.length === 3);
  const drained = withoutHanging(() => open.service.drain(10 * HANG_MS));
  open.journal.held.resolve();
  await drained;
  expect(open.journal.ended.filter((end) => end.startsWith("Exec"))).toEqual(["Exec done", "Exec done"]);
  expect(await exec).toBe("OK");
  expect(await (await rest).json()).toMatchObject({ stdout: "done" });
  expect(await watch).toBe("Unavailable");
  await expect(fetch(`http://${open.http}/healthz`)).rejects.toThrow();
});

test("while it drains, the server is not ready and takes no new call on connections that are still there", async () => {
  const open = await openTestService();
  // A connection of HTTP/1 that is kept busy, then used again.
  const transport = createConnectTransport({ baseUrl: `http://${open.http}`, httpVersion: "1.1" });
  const exec = codeOf(createClient(SandboxService, transport).exec({ command: "held" }));
  await eventually(() => open.journal.calls.length === 1);
  const drained = open.service.drain(10 * HANG_MS);
  expect(await codeOf(createClient(SystemService, transport).getServerInfo({}))).toBe("Unavailable");
  open.journal.held.resolve();
  expect(await exec).toBe("OK");
  await drained;
  expect(open.journal.calls).toEqual(["Exec"]);
});

test("what is still running at the deadline is told why, and then cut", async () => {
  const open = await openTestService();
  const { sandboxes } = clients(open);
  const exec = sandboxes.exec({ command: String(10 * HANG_MS) }).then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
  await eventually(() => open.journal.calls.length === 1);
  await withoutHanging(() => open.service.drain(300));
  expect(await exec).toMatchObject({ code: Code.Unavailable, rawMessage: "the server is shutting down" });
  await eventually(() => open.journal.ended.includes("Exec aborted"));
});

test("a client that neither reads nor goes does not hold the server up", async () => {
  const open = await openTestService();
  const [host = "", port] = open.http.split(":");
  const socket = connect({ host, port: Number(port) });
  socket.on("error", () => {});
  socket.write("GET /v1/codebases/cb_1/files/a?version=100000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await eventually(() => open.journal.producedChunks > 0);
  await withoutHanging(() => open.service.drain(200));
  await eventually(() => open.journal.ended.includes("DownloadFile"));
  socket.destroy();
});

test.each(["", "PR"])("a client that left after saying %j does not hold the server up", async (said) => {
  const open = await openTestService({ limits: { headerTimeoutMs: 10 * HANG_MS } });
  const [host = "", port] = open.http.split(":");
  const socket = connect({ host, port: Number(port), allowHalfOpen: true });
  socket.end(said).resume();
  await withoutHanging(() => once(socket, "end"));
  socket.destroy();
  await withoutHanging(() => open.service.drain(10 * HANG_MS));
});

test("draining twice is draining once", async () => {
  const open = await openTestService();
  await Promise.all([open.service.drain(100), open.service.close(), open.service.drain(0)]);
});
