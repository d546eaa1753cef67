import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import {
  DEAD_ADDRESS,
  EVIL_ADDRESS,
  GOOD_ADDRESS,
  GOOD_ADDRESS_6,
  openInternet,
} from "../../../../../test/support/internet.ts";
import { Dialer, reachable } from "../../../src/isolation/network/dial.ts";

describe("an address that a name says", () => {
  test.each([
    ...[
      "0.0.0.0",
      "0.1.2.3",
      "10.0.0.1",
      "100.64.0.1",
      "100.100.100.200",
      "127.0.0.1",
      "127.255.255.254",
      "168.63.129.16",
    ],
    ...[
      "169.254.169.254",
      "172.16.0.1",
      "172.31.255.255",
      "192.0.0.192",
      "192.168.1.1",
      "198.18.0.53",
      "198.19.255.255",
    ],
    ...["224.0.0.251", "239.255.255.250", "240.0.0.1", "255.255.255.255"],
    ...[
      "::",
      "::1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "::ffff:169.254.169.254",
      "::ffff:93.184.216.34",
      "::127.0.0.1",
    ],
    ...[
      "64:ff9b::7f00:1",
      "64:ff9b::a9fe:a9fe",
      "64:ff9b:1::a00:1",
      "100::1",
      "fc00::1",
      "fd00:ec2::254",
      "fe80::1",
      "fe80::1%lo",
    ],
    ...["fec0::1", "ff02::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "3fff::1", "5f00::1"],
    ...["2130706433", "0x7f.1", "127.1", "localhost", "", "1.2.3.4.5"],
  ])("%s is never reached", (address) => {
    expect(reachable([address])).toEqual([]);
  });

  test("is reached where it is public, whatever the others are", () => {
    expect(reachable(["10.0.0.1", GOOD_ADDRESS, "::1", GOOD_ADDRESS_6])).toEqual([GOOD_ADDRESS, GOOD_ADDRESS_6]);
  });

  test("is not reached where it is this host's own, though public", () => {
    expect(reachable([GOOD_ADDRESS, EVIL_ADDRESS], [EVIL_ADDRESS])).toEqual([GOOD_ADDRESS]);
    expect(reachable([GOOD_ADDRESS_6], [GOOD_ADDRESS_6])).toEqual([]);
    const own = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
    expect(reachable(own)).toEqual([]);
  });
});

describe("a host is dialled", () => {
  const names = {
    "good.test": [GOOD_ADDRESS],
    "six.test": [GOOD_ADDRESS_6],
    "inner.test": ["127.0.0.1"],
    "metadata.test": ["169.254.169.254", "::ffff:169.254.169.254"],
    "mixed.test": ["10.0.0.1", "127.0.0.1", DEAD_ADDRESS, GOOD_ADDRESS],
    "turning.test": (question: number) => (question === 1 ? [GOOD_ADDRESS] : ["127.0.0.1"]),
    "dead.test": [DEAD_ADDRESS],
    "empty.test": [],
    "private.test": ["10.1.2.3"],
    "moved.test": ["10.2.2.3", "127.0.0.1", "169.254.169.254", "::1", GOOD_ADDRESS],
  };
  const never = new AbortController().signal;

  test("at the answer that was looked at, each time anew", async () => {
    await using internet = await openInternet(names);
    using dialer = new Dialer(internet.seam);
    const peer = async (host: string) => {
      const socket = await dialer.dial(host, 22, { signal: never });
      const { remoteAddress } = socket;
      socket.destroy();
      return remoteAddress;
    };
    expect(await peer("good.test")).toBe("127.0.0.1");
    expect(await peer("six.test")).toBe("127.0.0.1");
    expect(await peer("mixed.test")).toBe("127.0.0.1");
    expect(await peer("turning.test")).toBe("127.0.0.1");
    await expect(peer("turning.test")).rejects.toMatchObject({ isRefused: true });
    expect(internet.questions.filter((name) => name === "turning.test")).toHaveLength(2);
  });

  test.each(["inner.test", "metadata.test"])("%s: not at all, with a sentence", async (host) => {
    await using internet = await openInternet(names);
    using dialer = new Dialer(internet.seam);
    await expect(dialer.dial(host, 443, { signal: never })).rejects.toMatchObject({
      message: `${host} resolves to no public address, and no sandbox may reach others`,
      isRefused: true,
    });
    expect(internet.connections).toBe(0);
  });

  test("in the networks that its line lists, and in no other", async () => {
    await using internet = await openInternet(names);
    const own = { ...internet.seam.addresses, "10.1.2.3": "127.0.0.1", "10.2.2.3": "127.0.0.1" };
    using dialer = new Dialer({ ...internet.seam, addresses: own });
    const listed = ["10.1.0.0/16", "fd00::/16"];
    (await dialer.dial("private.test", 22, { signal: never, listed })).destroy();
    for (const host of ["moved.test", "good.test"]) {
      await expect(dialer.dial(host, 22, { signal: never, listed })).rejects.toMatchObject({
        message: `${host} resolves to no address that is listed with it`,
        isRefused: true,
      });
    }
    await expect(dialer.dial("private.test", 22, { signal: never })).rejects.toMatchObject({ isRefused: true });
  });

  test("never at this host's own address nor a cloud's metadata, though its line lists the network", async () => {
    const own = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
    const wide = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
    const bad = [
      ...own.filter((address) => !address.includes("%")),
      "100.100.100.200",
      "fd00:ec2::254",
      "fd20:ce::254",
    ];
    await using internet = await openInternet({ "bad.test": bad });
    using dialer = new Dialer(internet.seam);
    const listed = [...wide, ...own.map((address) => `${address}/${isIP(address) === 4 ? 32 : 128}`)];
    await expect(dialer.dial("bad.test", 22, { signal: never, listed })).rejects.toMatchObject({ isRefused: true });
  });

  test("and is told apart from one that nobody answers for", async () => {
    await using internet = await openInternet(names);
    using dialer = new Dialer(internet.seam);
    await expect(dialer.dial("dead.test", 443, { signal: never })).rejects.toMatchObject({
      isRefused: false,
      message: /cannot be reached/,
    });
    await expect(dialer.dial("empty.test", 443, { signal: never })).rejects.toMatchObject({
      isRefused: false,
      message: /no address/,
    });
    await expect(dialer.dial("unknown.test", 443, { signal: never })).rejects.toMatchObject({ isRefused: false });
    const abort = new AbortController();
    const dialled = dialer.dial("good.test", 22, { signal: abort.signal });
    abort.abort();
    await expect(dialled).rejects.toThrow();
  });
});
