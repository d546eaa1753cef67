import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, HANG_MS } from "../../../../../test/support/eventually.ts";
import { gateListeners, LOOPBACK_NAMES } from "../../../../../test/support/gate-listeners.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import { type Gate, type GateEvent, NetworkGates } from "../../../src/isolation/network/gate.ts";
import { answerName, NAME_SERVER, NameTable, SANDBOX_NETWORK } from "../../../src/isolation/network/names.ts";
import { NetworkPolicy, parseNetworkRule, refusal } from "../../../src/isolation/network/policy.ts";

const policy = NetworkPolicy.of(["listed.example", "*.wild.example"].map(parseNetworkRule));

function ask(query: Uint8Array, list = policy) {
  const table = new NameTable(() => false);
  const answered = answerName(query, { policy: () => list, addressOf: (host) => table.addressOf(host) });
  return answered && { ...answered, ...read(answered.message) };
}

/** A question as programs send it; `edns` is the version they speak. */
function question(
  name: string,
  { type = 1, edns, cls = 1 }: { type?: number; edns?: number; cls?: number } = {},
): Buffer {
  const labels = name
    .split(".")
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")]));
  const head = Buffer.from([0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, edns === undefined ? 0 : 1]);
  const opt = edns === undefined ? [] : [Buffer.from([0, 0, 41, 4, 208, 0, edns, 0, 0, 0, 0])];
  return Buffer.concat([head, ...labels, Buffer.from([0, type >> 8, type & 255, 0, cls]), ...opt]);
}

function read(message: Buffer) {
  return {
    id: message.readUInt16BE(0),
    rcode: message[3]! & 15,
    answers: message.readUInt16BE(6),
    address: message.readUInt16BE(6) === 1 ? [...message.subarray(-4)].join(".") : undefined,
    text: message.toString("latin1"),
  };
}

describe("a question", () => {
  test("for an address of a listed name is answered with the name's own", () => {
    expect(ask(question("listed.example"))).toMatchObject({ id: 0xabcd, rcode: 0, answers: 1, address: "198.18.1.1" });
    expect(ask(question("LisTed.eXample"))).toMatchObject({ address: "198.18.1.1" });
    expect(ask(question("a.b.wild.example"))).toMatchObject({ address: "198.18.1.1" });
  });

  test.each([
    ["AAAA", 28],
    ["TXT", 16],
    ["HTTPS", 65],
    ["SVCB", 64],
    ["MX", 15],
    ["CNAME", 5],
    ["ANY", 255],
    ["AXFR", 252],
    ["NULL", 10],
  ])("for %s of a listed name has no data", (_, type) => {
    expect(ask(question("listed.example", { type }))).toMatchObject({ rcode: 0, answers: 0 });
  });

  test.each([
    "other.example",
    "wild.example",
    "sub.listed.example",
    "xlisted.example",
    "listed.example.evil.example",
    "example",
  ])("for %s has no answer, and the reason", (name) => {
    const answered = ask(question(name, { edns: 0 }));
    expect(answered).toMatchObject({ rcode: 3, answers: 0, refused: name });
    expect(answered?.text).toContain(refusal(name));
    expect(ask(question(name))?.text).not.toContain("ask your user");
  });

  test.each(["_http._tcp.other.example", "1.0.18.198.in-addr.arpa", "a b.example", ""])(
    "for %j is refused and is no event: nobody meant a host",
    (name) => {
      expect(ask(question(name))).toMatchObject({ rcode: name === "" ? 1 : 3 });
      expect(ask(question(name))?.refused).toBeUndefined();
    },
  );

  test("with a dot, a star or a NUL inside a label is not the listed name", () => {
    const dotted = Buffer.concat([
      question("x").subarray(0, 12),
      Buffer.from("\x0elisted.example\0\0\x01\0\x01", "latin1"),
    ]);
    expect(ask(dotted)).toMatchObject({ rcode: 3 });
    expect(ask(question("*.wild.example"))).toMatchObject({ rcode: 0 });
    expect(ask(question("listed\0.example"))).toMatchObject({ rcode: 3 });
  });

  test("of a wrong shape is a format error, and one that is an answer has none", () => {
    const good = question("listed.example");
    const changed = (at: number, value: number) => {
      const copy = Buffer.from(good);
      copy[at] = value;
      return copy;
    };
    expect(ask(changed(5, 2))).toMatchObject({ rcode: 1 }); // two questions
    expect(ask(changed(5, 0))).toMatchObject({ rcode: 1 });
    expect(ask(changed(7, 1))).toMatchObject({ rcode: 1 }); // an answer in a question
    expect(ask(changed(12, 0xc0))).toMatchObject({ rcode: 1 }); // a pointer to itself
    expect(ask(changed(11, 1))).toMatchObject({ rcode: 1 }); // a record that is not there
    expect(ask(Buffer.concat([good, Buffer.from("more")]))).toMatchObject({ rcode: 1 });
    expect(ask(good.subarray(0, -1))).toMatchObject({ rcode: 1 });
    expect(ask(changed(2, 0x28))).toMatchObject({ rcode: 4 }); // an update
    expect(ask(question("listed.example", { cls: 3 }))).toMatchObject({ rcode: 5 });
    expect(ask(question("listed.example", { edns: 1 }))).toMatchObject({ rcode: 0, answers: 0 }); // 16, in two parts
    expect(ask(changed(2, 0x81))).toBeUndefined();
    expect(ask(good.subarray(0, 11))).toBeUndefined();
    expect(ask(Buffer.alloc(0))).toBeUndefined();
  });

  test("of any bytes gets a whole answer or none, never longer than everybody takes", () => {
    const seeds = [
      question("listed.example"),
      question("other.example", { edns: 0 }),
      question(
        [..."abc"]
          .map((letter) => letter.repeat(63))
          .join(".")
          .concat(".ab.example"),
        { edns: 0 },
      ),
    ];
    for (let round = 0; round < rounds(2000); round += 1) {
      const bytes = Buffer.from(seeds[round % seeds.length]!);
      for (let change = randomInt(4); change > 0; change -= 1) bytes[randomInt(bytes.length)] = randomInt(256);
      const cut = round % 5 === 0 ? bytes.subarray(0, randomInt(bytes.length + 1)) : bytes;
      const answered = answerName(cut, { policy: () => policy, addressOf: () => 0 });
      if (answered === undefined) continue;
      const { message } = answered;
      const isWhole = message.length >= 12 && message.length <= 512 && message.readUInt16BE(0) === cut.readUInt16BE(0);
      if (!isWhole) expect.fail(`${cut.toString("hex")} got ${message.toString("hex")}`);
    }
  });
});

describe("the addresses", () => {
  test("leave the name server its own", () => {
    const table = new NameTable(() => true, SANDBOX_NETWORK);
    for (let index = 0; index < 1000; index += 1) table.addressOf(`n${index}.example`);
    expect(table.nameAt("198.18.1.1")).toBe("n0.example");
    expect(table.nameAt(NAME_SERVER)).toBeUndefined();
  });

  test("are one for each name, and lead back to it", () => {
    const table = new NameTable(() => true, "127.80.0.0");
    const first = table.addressOf("a.example");
    expect(table.addressOf("b.example")).toBe(first + 1);
    expect(table.addressOf("a.example")).toBe(first);
    expect(
      ["127.80.1.1", "127.80.1.2", "127.80.1.3", "127.80.0.53", "127.0.0.1", "::1"].map((address) =>
        table.nameAt(address),
      ),
    ).toEqual(["a.example", "b.example", ...[undefined, undefined, undefined, undefined]]);
  });

  test("are forgotten from the one that was asked for longest ago, never one that is kept, and not given to another soon", () => {
    const kept = "kept.example";
    const table = new NameTable((host) => host === kept);
    const first = table.addressOf(kept);
    const given = new Set([first]);
    for (let index = 0; index < 20_000; index += 1) given.add(table.addressOf(`n${index}.wild.example`));
    expect(given.size).toBe(20_001);
    expect(table.addressOf(kept)).toBe(first);
    expect(table.nameAt("198.18.1.2")).toBeUndefined();
    // All places are gone round without ending.
    for (let index = 0; index < 140_000; index += 1) table.addressOf(`m${index}.wild.example`);
    expect(table.nameAt("198.18.1.1")).toBe(kept);
  });
});

describe("the name server of a gate", () => {
  const gates = new NetworkGates();
  const events: GateEvent[] = [];
  let gate: Gate;
  let ports: { dnsUdpPort: number; dnsTcpPort: number };

  beforeAll(async () => {
    const { listeners, ...others } = await gateListeners([]);
    ports = others;
    const internet = { nameServers: [], addresses: {}, ports: {}, network: LOOPBACK_NAMES };
    gate = await gates.open({ policy, listeners, onEvent: (event) => events.push(event), internet });
  });

  afterAll(async () => {
    await gate.close();
    await gates.close();
  });

  function resolver(): Resolver {
    const asking = new Resolver({ tries: 1, timeout: HANG_MS });
    asking.setServers([`127.0.0.1:${ports.dnsUdpPort}`]);
    return asking;
  }

  test("answers a usual client, and tells once of a name that it refused", async () => {
    const client = resolver();
    expect(await client.resolve4("listed.example", { ttl: true })).toEqual([
      { address: expect.stringMatching(/^127\.80\.1\./), ttl: 30 },
    ]);
    await expect(client.resolve6("listed.example")).rejects.toMatchObject({ code: "ENODATA" });
    await expect(client.resolveTxt("secret-data.evil.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
    for (let round = 0; round < 50; round += 1) await client.resolve4("secret-data.evil.example").catch(() => {});
    await client.resolve4("end.evil.example").catch(() => {});
    await eventually(() => events.some(({ host }) => host === "end.evil.example"));
    expect(events.filter(({ host }) => host === "secret-data.evil.example")).toEqual([
      {
        kind: "denied",
        host: "secret-data.evil.example",
        port: 0,
        sentence: refusal("secret-data.evil.example"),
        count: 1,
      },
    ]);
  });

  test("answers by TCP, byte by byte and several at once, and ends what is no question", async () => {
    const socket = connect(ports.dnsTcpPort, "127.0.0.1");
    const framed = (message: Buffer) => Buffer.concat([Buffer.from([0, message.length]), message]);
    const both = Buffer.concat([framed(question("listed.example")), framed(question("other.example"))]);
    for (const byte of both) socket.write(Buffer.from([byte]));
    let got = Buffer.alloc(0);
    socket.on("data", (piece) => {
      got = Buffer.concat([got, piece]);
    });
    await eventually(() => got.length > 2 && got.length > 2 + got.readUInt16BE(0) + 12);
    expect(read(got.subarray(2, 2 + got.readUInt16BE(0)))).toMatchObject({ rcode: 0, answers: 1 });
    expect(read(got.subarray(2 + got.readUInt16BE(0) + 2))).toMatchObject({ rcode: 3 });
    socket.on("error", () => {}).write(Buffer.alloc(2));
    await once(socket, "close");
  });

  test("still answers after a flood of bytes that mean nothing", async () => {
    const flood = createSocket("udp4");
    for (let round = 0; round < rounds(300); round += 1) {
      const bytes = Buffer.from(Array.from({ length: randomInt(600) }, () => randomInt(256)));
      await new Promise((resolve) => flood.send(bytes, ports.dnsUdpPort, "127.0.0.1", resolve));
    }
    flood.close();
    expect(await resolver().resolve4("x.wild.example")).toHaveLength(1);
  });

  test("answers from a new list as soon as there is one", async () => {
    await gate.update(NetworkPolicy.of([parseNetworkRule("new.example")]));
    await expect(resolver().resolve4("listed.example")).rejects.toMatchObject({ code: "ENOTFOUND" });
    expect(await resolver().resolve4("new.example")).toHaveLength(1);
    await gate.update(policy);
  });
});

test("a gate that is closed has let go of its sockets, and the thread ends with the last", async () => {
  const gates = new NetworkGates();
  const { listeners, dnsTcpPort } = await gateListeners([]);
  const gate = await gates.open({ policy, listeners, onEvent: () => {} });
  await gate.close();
  const [error] = await once(connect(dnsTcpPort, "127.0.0.1"), "error");
  expect(error).toMatchObject({ code: "ECONNREFUSED" });
  await gates.close();
  await expect(
    gates.open({ policy, listeners: (await gateListeners([])).listeners, onEvent: () => {} }),
  ).rejects.toThrow("closed");
});
