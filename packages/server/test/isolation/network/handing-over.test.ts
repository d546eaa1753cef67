import { Resolver } from "node:dns/promises";
import { openSync, readdirSync, readlinkSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { gateListeners } from "../../../../../test/support/gate-listeners.ts";
import type { Listen } from "../../../src/isolation/backend/backend.ts";
import { FilteredNetwork } from "../../../src/isolation/network/filtered.ts";
import { type GateListeners, NetworkGates } from "../../../src/isolation/network/gate.ts";
import { networkPolicy } from "./filtered-box.ts";

const policy = networkPolicy("good.test");
let gates: NetworkGates;

beforeEach(() => {
  gates = new NetworkGates();
});

afterEach(() => gates.close());

/** What a descriptor is, whatever its number: no two sockets have the same. */
const thing = (descriptor: number | string) => readlinkSync(`/proc/self/fd/${descriptor}`);

function descriptors({ dnsUdp, dnsTcp, tcp }: GateListeners): number[] {
  return [dnsUdp, dnsTcp, ...tcp.map(({ descriptor }) => descriptor)];
}

/** Those of the things that this process still has open. */
function stillOpen(things: readonly string[]): string[] {
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      return things.includes(thing(descriptor)) ? [thing(descriptor)] : [];
    } catch {
      return []; // it was the directory itself
    }
  });
}

/** Nobody can listen there. */
const noSocket = () => openSync(import.meta.filename, "r");

test.each([0, 1, 2, 3, 4])("a gate that cannot listen at the descriptor %i leaves none of them open", async (which) => {
  const { listeners } = await gateListeners([80, 443, 22]);
  const sockets = descriptors(listeners).map(thing);
  const [dnsUdp = -1, dnsTcp = -1, ...tcp] = descriptors(listeners).with(which, noSocket());
  const changed = { dnsUdp, dnsTcp, tcp: tcp.map((descriptor, at) => ({ port: at + 1, descriptor })) };
  const things = descriptors(changed).map(thing);
  await expect(gates.open({ policy, listeners: changed, onEvent: () => {} })).rejects.toThrow(/EINVAL|fd type/);
  expect(stillOpen(things)).toEqual([]);
  expect(stillOpen(sockets)).toEqual([sockets[which]]); // which nobody was given
});

test("a list whose ports cannot be listened at leaves the old one, and none of the new descriptors open", async () => {
  const first = await gateListeners([443]);
  const kept = descriptors(first.listeners).map(thing);
  const gate = await gates.open({ policy, listeners: first.listeners, onEvent: () => {} });
  const { tcp } = (await gateListeners([80, 22])).listeners;
  const more = [tcp[0]!, { port: 25, descriptor: noSocket() }, tcp[1]!];
  const things = more.map(({ descriptor }) => thing(descriptor));
  const next = networkPolicy("good.test", "other.test:22,25");
  await expect(gate.update(next, { listeners: { tcp: more } })).rejects.toThrow(/EINVAL/);
  expect(stillOpen(things)).toEqual([]);
  expect(stillOpen(kept).sort()).toEqual(kept.toSorted());
  await gate.close();
  await eventually(() => stillOpen(kept).length === 0);
});

test("a gate that is closed, or whose thread is gone, takes no new descriptors", async () => {
  const gate = await gates.open({ policy, listeners: (await gateListeners([443])).listeners, onEvent: () => {} });
  await gate.close();
  const refused = async (): Promise<string[]> => {
    const { tcp } = (await gateListeners([80, 22])).listeners;
    const things = tcp.map(({ descriptor }) => thing(descriptor));
    await gate.update(policy, { listeners: { tcp } }).catch(() => {});
    return stillOpen(things);
  };
  expect(await refused()).toEqual([]);
  await gates.close();
  expect(await refused()).toEqual([]);
});

test.each([
  ["cannot be had", () => Promise.reject(new Error("a program has it"))],
  ["cannot be listened at", async () => [noSocket()]],
])("a list with a port that %s in one life of the box is the list of none", async (_, listenAgain) => {
  const network = new FilteredNetwork({ gates, policy, onEvent: () => {} });
  const boxes = await Promise.all([gateListeners([443, 80]), gateListeners([443, 80])]);
  const made: string[] = [];
  const listenIn = ({ listeners }: (typeof boxes)[number], again: Listen): Listen => {
    let isFirst = true;
    return async (places) => {
      if (!isFirst) return await again(places);
      isFirst = false;
      return descriptors(listeners);
    };
  };
  const another: Listen = async () => {
    const { tcp } = (await gateListeners([22])).listeners;
    made.push(...tcp.map(({ descriptor }) => thing(descriptor)));
    return tcp.map(({ descriptor }) => descriptor);
  };
  await network.answerIn(listenIn(boxes[0]!, another));
  await network.answerIn(listenIn(boxes[1]!, listenAgain));
  await expect(network.update(networkPolicy("good.test", "other.test:22"))).rejects.toThrow();
  for (const { dnsUdpPort } of boxes) {
    const resolver = new Resolver({ tries: 1 });
    resolver.setServers([`127.0.0.1:${dnsUdpPort}`]);
    await expect(resolver.resolve4("other.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
    expect(await resolver.resolve4("good.test")).toHaveLength(1);
  }
  expect(made).toHaveLength(1);
});
