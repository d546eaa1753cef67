import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, withoutHanging } from "../../../../../test/support/eventually.ts";
import { EVIL_ADDRESS, GOOD_ADDRESS, type Internet, openInternet } from "../../../../../test/support/internet.ts";
import { cut } from "../../../src/isolation/network/connection.ts";
import { refusal } from "../../../src/isolation/network/policy.ts";
import { closed, type FilteredBox, networkPolicy, openFilteredBox, realHello, withExtension } from "./filtered-box.ts";

const LIST = [
  "good.test",
  "second.test",
  "*.wild.test",
  "ssh.test:22",
  "inner.test",
  { host: "seen.test", methods: ["GET"] },
];

let internet: Internet;
let box: FilteredBox;

beforeAll(async () => {
  internet = await openInternet({
    ...{
      "good.test": [GOOD_ADDRESS],
      "second.test": [GOOD_ADDRESS],
      "*.wild.test": [GOOD_ADDRESS],
      "ssh.test": [GOOD_ADDRESS],
    },
    ...{ "evil.test": [EVIL_ADDRESS], "inner.test": ["127.0.0.1"], "seen.test": [GOOD_ADDRESS] },
  });
  box = await openFilteredBox(internet, LIST);
});

afterAll(async () => {
  await box[Symbol.asyncDispose]();
  await internet[Symbol.asyncDispose]();
});

async function get(socket: Socket, host: string, path = "/"): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return await text(socket);
}

const denials = (host: string) => box.events.filter((event) => event.kind === "denied" && event.host === host);

describe("TLS to a listed name", () => {
  test("passes unopened: the certificate is the host's own", async () => {
    const socket = await box.dialTls("good.test");
    expect(socket.getPeerX509Certificate()?.checkHost("good.test")).toBe("good.test");
    expect(await get(socket, "good.test")).toContain("good GET /");
    await eventually(() => box.events.some(({ kind, host }) => kind === "allowed" && host === "good.test"));
    await (await box.dialTls("good.test")).destroy();
    expect(
      box.events.filter(({ kind, host, port }) => kind === "allowed" && host === "good.test" && port === 443),
    ).toHaveLength(1);
  });

  test("passes below a wildcard, and with HTTP/2", async () => {
    const socket = await box.dialTls("a.wild.test", { ALPNProtocols: ["h2"] });
    const session = connectHttp2("https://a.wild.test", { createConnection: () => socket });
    const stream = session.request({ ":path": "/h2" });
    expect(await text(stream)).toBe("good GET /h2");
    session.close();
  });

  test("passes a large body and a half-closed stream whole", async () => {
    const socket = await box.dialTls("good.test");
    const size = 8 * 1024 * 1024;
    const [head = "", body = ""] = (await get(socket, "good.test", `/large?bytes=${size}`)).split(/\r\n\r\n(.*)/s);
    expect(head).toContain("200 OK");
    expect(body.match(/x/g)).toHaveLength(size);
  });

  test.each([
    ["another listed name", "second.test", "this connection is one to good.test, not to second.test"],
    ["a name that is not listed", "evil.test", refusal("evil.test")],
  ])("with %s in its hello is refused by an alert", async (_, servername, sentence) => {
    const before = internet.questions.length;
    await expect(box.dialTls("good.test", { servername })).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_UNRECOGNIZED_NAME",
    });
    await eventually(() => expect(denials(servername)).toEqual([expect.objectContaining({ port: 443, sentence })]));
    expect(internet.questions).toHaveLength(before); // nobody was dialled
  });

  test("without a name, or old, or no TLS at all, is refused", async () => {
    await expect(box.dialTls("good.test", { servername: "" })).rejects.toMatchObject({ code: /ERR_SSL/ });
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await expect(box.dialTls("good.test", old)).rejects.toMatchObject({ code: /PROTOCOL_VERSION/ });
    const plain = await box.dial("good.test", 443);
    plain.write("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n");
    expect(await text(plain)).toHaveLength(7); // an alert
    plain.destroy();
    expect(internet.seen.filter(({ server }) => server === "evil")).toEqual([]);
  });

  test("that may name another one encrypted is refused, and answered where it is opened", async () => {
    const secret = { name: "KEY", hosts: ["second.test"], place: { kind: "bearer" }, value: "a-long-secret" } as const;
    await using both = await openFilteredBox(internet, ["good.test", "second.test"], [secret]);
    const answers: number[][] = [];
    for (const servername of ["good.test", "second.test"]) {
      const socket = await both.dial(servername, 443);
      socket.write(withExtension(await realHello({ servername }), 0xfe0d, randomBytes(64)));
      answers.push([...((await once(socket, "data"))[0] as Buffer).subarray(0, 6)]);
      socket.destroy();
    }
    expect(answers[0]).toEqual([21, 3, 3, 0, 2, 2]); // a fatal alert
    expect(answers[1]).toEqual([22, 3, 3, expect.any(Number), expect.any(Number), 2]); // the server's first message
    await eventually(() =>
      expect(both.events).toMatchObject([{ host: "good.test", sentence: expect.stringContaining("ECH") }]),
    );
  });

  test("whose requests would have to be looked at is refused as long as nobody does", async () => {
    await expect(box.dialTls("seen.test")).rejects.toMatchObject({ code: /HANDSHAKE_FAILURE/ });
  });

  test("to a name that says this host's loopback device is refused, with the reason", async () => {
    const socket = await box.dial("inner.test", 443);
    await expect(box.dialTls("inner.test")).rejects.toThrow();
    await eventually(() => expect(denials("inner.test")[0]?.sentence).toMatch(/no public address/));
    socket.destroy();
  });
});

describe("other connections", () => {
  test("at a listed port pass as they are, each end closing by itself", async () => {
    const socket = await box.dial("ssh.test", 22);
    const sent = randomBytes(3 * 1024 * 1024);
    socket.end(sent);
    const hash = createHash("sha256");
    for await (const piece of socket) hash.update(piece as Buffer);
    expect(hash.digest("hex")).toBe(createHash("sha256").update(sent).digest("hex"));
  });

  test("at a port that is listed for another name are refused", async () => {
    const socket = await box.dial("good.test", 22);
    await closed(socket);
    await eventually(() =>
      expect(denials("good.test")).toContainEqual(
        expect.objectContaining({ port: 22, sentence: refusal("good.test", 22) }),
      ),
    );
  });

  test("to an address that is no name's end at once", async () => {
    for (const host of ["127.0.0.1", "127.80.200.200"]) {
      const socket = connect(box.actualPort(443), host).on("error", () => {});
      await closed(socket);
    }
  });

  test("wait for a slow reader and lose nothing", async () => {
    const socket = await box.dial("ssh.test", 22);
    const size = 64 * 1024 * 1024;
    const piece = Buffer.alloc(1024 * 1024, 7);
    let written = 0;
    const isFull = (): boolean => socket.writableNeedDrain;
    // Nobody reads: after what fits into the buffers on the way, nothing more is taken.
    while (written < size && !(isFull() && (await stays(() => socket.bytesWritten - socket.writableLength)))) {
      if (isFull()) continue;
      socket.write(piece);
      written += piece.length;
    }
    expect(written).toBeLessThan(size);
    let read = 0;
    socket.on("data", (data: Buffer) => {
      read += data.length;
    });
    socket.end();
    await once(socket, "end");
    expect(read).toBe(written);
  });
});

/** Whether a number is the same after many turns of everybody's. */
async function stays(number: () => number): Promise<boolean> {
  const before = number();
  for (let turn = 0; turn < 20; turn += 1) await box.addressOf("ssh.test");
  return number() === before;
}

describe("limits", () => {
  test("a box has 128 connections that have not said what they want, and others when those are gone", async () => {
    const silent = await Promise.all(Array.from({ length: 140 }, () => box.dial("second.test", 443)));
    await eventually(() => silent.filter((socket) => socket.closed).length === 12);
    await eventually(() =>
      expect(denials("second.test").some(({ sentence }) => sentence?.includes("too many connections"))).toBe(true),
    );
    for (const socket of silent) socket.destroy();
    const answered = await eventually(async () => get(await box.dialTls("good.test"), "good.test"));
    expect(answered).toContain("good GET /");
  });

  test("a client that keeps silent is cut off", async () => {
    const socket = await box.dial("second.test", 443);
    socket.write(Buffer.from([22, 3, 1]));
    await closed(socket.resume());
  });
});

test("a connection that is ending is cut all the same, and its descriptor closed", async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  const [accepted] = (await once(server, "connection")) as [Socket];
  accepted.on("error", () => {}).end();
  cut(accepted);
  await closed(accepted);
  client.on("error", () => {}).destroy();
  server.close();
});

test("a connection that is cut while TLS over it is ending keeps no thread from its end", async () => {
  const worker = new Worker(new URL("ending-tls-worker.ts", import.meta.url));
  expect(await once(worker, "message")).toEqual(["cut"]);
  expect(await withoutHanging(() => worker.terminate())).toBe(1);
});

describe("a changed list", () => {
  const open = async (host: string): Promise<TLSSocket> => {
    const socket = await box.dialTls(host);
    socket.resume();
    return socket;
  };

  test("cuts what it no longer allows, and nothing else", async () => {
    const [kept, removed] = [await open("good.test"), await open("second.test")];
    const removedTcp = (await box.dial("ssh.test", 22)).resume();
    const before = internet.connections;
    await box.gate.update(networkPolicy("good.test"));
    await Promise.all([closed(removed), closed(removedTcp)]);
    await eventually(() => internet.connections < before);
    expect(kept.destroyed).toBe(false);
    expect(await get(kept, "good.test")).toContain("good GET /");
    await expect(box.addressOf("second.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  test("cuts what passed unopened and would have to be looked at now", async () => {
    await box.gate.update(networkPolicy(...LIST));
    const socket = await open("good.test");
    await box.gate.update(networkPolicy({ host: "good.test", methods: ["GET"] }));
    await closed(socket);
    await box.gate.update(networkPolicy(...LIST));
    expect(await get(await box.dialTls("good.test"), "good.test")).toContain("good GET /");
  });
});

test("no question of the box reached the internet's name server but for listed names", () => {
  expect(internet.questions.filter((name) => !/^(?:good|second|ssh|inner|a\.wild)\.test$/.test(name))).toEqual([]);
});
