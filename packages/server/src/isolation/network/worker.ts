import { workerData } from "node:worker_threads";
import { DescriptorRoom } from "../backend/descriptor-room.ts";
import { answer } from "../threads/answer.ts";
import { BoxNetwork } from "./box-network.ts";
import type { GateRequest, PortListeners } from "./gate.ts";
import { closerOf } from "./handed-over.ts";
import { NetworkPolicy } from "./policy.ts";
import { SecretHolder } from "./secret-holder.ts";

// The thread that talks to all boxes with a filtered network. Nothing in here trusts a byte that comes in.

const room = new DescriptorRoom(workerData.descriptors as number);
const networks = new Map<number, BoxNetwork>();
const holder = new SecretHolder();

// What we did not think of with one connection must not end all the others'. It is said aloud, and that connection stays closed or silent.
process.on("uncaughtException", (error) => process.emitWarning(error));

answer((request: GateRequest): unknown => HANDLERS[request.kind](request as never));

type Handlers = { [Kind in GateRequest["kind"]]: (request: Extract<GateRequest, { kind: Kind }>) => unknown };

const HANDLERS: Handlers = {
  open: ({ opening, rules, ...request }) =>
    takingOver(request.listeners, async () => {
      const options = { ...request, policy: NetworkPolicy.of(rules), opener: holder.opener(opening), room };
      networks.set(request.id, await BoxNetwork.open(options));
    }),
  update: ({ id, rules, listeners }) =>
    takingOver(listeners, async (close) => {
      const network = networks.get(id);
      if (network === undefined) close();
      else await network.update(NetworkPolicy.of(rules), listeners);
    }),
  close: async ({ id }) => {
    const network = networks.get(id);
    networks.delete(id);
    await network?.[Symbol.asyncDispose]();
  },
  keep: ({ id, names, secrets }) => holder.keep(id, names, secrets),
  renew: ({ id, name, secret }) => {
    const { isUsed, hosts } = holder.renew(id, name, secret);
    for (const network of networks.values()) network.cutOpened(holder.opener(id), hosts);
    return isUsed;
  },
  forget: ({ id }) => holder.forget(id),
};

/** Whoever fails to take sockets over leaves none of them open. */
async function takingOver(
  listeners: PortListeners | undefined,
  work: (close: () => void) => Promise<void>,
): Promise<void> {
  const close = closerOf(listeners);
  try {
    await work(close);
  } catch (error) {
    close();
    throw error;
  }
}
