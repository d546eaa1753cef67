import { randomInt } from "node:crypto";
import { describe, expect, test } from "vitest";
import { rounds } from "../../../../../test/support/rounds.ts";
import { HelloReader } from "../../../src/isolation/network/hello.ts";
import { realHello } from "./filtered-box.ts";

interface Parts {
  readonly version?: number;
  readonly extensions?: readonly Buffer[];
  readonly trailing?: Buffer;
}

const number = (size: number, value: number): Buffer => {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
};
const list = (size: number, ...items: Buffer[]): Buffer => {
  const content = Buffer.concat(items);
  return Buffer.concat([number(size, content.length), content]);
};
const extension = (type: number, content: Buffer): Buffer => Buffer.concat([number(2, type), list(2, content)]);
const nameEntry = (name: string, kind = 0): Buffer =>
  Buffer.concat([number(1, kind), list(2, Buffer.from(name, "latin1"))]);
const named = (...names: string[]): Buffer => extension(0, list(2, ...names.map((name) => nameEntry(name))));
const versions = (...offered: number[]): Buffer => extension(43, list(1, ...offered.map((one) => number(2, one))));

function message({
  version = 0x0303,
  extensions = [named("a.example")],
  trailing = Buffer.alloc(0),
}: Parts = {}): Buffer {
  const body = Buffer.concat([
    ...[number(2, version), Buffer.alloc(32), list(1), list(2, number(2, 0x1301)), list(1, number(1, 0))],
    ...(extensions.length === 0 ? [] : [list(2, ...extensions)]),
  ]);
  return Buffer.concat([number(1, 1), number(3, body.length), body, trailing]);
}

function records(bytes: Buffer, size = bytes.length): Buffer {
  const all: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size)
    all.push(number(1, 22), number(2, 0x0301), list(2, bytes.subarray(at, at + size)));
  return Buffer.concat(all);
}

const read = (bytes: Buffer) => new HelloReader().read(bytes);
const said = (parts: Parts) => read(records(message(parts)));

describe("the first message of a real client", () => {
  test.each([
    ["TLS 1.3", {}],
    ["TLS 1.2", { maxVersion: "TLSv1.2" as const }],
  ])("is read with %s, whole and in pieces", async (_, options) => {
    const hello = await realHello({ servername: "Api.example.com", ALPNProtocols: ["h2", "http/1.1"], ...options });
    const expected = {
      kind: "hello",
      serverName: "api.example.com",
      protocols: ["h2", "http/1.1"],
      mayBeEncrypted: false,
    };
    expect(read(hello)).toEqual(expected);
    expect(read(records(hello.subarray(5), 100))).toEqual(expected);
    for (const pieces of [hello, records(hello.subarray(5), 1), records(hello.subarray(5), 7)]) {
      const reader = new HelloReader();
      const kinds = [...pieces].map((byte) => reader.read(Buffer.from([byte])).kind);
      expect(new Set(kinds.slice(0, -1))).toEqual(new Set(["incomplete"]));
      expect(kinds.at(-1)).toBe("hello");
      expect(reader.bytes).toEqual(pieces);
    }
  });

  test("may be followed by what the client sends early", async () => {
    const hello = await realHello({ servername: "a.example" });
    expect(read(Buffer.concat([hello, Buffer.from([20, 3, 3, 0, 1, 1])]))).toMatchObject({ serverName: "a.example" });
  });

  test("without a name is refused", async () => {
    expect(read(await realHello({}))).toMatchObject({ kind: "refused", alert: 112 });
  });

  test("of a client that knows nothing better than TLS 1.1 is refused", async () => {
    const old = { minVersion: "TLSv1" as const, maxVersion: "TLSv1.1" as const, ciphers: "DEFAULT@SECLEVEL=0" };
    expect(read(await realHello({ servername: "a.example", ...old }))).toMatchObject({ kind: "refused", alert: 70 });
  });
});

describe("a first message by hand", () => {
  test("is read", () => {
    expect(said({})).toEqual({ kind: "hello", serverName: "a.example", protocols: [], mayBeEncrypted: false });
    expect(said({ extensions: [named("a.example"), versions(0x0a0a, 0x0304)] })).toMatchObject({ kind: "hello" });
  });

  test.each([0xfe0d, 0xffce])("may have another name that is encrypted (%i), which is told", (type) => {
    const extensions = [named("a.example"), extension(type, Buffer.alloc(40))];
    expect(said({ extensions })).toMatchObject({ kind: "hello", serverName: "a.example", mayBeEncrypted: true });
  });

  test.each<[string, Parts, number]>([
    ["two names", { extensions: [named("a.example", "b.example")] }, 50],
    ["the name twice", { extensions: [named("a.example"), named("b.example")] }, 50],
    ["no name in the list", { extensions: [named()] }, 50],
    ["another kind of name", { extensions: [extension(0, list(2, nameEntry("a.example", 1)))] }, 50],
    ["an empty name", { extensions: [named("")] }, 112],
    ["a dot at the end", { extensions: [named("a.example.")] }, 112],
    ["a NUL in the name", { extensions: [named("a.example\0.evil.example")] }, 112],
    ["an address", { extensions: [named("127.0.0.1")] }, 112],
    ["a name beyond ASCII", { extensions: [named("ä.example")] }, 112],
    ["a wildcard", { extensions: [named("*.example")] }, 112],
    ["no extensions", { extensions: [] }, 112],
    ["TLS 1.1", { version: 0x0302 }, 70],
    ["SSL 3", { version: 0x0300 }, 70],
    ["only old versions in the list", { extensions: [named("a.example"), versions(0x0302, 0x0301)] }, 70],
    ["an odd list of versions", { extensions: [named("a.example"), extension(43, list(1, Buffer.alloc(3)))] }, 50],
    [
      "bytes after the name",
      { extensions: [extension(0, Buffer.concat([list(2, nameEntry("a.example")), Buffer.alloc(1)]))] },
      50,
    ],
    ["a second message behind it", { trailing: message() }, 50],
  ])("with %s is refused", (_, parts, alert) => {
    expect(said(parts)).toEqual({ kind: "refused", sentence: expect.any(String), alert });
  });

  test.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n")],
    ["SSH", Buffer.from("SSH-2.0-x\r\n")],
    ["SSL 2", Buffer.from([0x80, 0x2e, 1, 3, 1])],
    ["an empty record", Buffer.from([22, 3, 1, 0, 0])],
    ["a long record", Buffer.from([22, 3, 1, 0xff, 0xff])],
    ["another message", records(Buffer.concat([number(1, 2), number(3, 2), Buffer.alloc(2)]))],
    ["a huge message", records(Buffer.concat([number(1, 1), number(3, 0xffffff)]))],
    [
      "an alert between the records",
      Buffer.concat([records(message().subarray(0, 9)), Buffer.from([21, 3, 3, 0, 2, 1, 0])]),
    ],
  ])("that is %s is refused at once", (_, bytes) => {
    expect(read(bytes)).toMatchObject({ kind: "refused" });
  });

  test("that never ends is refused at 16 KiB", () => {
    const reader = new HelloReader();
    const long = records(message({ extensions: [named("a.example"), extension(21, Buffer.alloc(16_000))] }), 1);
    let hello = reader.read(long.subarray(0, 1));
    let bytes = 1;
    for (; hello.kind === "incomplete"; bytes += 1) hello = reader.read(long.subarray(bytes, bytes + 1));
    expect(hello.kind).toBe("refused");
    expect(bytes).toBe(16 * 1024);
  });

  test("with any bytes changed is a hello, incomplete or refused, and never names what is no host", () => {
    const seed = records(
      message({
        extensions: [named("a.example"), versions(0x0304), extension(16, list(2, list(1, Buffer.from("h2"))))],
      }),
    );
    const kinds = new Set<string>();
    for (let round = 0; round < rounds(3000); round += 1) {
      const bytes = Buffer.from(seed);
      for (let change = 1 + randomInt(3); change > 0; change -= 1) bytes[randomInt(bytes.length)] = randomInt(256);
      const hello = read(round % 3 === 0 ? bytes.subarray(0, randomInt(bytes.length)) : bytes);
      kinds.add(hello.kind);
      if (hello.kind === "hello" && !/^[a-z0-9_.-]+$/.test(hello.serverName)) expect.fail(bytes.toString("hex"));
    }
    expect([...kinds].sort()).toEqual(["hello", "incomplete", "refused"]);
  });
});
