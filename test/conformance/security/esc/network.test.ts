import { existsSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes } from "./boxes.ts";
import { Bystander } from "./bystander.ts";

interface Reached {
  readonly reached: Record<string, string>;
  readonly names: Record<string, string>;
  readonly interfaces: string[];
  readonly routes: string[];
}

const METADATA = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200"];
const PRIVATE_RANGES = [
  "10.0.0.1",
  "10.0.2.2",
  "10.0.2.3",
  "172.16.0.1",
  "172.17.0.1",
  "192.168.0.1",
  "192.168.122.1",
  "100.64.0.1",
];
const PUBLIC = ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111"];

function hostAddresses(): string[] {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return ["127.0.0.1", "::1", "0.0.0.0", "127.0.0.53", ...own.map(({ address }) => address)];
}

const targets = (addresses: readonly string[], ports: readonly number[]) =>
  [...new Set(addresses)].flatMap((address) => ports.map((port) => [address, port]));

describeBoxes("ESC: the network", (box) => {
  test("ESC-41 abstract sockets of the host are out of reach", async () => {
    await using bystander = await Bystander.start();
    const { listed, ...reached } = await box.attempt<Record<string, string>>("ESC-41", {
      names: [bystander.socketName],
    });
    expectOnly(reached, "ECONNREFUSED");
    expect(listed).toEqual([]);
    expect(await bystander.heard()).toEqual([]);
  });

  test("ESC-42 with the network off nothing is reachable but the sandbox's own loopback", async () => {
    await using bystander = await Bystander.start();
    const facts = await box.attempt<Reached>("ESC-42", {
      targets: [
        ...targets(hostAddresses(), [bystander.port]),
        ...targets([...METADATA, ...PRIVATE_RANGES, ...PUBLIC], [80, 53]),
      ],
      names: ["example.com", "metadata.google.internal", "host.docker.internal"],
    });
    const own = /^udp (127\.|::1:|0\.0\.0\.0)/; // a datagram to one's own loopback is sent, and nobody is there
    const tried = Object.entries(facts.reached).filter(([name]) => !own.test(name));
    expectOnly(Object.fromEntries(tried), "ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL", "EHOSTUNREACH", "EINVAL");
    expectOnly(facts.names, "unknown");
    expect(facts.interfaces).toEqual(["lo"]);
    expect(facts.routes).toEqual([]);
    expect(await bystander.heard()).toEqual([]);
  });

  test("ESC-43 raw, packet and vsock sockets and every rare family are refused", async () => {
    const { refused, allowed } = await box.attempt<Record<string, Record<string, string>>>("ESC-43");
    expectOnly(refused!, "EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT");
    expectOnly(allowed!, "OK");
  });

  test("ESC-44 a private network reaches neither the host, nor the metadata service, nor private ranges", async (context) => {
    if (box.kind.runtime === "bwrap" && !existsSync("/usr/bin/pasta")) {
      process.stdout.write("skipped: ESC-44 with bwrap: pasta is not installed\n");
      context.skip();
    }
    const namespace = box.kind.runtime === "docker" ? box.engineNetwork : undefined;
    await using bystander = await Bystander.start(namespace);
    const sandbox = await box.another({ network: "private" });
    const { stdout: routes } = await sandbox.exec({ command: ["cat", "/proc/net/route"] });
    const gateways = [...routes.matchAll(/^\S+\t\S+\t(?!0{8})([0-9A-F]{8})\t/gm)].map(([, hex = ""]) => dotted(hex));
    const facts = await sandbox.attempt<Reached>("ESC-44", {
      targets: [
        ...targets([...hostAddresses(), ...gateways, ...PRIVATE_RANGES, ...METADATA], [bystander.port]),
        ...targets([...METADATA, ...PRIVATE_RANGES], [80]),
      ],
      names: [],
    });
    expect(facts.interfaces, "there is a network").not.toEqual(["lo"]);
    const connected = Object.entries(facts.reached).filter(
      ([name, outcome]) => name.startsWith("tcp") && outcome === "OK",
    );
    expect(connected).toEqual([]);
    expect(await bystander.heard()).toEqual([]);
  });
});

/** An address of /proc/net/route, which is a number in the machine's byte order. */
function dotted(hex: string): string {
  return [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".");
}
