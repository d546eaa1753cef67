import { answer } from "../threads/answer.ts";
import { BoxNetwork } from "./box-network.ts";
import type { GateRequest } from "./gate.ts";
import { NetworkPolicy } from "./policy.ts";

// The thread that talks to all boxes with a filtered network. Whatever goes wrong with one connection must not end it for the
// others; nothing in here trusts a byte that comes in.

const networks = new Map<number, BoxNetwork>();

answer(async (request: GateRequest) => {
  if (request.kind === "open") {
    networks.set(request.id, await BoxNetwork.open({ ...request, policy: NetworkPolicy.of(request.rules) }));
    return;
  }
  const network = networks.get(request.id);
  if (request.kind === "update") await network?.update(NetworkPolicy.of(request.rules), request.listeners);
  else {
    networks.delete(request.id);
    await network?.[Symbol.asyncDispose]();
  }
});
