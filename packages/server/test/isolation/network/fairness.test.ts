import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { gateListeners, LOOPBACK_NAMES } from "../../../../../test/support/gate-listeners.ts";
import { DescriptorRoom } from "../../../src/isolation/backend/descriptor-room.ts";
import { BoxNetwork } from "../../../src/isolation/network/box-network.ts";
import { NetworkPolicy, parseNetworkRule } from "../../../src/isolation/network/policy.ts";
import { STEPS_PER_TURN } from "../../../src/isolation/network/turn-share.ts";

/** Before and after the waiting for what comes in, in one turn: a turn here begins anywhere. */
const MOST = 2 * STEPS_PER_TURN;

/** Says for each look at it whether the turn is still the same. */
class CountingPolicy {
  names = 0;
  requests = 0;
  most = 0;
  #now = 0;
  #immediate: NodeJS.Immediate | undefined;
  readonly policy = NetworkPolicy.of([parseNetworkRule({ host: "seen.test", ports: [80], paths: ["/v1/*"] })]);

  constructor() {
    const { policy } = this;
    const [resolves, allows] = [policy.resolves.bind(policy), policy.allows.bind(policy)];
    policy.resolves = (host) => {
      this.names += 1;
      this.#count();
      return resolves(host);
    };
    policy.allows = (...request) => {
      this.requests += 1;
      this.#count();
      return allows(...request);
    };
    const turn = (): void => {
      this.#now = 0;
      this.#immediate = setImmediate(turn);
    };
    turn();
  }

  #count(): void {
    this.#now += 1;
    this.most = Math.max(this.most, this.#now);
  }

  [Symbol.dispose](): void {
    clearImmediate(this.#immediate);
  }
}

/** A box's network in this thread, where turns can be counted. */
async function openNetwork() {
  const counting = new CountingPolicy();
  const { listeners, dnsUdpPort, dnsTcpPort, actualPort } = await gateListeners([80]);
  const { port1, port2 } = new MessageChannel();
  const network = await BoxNetwork.open({
    ...{
      policy: counting.policy,
      listeners,
      events: port2,
      opener: undefined,
      knowsOwners: false,
      room: new DescriptorRoom(10_000),
    },
    internet: { nameServers: ["127.0.0.1:9"], addresses: {}, ports: {}, network: LOOPBACK_NAMES },
  });
  const close = async (): Promise<void> => {
    counting[Symbol.dispose]();
    await network[Symbol.asyncDispose]();
    port1.close();
  };
  return { counting, dnsUdpPort, dnsTcpPort, actualPort, close };
}

type Network = Awaited<ReturnType<typeof openNetwork>>;

let flooded: Network;
let other: Network;

beforeEach(async () => {
  [flooded, other] = [await openNetwork(), await openNetwork()];
});

afterEach(async () => {
  await Promise.all([flooded.close(), other.close()]);
});

const QUESTION = Buffer.concat([
  Buffer.from([0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
  Buffer.from("\x04seen\x04test\0\0\x01\0\x01", "latin1"),
]);

/** An answer repeats the question and has one address. */
const ANSWER_BYTES = 2 + QUESTION.length + 16;

async function askedByUdp(port: number): Promise<void> {
  const socket = createSocket("udp4");
  socket.send(QUESTION, port, "127.0.0.1");
  await once(socket, "message");
  socket.close();
}

test("questions without end, by TCP and UDP, have a bounded part of each turn, and others are answered between them", async () => {
  const questions = 20_000;
  const framed = Buffer.concat([Buffer.from([0, QUESTION.length]), QUESTION]);
  const socket = connect(flooded.dnsTcpPort, "127.0.0.1");
  let bytes = 0;
  socket.on("data", (piece: Buffer) => {
    bytes += piece.length;
  });
  await once(socket, "connect");
  socket.write(Buffer.concat(Array.from({ length: questions }, () => framed)));
  const flood = createSocket("udp4");
  for (let sent = 0; sent < 200; sent += 1) flood.send(QUESTION, flooded.dnsUdpPort, "127.0.0.1");
  await eventually(() => flooded.counting.names > 0);
  await askedByUdp(other.dnsUdpPort);
  expect(flooded.counting.names).toBeLessThan(questions);
  await eventually(() => bytes === questions * ANSWER_BYTES);
  expect(flooded.counting.most).toBeLessThanOrEqual(MOST);
  flood.close();
  socket.destroy();
});

test("connections that all want something at once are served so many in a turn, and all in the end", async () => {
  await askedByUdp(flooded.dnsUdpPort); // which gives the name its address, the first one
  const dial = async (): Promise<Socket> => {
    const socket = connect(flooded.actualPort(80), "127.80.1.1");
    await once(socket, "connect");
    return socket;
  };
  const request = "GET /v2 HTTP/1.1\r\nHost: seen.test\r\n\r\n";
  const sockets = await Promise.all(Array.from({ length: 120 }, dial));
  // They are accepted in order: when one more is answered, all of them are there.
  const last = await dial();
  last.write(request);
  await text(last);
  for (const socket of sockets) socket.write(request);
  const answers = await Promise.all(sockets.map((socket) => text(socket)));
  expect(answers.filter((answer) => answer.startsWith("HTTP/1.1 403 "))).toHaveLength(sockets.length);
  expect(flooded.counting.requests).toBe(sockets.length + 1);
  expect(flooded.counting.most).toBeLessThanOrEqual(MOST);
});
