import { workerData } from "node:worker_threads";
import { DescriptorRoom } from "../backend/descriptor-room.ts";
import { answer } from "../threads/answer.ts";
import { BoxNetwork } from "./box-network.ts";
import { Custody } from "./custody.ts";
import type { GateRequest } from "./gate.ts";
import { NetworkPolicy } from "./policy.ts";

// The thread that talks to all boxes with a filtered network. Nothing in here trusts a byte that comes in.

const room = new DescriptorRoom(workerData.descriptors as number);
const networks = new Map<number, BoxNetwork>();
const custody = new Custody();

// What we did not think of with one connection must not end all the others'. It is said aloud, and that connection stays closed or silent.
process.on("uncaughtException", (error) => process.emitWarning(error));

answer((request: GateRequest): unknown => HANDLERS[request.kind](request as never));

type Handlers = { [Kind in GateRequest["kind"]]: (request: Extract<GateRequest, { kind: Kind }>) => unknown };

const HANDLERS: Handlers = {
  open: async ({ opening, rules, ...request }) => {
    const options = { ...request, policy: NetworkPolicy.of(rules), opener: custody.opener(opening), room };
    networks.set(request.id, await BoxNetwork.open(options));
  },
  update: ({ id, rules, listeners }) => networks.get(id)?.update(NetworkPolicy.of(rules), listeners),
  close: async ({ id }) => {
    const network = networks.get(id);
    networks.delete(id);
    await network?.[Symbol.asyncDispose]();
  },
  keep: ({ id, names, secrets }) => custody.keep(id, names, secrets),
  forget: ({ id }) => custody.forget(id),
};
