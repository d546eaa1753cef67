import { workerData } from "node:worker_threads";
import { DescriptorRoom } from "../backend/descriptor-room.ts";
import { answer } from "../threads/answer.ts";
import { BoxNetwork } from "./box-network.ts";
import type { GateRequest } from "./gate.ts";
import { NetworkPolicy } from "./policy.ts";

// The thread that talks to all boxes with a filtered network. Nothing in here trusts a byte that comes in.

const room = new DescriptorRoom(workerData.descriptors as number);
const networks = new Map<number, BoxNetwork>();

// What we did not think of with one connection must not end all the others'. It is said aloud, and that connection stays closed or silent.
process.on("uncaughtException", (error) => process.emitWarning(error));

answer(async (request: GateRequest) => {
  if (request.kind === "open") {
    networks.set(request.id, await BoxNetwork.open({ ...request, policy: NetworkPolicy.of(request.rules), room }));
    return;
  }
  const network = networks.get(request.id);
  if (request.kind === "update") await network?.update(NetworkPolicy.of(request.rules), request.listeners);
  else {
    networks.delete(request.id);
    await network?.[Symbol.asyncDispose]();
  }
});
