import { once } from "node:events";
import { createServer, type OnReadOpts, type Server, type Socket } from "node:net";
import type { MessagePort } from "node:worker_threads";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { type Connection, cut, join, StraightReading } from "./connection.ts";
import { DialError, Dialer } from "./dial.ts";
import { EventFold, SocketOwners, type UncountedEvent } from "./events.ts";
import type { GateListeners, PortListeners, TestInternet } from "./gate.ts";
import { Alert, alertRecord, type Hello, HelloReader } from "./hello.ts";
import { type OpenedConnection, openTls } from "./inspect.ts";
import { NameServer } from "./name-server.ts";
import { NameTable } from "./names.ts";
import { covers, HTTP_PORT, isConditional, type NetworkPolicy, refusal, TLS_PORT } from "./policy.ts";
import { RequestReader } from "./requests.ts";
import type { Opener } from "./secret-holder.ts";
import { SecretSet } from "./secrets.ts";
import { TurnShare } from "./turn-share.ts";

const MOST_CONNECTIONS = 512;
/** How many of those may not have said yet what they want, or not have reached it. */
const MOST_HALF_OPEN = 128;
const HELLO_MS = 5000;
/** A connection is one descriptor here and one to the host. */
const DESCRIPTORS_EACH = 2;

export interface BoxNetworkOptions {
  readonly policy: NetworkPolicy;
  readonly listeners: GateListeners;
  readonly events: MessagePort;
  /** Whether it can be asked who has a socket. */
  readonly knowsOwners: boolean;
  readonly internet: TestInternet | undefined;
  /** What all boxes' connections share. */
  readonly room: DescriptorRoom;
  /** What opens connections, where there are any to be opened. */
  readonly opener: Opener | undefined;
}

const ENCRYPTED_NAME = "the name of the server is encrypted (ECH), which this sandbox's network refuses";

const NO_SECRETS = new SecretSet([]);

/** A connection that is counted, until its socket is closed. */
interface Held extends Connection {
  /** Whether nobody looks at its requests. */
  isPassedThrough: boolean;
  isHalfOpen: boolean;
}

/** One box's network, in the thread of all. The address that a connection came to is the name that it is for. */
export class BoxNetwork implements AsyncDisposable {
  readonly #events: EventFold;
  readonly #port: MessagePort;
  readonly #owners: SocketOwners | undefined;
  readonly #room: DescriptorRoom;
  readonly #names: NameTable;
  readonly #dialer: Dialer;
  readonly #reader = new RequestReader();
  /** The share of time for all that its connections want. */
  readonly #share = new TurnShare();
  readonly #opener: Opener | undefined;
  /** Trusted beside those of this host. */
  readonly #certificates: readonly string[];
  readonly #servers: Server[] = [];
  readonly #held = new Set<Held>();
  /** How many connections a name has. */
  readonly #inUse = new Map<string, number>();
  #halfOpen = 0;
  #isClosed = false;
  #policy: NetworkPolicy;
  /** There from the end of open() on. */
  #nameServer: NameServer | undefined;

  private constructor({ policy, events, knowsOwners, internet, room, opener }: BoxNetworkOptions) {
    this.#policy = policy;
    this.#port = events;
    this.#owners = knowsOwners ? new SocketOwners(events) : undefined;
    this.#room = room;
    this.#opener = opener;
    this.#certificates = internet?.certificates ?? [];
    this.#events = new EventFold((event) => events.postMessage(event));
    this.#names = new NameTable((host) => this.#isKept(host), internet?.network);
    this.#dialer = new Dialer(internet);
  }

  /** Whoever fails leaves those listeners that it has not taken over as they are. */
  static async open(options: BoxNetworkOptions): Promise<BoxNetwork> {
    const { dnsUdp, dnsTcp, tcp } = options.listeners;
    const network = new BoxNetwork(options);
    try {
      await network.#answerNames({ dnsUdp, dnsTcp });
      await network.#listen({ tcp });
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
    return network;
  }

  async update(policy: NetworkPolicy, more: PortListeners | undefined): Promise<void> {
    if (more !== undefined) await this.#listen(more);
    this.#policy = policy;
    for (const connection of this.#held) if (!this.#isStillAllowed(connection)) cut(connection.socket);
  }

  /** Ends the connections to these hosts that this opener opened: what they send and mask has changed. */
  cutOpened(opener: Opener | undefined, hosts: readonly string[]): void {
    if (opener === undefined || opener !== this.#opener) return;
    for (const { host, socket } of this.#held) if (covers(hosts, host)) cut(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const closed = this.#servers.map((server) => once(server, "close"));
    for (const server of this.#servers) server.close();
    for (const { socket } of this.#held) cut(socket);
    this.#dialer[Symbol.dispose]();
    await Promise.all([...closed, this.#nameServer?.[Symbol.asyncDispose]()]);
    this.#events[Symbol.dispose]();
    this.#port.close();
  }

  async #answerNames(sockets: Pick<GateListeners, "dnsUdp" | "dnsTcp">): Promise<void> {
    const source = { policy: () => this.#policy, addressOf: (host: string) => this.#names.addressOf(host) };
    this.#nameServer = await NameServer.open(sockets, source, (host, protocol, port) =>
      this.#tellDenied({ host, port: 0, sentence: refusal(host) }, protocol, port),
    );
  }

  async #listen({ tcp }: PortListeners): Promise<void> {
    const servers: Server[] = [];
    try {
      for (const { port, descriptor } of tcp) {
        const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket, port));
        servers.push(server);
        server.listen({ fd: descriptor });
        await once(server, "listening");
        server.on("error", () => {}); // one that could not be accepted, for want of descriptors
      }
    } catch (error) {
      for (const server of servers) server.close();
      throw error;
    }
    this.#servers.push(...servers);
    if (this.#isClosed) for (const server of servers) server.close();
  }

  #accept(socket: Socket, port: number): void {
    socket.on("error", () => {}); // whoever uses it sees that it closes
    const host = this.#names.nameAt(socket.localAddress ?? "");
    // Something in the box that looked for a server of its own at a listed port.
    if (host === undefined) return void socket.resetAndDestroy();
    if (this.#policy.ruleFor(host, port) === undefined) {
      return void this.#refuse(socket, host, port, refusal(host, port));
    }
    if (this.#held.size >= MOST_CONNECTIONS || this.#halfOpen >= MOST_HALF_OPEN || !this.#takeRoom()) {
      return void this.#refuse(socket, host, port, "this sandbox has too many connections open");
    }
    const connection = this.#hold(socket, host, port);
    this.#inTurn(connection, () => this.#begin(connection));
  }

  #begin(connection: Held): void {
    const { host, port } = connection;
    const rule = this.#policy.ruleFor(host, port)!; // a list without it would have cut the connection
    if (port === HTTP_PORT) this.#readRequests(connection);
    else if (port === TLS_PORT || isConditional(rule) || this.#opens(host)) this.#readHello(connection);
    else this.#passThrough(connection, Buffer.alloc(0));
  }

  #inTurn({ socket }: Connection, step: () => void): void {
    this.#share.run(() => {
      if (!socket.destroyed) step();
    });
  }

  #takeRoom(): boolean {
    return this.#room.takeShare(DESCRIPTORS_EACH, this.#held.size * DESCRIPTORS_EACH);
  }

  #hold(socket: Socket, host: string, port: number): Held {
    const closing = new AbortController();
    const connection: Held = {
      ...{ socket, host, port, signal: closing.signal, isPassedThrough: false, isHalfOpen: true },
      settle: () => {
        if (connection.isHalfOpen) this.#halfOpen -= 1;
        connection.isHalfOpen = false;
      },
    };
    this.#held.add(connection);
    this.#inUse.set(host, (this.#inUse.get(host) ?? 0) + 1);
    this.#halfOpen += 1;
    socket.once("close", () => {
      connection.settle();
      this.#held.delete(connection);
      const others = this.#inUse.get(host)! - 1;
      if (others > 0) this.#inUse.set(host, others);
      else this.#inUse.delete(host);
      this.#room.giveBack(DESCRIPTORS_EACH);
      closing.abort();
    });
    return connection;
  }

  #readHello(connection: Held): void {
    const { socket, host, port } = connection;
    const reader = new HelloReader();
    const stop = (): void => {
      socket.off("data", onData).off("end", onEnd).pause();
      clearTimeout(patience);
    };
    const patience = setTimeout(() => {
      stop();
      this.#refuse(socket, host, port, "the TLS client keeps silent");
    }, HELLO_MS).unref();
    const onData = (piece: Buffer): void => {
      const hello = reader.read(piece);
      if (hello.kind === "incomplete") return;
      stop();
      this.#inTurn(connection, () => this.#takeHello(connection, hello, reader.bytes));
    };
    const onEnd = (): void => void socket.destroy();
    socket.on("data", onData).once("end", onEnd);
    connection.signal.addEventListener("abort", () => clearTimeout(patience));
  }

  #takeHello(connection: Held, hello: Hello, bytes: Buffer): void {
    const { socket, host, port } = connection;
    if (hello.kind === "incomplete") return;
    if (hello.kind === "refused") return void this.#refuse(socket, host, port, hello.sentence, hello.alert);
    if (hello.serverName !== host) {
      const isListed = this.#policy.ruleFor(hello.serverName, port) !== undefined;
      const sentence = `this connection is one to ${host}, not to ${hello.serverName}`;
      const reason = isListed ? sentence : refusal(hello.serverName, port);
      return void this.#refuse(socket, hello.serverName, port, reason, Alert.unrecognizedName);
    }
    const rule = this.#policy.ruleFor(host, port);
    if (rule === undefined) return void this.#refuse(socket, host, port, refusal(host, port), Alert.unrecognizedName);
    if (this.#opens(host)) {
      const { authority, trust } = this.#opener!;
      socket.unshift(bytes);
      const opening = { authority, reader: this.#reader, trust: trust(this.#certificates) };
      openTls(socket, this.#requestsOf(connection), opening);
    } else if (isConditional(rule)) {
      const sentence = `the methods and paths of ${host} cannot be looked at`;
      this.#refuse(socket, host, port, sentence, Alert.handshakeFailure);
    } else if (hello.mayBeEncrypted) {
      // A front of the host would follow the name that we cannot see. Where we are the server nobody reads it.
      this.#refuse(socket, host, port, ENCRYPTED_NAME, Alert.handshakeFailure);
    } else this.#passThrough(connection, bytes);
  }

  #readRequests(connection: Held): void {
    const requests = this.#requestsOf(connection);
    this.#reader.accept(connection.socket, { ...requests, isSecure: false, connect: requests.dial });
  }

  #requestsOf(connection: Connection): OpenedConnection {
    const { host, port } = connection;
    return {
      ...{ host, port, secrets: this.#opener?.secrets ?? NO_SECRETS, share: this.#share, policy: () => this.#policy },
      dial: () => this.#dial(connection),
      onRequest: () => connection.settle(),
      onDenied: (sentence, denied) =>
        void this.#tellDenied({ host: denied, port, sentence }, "tcp", connection.socket.remotePort),
      onSecretUsed: (secret) => this.#events.add({ kind: "secret_used", host, port, secret }),
      onMisplaced: (sentence) => this.#events.add({ kind: "secret_misplaced", host, port, sentence }),
    };
  }

  #passThrough(connection: Held, begun: Buffer): void {
    const { socket, host, port } = connection;
    connection.isPassedThrough = true;
    socket.pause();
    const answers = new StraightReading(socket);
    this.#dial(connection, answers.onread).then(
      (upstream) => {
        connection.settle();
        upstream.write(begun);
        join(socket, upstream, answers);
      },
      (error: Error) => {
        if (error instanceof DialError && error.isRefused) this.#refuse(socket, host, port, error.message);
        else cut(socket);
      },
    );
  }

  /** To the host that the connection is for, and only as long as it is there and allowed. */
  async #dial({ host, port, socket, signal }: Connection, onread?: OnReadOpts): Promise<Socket> {
    const upstream = await this.#dialer.dial(host, port, {
      ...{ signal, onread, listed: this.#policy.addressesOf(host, port) },
    });
    upstream.on("error", () => {});
    if (socket.destroyed) {
      upstream.destroy();
      throw new Error("nobody waits for it any more");
    }
    this.#events.add({ kind: "allowed", host, port });
    return upstream;
  }

  #refuse(socket: Socket, host: string, port: number, sentence: string, alert?: number): void {
    const end = (): void => {
      if (alert === undefined || socket.destroyed) return void cut(socket);
      socket.end(alertRecord(alert));
      socket.destroySoon();
    };
    const told = this.#tellDenied({ host, port, sentence }, "tcp", socket.remotePort);
    if (told === undefined) end();
    else void told.then(end);
  }

  /** Where it has to be found out first who is refused, what comes back resolves when it is known. */
  #tellDenied(
    denied: Omit<UncountedEvent, "kind">,
    protocol: "tcp" | "udp",
    port: number | undefined,
  ): Promise<void> | undefined {
    const owners = this.#owners;
    const program = owners && port !== undefined ? () => owners.of(protocol, port) : undefined;
    return this.#events.addWith({ kind: "denied", ...denied }, program);
  }

  #isStillAllowed({ host, port, isPassedThrough }: Held): boolean {
    const rule = this.#policy.ruleFor(host, port);
    return rule !== undefined && !(isPassedThrough && isConditional(rule));
  }

  #opens(host: string): boolean {
    return this.#opener !== undefined && covers(this.#opener.names, host);
  }

  /** Names on the list and names in use keep their addresses. */
  #isKept(host: string): boolean {
    return this.#policy.names(host) || this.#inUse.has(host);
  }
}
