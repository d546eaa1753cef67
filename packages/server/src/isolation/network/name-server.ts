import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { answerName, type NameSource } from "./names.ts";
import { TurnShare } from "./turn-share.ts";

const TCP_CONNECTIONS = 16;
const TCP_IDLE_MS = 5000;
/** A question is a name and a few bytes; some pad it. */
const QUESTION_BYTES = 4096;

/** Told of a name that was refused to the socket at a port; an answer by UDP waits for what comes back. */
type OnRefused = (host: string, protocol: "tcp" | "udp", port: number) => Promise<void> | undefined;

/** Answers at the two sockets, which it owns, from a sandbox's list alone. */
export class NameServer implements AsyncDisposable {
  readonly #udp = createSocket("udp4");
  readonly #tcp: Server;
  readonly #connections = new Set<Socket>();
  #isClosed = false;

  private constructor(source: NameSource, onRefused: OnRefused) {
    const share = new TurnShare();
    this.#udp.on("message", (query, { address, port }) => {
      if (!share.take()) return; // who asked will ask again
      const answered = answerName(query, source);
      if (answered === undefined) return;
      const told = answered.refused === undefined ? undefined : onRefused(answered.refused, "udp", port);
      const send = (): void => {
        // Whoever asked from a port that takes nothing does not want to know.
        if (!this.#isClosed) this.#udp.send(answered.message, port, address, () => {});
      };
      if (told === undefined) send();
      else void told.then(send);
    });
    this.#udp.on("error", () => {}); // an answer that could not be sent
    this.#tcp = createServer((socket) => {
      this.#connections.add(socket);
      socket.once("close", () => this.#connections.delete(socket));
      socket.on("error", () => {}).setTimeout(TCP_IDLE_MS, () => socket.destroy());
      const answer = (query: Buffer): Buffer | undefined => {
        const answered = answerName(query, source);
        if (answered?.refused !== undefined) void onRefused(answered.refused, "tcp", socket.remotePort ?? 0);
        return answered?.message;
      };
      answerStream(socket, answer, share);
    });
    this.#tcp.maxConnections = TCP_CONNECTIONS;
    this.#tcp.on("error", () => {});
  }

  static async open(
    { dnsUdp, dnsTcp }: { readonly dnsUdp: number; readonly dnsTcp: number },
    source: NameSource,
    onRefused: OnRefused,
  ): Promise<NameServer> {
    const server = new NameServer(source, onRefused);
    // A socket for datagrams that is there already listens before bind() returns.
    const listening = [once(server.#udp, "listening"), once(server.#tcp, "listening")];
    try {
      server.#udp.bind({ fd: dnsUdp });
      server.#tcp.listen({ fd: dnsTcp });
      await Promise.all(listening);
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const closed = [once(this.#udp, "close"), once(this.#tcp, "close")];
    this.#udp.close();
    this.#tcp.close();
    for (const socket of this.#connections) socket.destroy();
    await Promise.all(closed);
  }
}

/** Messages with their length before them. More is read when those that came are answered, and the answers on their way. */
function answerStream(socket: Socket, answer: (query: Buffer) => Buffer | undefined, share: TurnShare): void {
  let held = Buffer.alloc(0);
  const next = (): void => {
    const end = held.length < 2 ? 2 : 2 + held.readUInt16BE(0);
    if (socket.destroyed || end > 2 + QUESTION_BYTES) return void socket.destroy();
    if (held.length < 2 || held.length < end) {
      if (socket.writableNeedDrain) socket.once("drain", () => socket.resume());
      else socket.resume();
      return;
    }
    const message = answer(held.subarray(2, end));
    held = held.subarray(end);
    if (message === undefined) return void socket.destroy();
    const length = Buffer.alloc(2);
    length.writeUInt16BE(message.length);
    socket.write(Buffer.concat([length, message]));
    share.run(next);
  };
  socket.on("data", (piece: Buffer) => {
    held = Buffer.concat([held, piece]);
    socket.pause();
    share.run(next);
  });
}
