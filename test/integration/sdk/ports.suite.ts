import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { Sandbox } from "@agentfense/sdk";
import { expect, onTestFinished, test } from "vitest";

const SERVE =
  "cd /tmp && echo hello > index.html && setsid python3 -m http.server 4711 --bind 127.0.0.1 >/tmp/log 2>&1 &";
/** Gives back what it gets. */
const ECHO = `import socket
server = socket.create_server(("127.0.0.1", 4712))
while True:
    client, _ = server.accept()
    while data := client.recv(65536):
        client.sendall(data)
    client.sendall(b"and that was all")
    client.close()
`;

/** Ports of a sandbox, wherever it is. */
export function describePorts(open: () => Promise<Sandbox>): void {
  test("a port is waited for, and reached by both of its links", async () => {
    const sandbox = await open();
    await expect(sandbox.waitForPort(4711, { timeoutMs: 1 })).rejects.toMatchObject({
      name: "PortClosedError",
      message: "nothing listened at port 4711 of the sandbox within 1 ms",
    });
    await sandbox.run(SERVE);
    await sandbox.waitForPort(4711);
    const port = await sandbox.port(4711, { expiresInMs: 60_000 });
    expect(port).toMatchObject({ sandboxId: sandbox.id, port: 4711, token: expect.stringMatching(/^afp\./) });
    const page = await fetch(port.url, { headers: { "x-agentfense-token": port.token } });
    expect([page.status, await page.text()]).toEqual([200, "hello\n"]);
    const { host, pathname, search } = new URL(port.hostUrl);
    const { hostname, port: listening } = new URL(port.url);
    expect(host).toBe(`4711-${sandbox.id}.localhost:${listening}`);
    // Browsers know where such names lead, other programs need not.
    const asking = get({ host: hostname, port: listening, path: `${pathname}${search}`, headers: { host } });
    const [byHost] = (await once(asking, "response")) as [IncomingMessage];
    expect([byHost.statusCode, await text(byHost)]).toEqual([200, "hello\n"]);
    const tampered = await fetch(port.url, { headers: { "x-agentfense-token": `${port.token}x` } });
    expect(tampered.status).toBe(401);
  });

  test("a connection carries bytes both ways, and ends in one direction at a time", async () => {
    const sandbox = await open();
    await sandbox.run("cat > /tmp/echo.py; setsid python3 /tmp/echo.py >/tmp/echo.log 2>&1 &", { stdin: ECHO });
    await sandbox.waitForPort(4712);
    await using connection = await (await sandbox.port(4712)).connect();
    const bytes = randomBytes(4 << 20);
    const sending = (async () => {
      const writer = connection.writable.getWriter();
      await writer.write(bytes);
      await writer.close();
    })();
    const received = Buffer.concat(await Array.fromAsync(connection.readable));
    await sending;
    const hash = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");
    expect(hash(received)).toBe(hash(Buffer.concat([bytes, Buffer.from("and that was all")])));
  });

  test("a connection to nothing is refused by its port", async () => {
    const sandbox = await open();
    const port = await sandbox.port(4713);
    await expect(port.connect()).rejects.toMatchObject({
      name: "PortClosedError",
      code: "PORT_CLOSED",
      message: "nothing listens at port 4713 of the sandbox",
    });
    const answer = await fetch(port.url, { headers: { "x-agentfense-token": port.token } });
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining("port 4713")]);
  });

  test("a link is worth nothing when the sandbox is gone", async () => {
    const sandbox = await open();
    const { url, token } = await sandbox.port(80);
    onTestFinished(() => sandbox.destroy().catch(() => {}));
    await sandbox.destroy();
    expect((await fetch(url, { headers: { "x-agentfense-token": token } })).status).toBe(404);
  });
}
