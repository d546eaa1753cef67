import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Warden } from "../../../src/isolation/docker/warden.ts";

/** A frame of the engine's streams: one byte for the stream, four for the length. */
function frame(text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

/** A warden whose processes, one after the other, do with a question what they are told. */
async function wardenOf(...processes: ((socket: Socket, id: string) => void)[]): Promise<Warden> {
  const server = createServer((socket) => {
    const answer = processes.shift();
    socket.on("data", (question) => answer?.(socket, question.toString().split(" ")[0]!));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const warden = new Warden(
    async () => {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      return socket;
    },
    (work) => work(),
  );
  onTestFinished(() => {
    warden.close();
    server.close();
  });
  return warden;
}

const dies = (socket: Socket): void => void socket.destroy();
const answers = (socket: Socket, id: string): void => void socket.write(frame(`${id} /bin/bash /bin/sh\n`));

test("a warden that was killed is replaced, and asked again for what cannot be done without", async () => {
  const warden = await wardenOf(dies, answers);
  expect(await warden.shells()).toEqual(["/bin/bash", "/bin/sh"]);
});

test("two that do not answer are an error", async () => {
  const warden = await wardenOf(dies, dies);
  await expect(warden.shells()).rejects.toMatchObject({ message: "the sandbox's warden does not answer" });
});

test("a kill is asked for twice: the last resort, a restart, would end all that runs in the background", async () => {
  const counts = (socket: Socket, id: string): void => void socket.write(frame(`${id} 0\n`));
  expect(await (await wardenOf(dies, counts)).clear({ root: 1, wrapper: 2 })).toBe(0);
  await expect((await wardenOf(dies, dies)).clear({ root: 1, wrapper: 2 })).rejects.toThrow("does not answer");
});
