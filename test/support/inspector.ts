import { once } from "node:events";
import type { TestServer } from "./server.ts";

/** For the environment of a server whose memory is looked at. The allocator gives back what it would keep for later. */
export const INSPECTABLE = {
  NODE_OPTIONS: "--inspect=127.0.0.1:0",
  MALLOC_MMAP_THRESHOLD_: "16384",
  MALLOC_TRIM_THRESHOLD_: "65536",
} as const;

/** Threads that never get to hear a message: they wait for the kernel in a loop of their own. */
const DEAF = /agentfense-mount/;

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
}

/** Bytes that the objects of all threads take in a server that was started inspectable, without what nobody needs. */
export async function usedHeap(server: TestServer): Promise<number> {
  await using inspector = await Inspector.connect(server);
  let bytes = 0;
  for (const thread of [undefined, ...(await inspector.workers())]) {
    await inspector.ask("HeapProfiler.collectGarbage", {}, thread);
    const { usedSize } = await inspector.ask("Runtime.getHeapUsage", {}, thread);
    bytes += Number(usedSize);
  }
  return bytes;
}

class Inspector implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #heard: Reply[] = [];
  #wake = (): void => {};
  #asked = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      this.#heard.push(unwrapped(JSON.parse(String(data)) as Reply));
      this.#wake();
    });
  }

  static async connect({ output }: TestServer): Promise<Inspector> {
    const [address] = output.match(/ws:\/\/\S+/) ?? [];
    if (address === undefined) throw new Error("the server is not inspectable");
    const socket = new WebSocket(address);
    await once(socket, "open");
    return new Inspector(socket);
  }

  /** `thread` is the session of a worker; the main thread's unless given. */
  async ask(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    thread?: string,
  ): Promise<NonNullable<Reply["result"]>> {
    const id = ++this.#asked;
    const message = { id, method, params };
    if (thread === undefined) this.#socket.send(JSON.stringify(message));
    else {
      const wrapped = { sessionId: thread, message: JSON.stringify(message) };
      await this.ask("NodeWorker.sendMessageToWorker", wrapped);
    }
    const { result = {} } = await this.#hear((reply) => reply.id === id);
    return result;
  }

  /** The sessions of the threads that listen. */
  async workers(): Promise<readonly string[]> {
    await this.ask("NodeWorker.enable", { waitForDebuggerOnStart: false });
    return this.#heard
      .filter(({ method }) => method === "NodeWorker.attachedToWorker")
      .map(({ params }) => params as { sessionId: string; workerInfo: { title: string } })
      .filter(({ workerInfo }) => !DEAF.test(workerInfo.title))
      .map(({ sessionId }) => sessionId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }

  async #hear(isWanted: (reply: Reply) => boolean): Promise<Reply> {
    for (;;) {
      const reply = this.#heard.find(isWanted);
      if (reply !== undefined) return reply;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** What a worker says comes as text within a message of the main thread's. */
function unwrapped(reply: Reply): Reply {
  if (reply.method !== "NodeWorker.receivedMessageFromWorker") return reply;
  return JSON.parse(String(reply.params?.message)) as Reply;
}
