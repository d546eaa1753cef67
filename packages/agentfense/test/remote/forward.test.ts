import { once } from "node:events";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { registryError } from "../../../../test/support/scripted-server.ts";
import { start } from "../run-cli.ts";
import { SANDBOX, scriptedServer } from "./scripted-server.ts";

/** A sandbox in which port 3000 gives back what it gets, in capitals, and nothing else listens. */
const SANDBOXES = {
  getSandbox: ({ sandboxId }: { sandboxId: string }) => {
    if (sandboxId !== "sb_1") throw registryError("SANDBOX_NOT_FOUND", "sandbox not found");
    return { ...SANDBOX, id: sandboxId };
  },
  async *forwardPort(requests: AsyncIterable<{ content: { case?: string | undefined; value?: unknown } }>) {
    for await (const { content } of requests) {
      if (content.case === "open") {
        const { port } = content.value as { port: number };
        if (port !== 3000) throw registryError("PORT_CLOSED", `nothing listens at port ${port} of the sandbox`);
        yield {};
      } else if (content.case === "data") {
        const value = Buffer.from(
          Buffer.from(content.value as Uint8Array)
            .toString()
            .toUpperCase(),
        );
        yield { content: { case: "data" as const, value } };
      } else if (content.case === "end") {
        yield { content: { case: "data" as const, value: Buffer.from(".") } };
        yield { content: { case: "end" as const, value: true } };
        return;
      }
    }
  },
};

async function forward(ports: string) {
  const server = await scriptedServer({ sandboxes: SANDBOXES });
  const child = start(["sandbox", "forward", "sb_1", ports], { env: server.env });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exited;
  });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const line = String((await lines.next()).value);
  expect(line).toMatch(/^127\.0\.0\.1:\d+ is port \d+ of sb_1; Ctrl-C ends it$/);
  const [address = ""] = line.split(" ");
  return { child, port: Number(address.split(":")[1]) };
}

test("sandbox forward carries any number of connections to a port of loopback, each direction to its end", async () => {
  const { port } = await forward("3000:0");
  const say = async (text: string): Promise<string> => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.end(text);
    return (await buffer(socket)).toString();
  };
  expect(await Promise.all(["one", "two", "three"].map(say))).toEqual(["ONE.", "TWO.", "THREE."]);
});

test("a connection to a port where nothing listens is cut, and said", async () => {
  const { child, port } = await forward("3001:0");
  const complaint = once(child.stderr!, "data");
  const socket = connect(port, "127.0.0.1");
  await expect(once(socket, "close")).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(String((await complaint)[0])).toContain("nothing listens at port 3001 of the sandbox");
});

test("what cannot be forwarded is refused before anything listens", async () => {
  const server = await scriptedServer({ sandboxes: SANDBOXES });
  for (const ports of ["0", "x", "3000:", "70000", "3000:70000", "3000:1:2"]) {
    const { code, stderr } = await server.run(["sandbox", "forward", "sb_1", ports]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("takes PORT or PORT:LOCAL") });
  }
  expect(await server.run(["sandbox", "forward", "sb_2", "3000:0"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("sandbox not found"),
  });
  const taken = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  expect(await server.run(["sandbox", "forward", "sb_1", `3000:${port}`])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/EADDRINUSE[\s\S]*sandbox forward sb_1 3000:0/),
  });
});
