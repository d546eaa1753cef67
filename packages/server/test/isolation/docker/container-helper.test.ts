import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ContainerHelper } from "../../../src/isolation/docker/container-helper.ts";

/** A frame of the engine's streams: one byte for the stream, four for the length. */
function frame(text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

/** A helper whose processes, one after the other, do with a question what they are told. */
async function helperOf(...processes: ((socket: Socket, id: string) => void)[]): Promise<ContainerHelper> {
  const server = createServer((socket) => {
    const answer = processes.shift();
    socket.on("data", (question) => answer?.(socket, question.toString().split(" ")[0]!));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const helper = new ContainerHelper(
    async () => {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      return socket;
    },
    (work) => work(),
  );
  onTestFinished(() => {
    helper.close();
    server.close();
  });
  return helper;
}

const dies = (socket: Socket): void => void socket.destroy();
const answers = (socket: Socket, id: string): void => void socket.write(frame(`${id} /bin/bash /bin/sh\n`));

test("a helper that was killed is replaced, and asked again for what cannot be done without", async () => {
  const helper = await helperOf(dies, answers);
  expect(await helper.shells()).toEqual(["/bin/bash", "/bin/sh"]);
});

test("two that do not answer are an error", async () => {
  const helper = await helperOf(dies, dies);
  await expect(helper.shells()).rejects.toMatchObject({ message: "the sandbox's helper does not answer" });
});

test("a kill is asked for twice: the last resort, a restart, would end all that runs in the background", async () => {
  const counts = (socket: Socket, id: string): void => void socket.write(frame(`${id} 0\n`));
  expect(await (await helperOf(dies, counts)).clear({ root: 1, wrapper: 2 })).toBe(0);
  await expect((await helperOf(dies, dies)).clear({ root: 1, wrapper: 2 })).rejects.toThrow("does not answer");
});
