import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { isLoopback, parseAddress, resolveBinding } from "../../../src/service/http/address.ts";
import { openTestService } from "./fixture.ts";

describe("addresses to listen at", () => {
  test.each([
    ["127.0.0.1:9000", { host: "127.0.0.1", port: 9000 }],
    ["[::1]:9000", { host: "::1", port: 9000 }],
    ["localhost:0", { host: "localhost", port: 0 }],
    [":9000", { host: undefined, port: 9000 }],
    ["unix:/run/a.sock", { path: "/run/a.sock" }],
    ["unix:///run/a.sock", { path: "/run/a.sock" }],
    [`unix:/${"a".repeat(106)}`, { path: `/${"a".repeat(106)}` }],
  ])("%s is understood", (text, address) => {
    expect(parseAddress(text)).toEqual(address);
  });

  test.each([
    ["9000"],
    ["localhost"],
    ["127.0.0.1:70000"],
    ["[::1:9000"],
    ["::1:9000"],
    ["http://a:1"],
    ["a b:1"],
    ["[1.2.3.4]:1"],
    ["unix:relative.sock"],
    ["unix://host/a.sock"],
    ["unix:/run/"],
    [`unix:/${"ä".repeat(54)}`],
  ])("%s is refused", (text) => {
    expect(() => parseAddress(text)).toThrow(/not an address to listen at/);
  });

  test.each([
    ["127.0.0.1", true],
    ["127.8.9.1", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["0.0.0.0", false],
    ["::", false],
    ["10.0.0.1", false],
    ["::ffff:10.0.0.1", false],
  ])("%s is loopback: %s", (ip, loopback) => {
    expect(isLoopback(ip)).toBe(loopback);
  });
});

describe("who may be served", () => {
  test.each([":0", "0.0.0.0:0", "[::]:0"])("%s is refused without keys, with a word on what to do", async (address) => {
    for (const door of [{ grpc: { address } }, { http: { address } }]) {
      await expect(openTestService(door)).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringContaining(`refusing to listen at ${address} without API keys`),
        hint: expect.stringMatching(/127\.0\.0\.1.*require API keys/),
      });
    }
  });

  test("a name counts as the address it stands for", async () => {
    expect(await resolveBinding("localhost:9000", { keys: "off", allowOpen: false })).toEqual({
      host: "127.0.0.1",
      port: 9000,
    });
  });

  test("an open address is bound with keys, and without them if the operator insists", async () => {
    for (const options of [{ keys: "required" as const }, { allowOpen: true }]) {
      await using open = await openTestService({ grpc: { address: ":0" }, ...options });
      expect(open.grpc).toMatch(/^(\[::\]|0\.0\.0\.0):\d+$/);
      expect(open.log.join()).toContain("open to other machines in cleartext");
    }
  });

  test("IPv6 loopback needs no key", async () => {
    await using open = await openTestService({ grpc: { address: "[::1]:0" }, http: { address: "[::1]:0" } });
    expect(open.grpc).toMatch(/^\[::1\]:\d+$/);
    expect((await fetch(`http://${open.http}/v1/server`)).status).toBe(200);
  });

  test("an address that is taken is an error that names it, and nothing stays open", async () => {
    await using first = await openTestService();
    await expect(openTestService({ http: { address: first.http } })).rejects.toMatchObject({
      message: `cannot listen at ${first.http}: EADDRINUSE`,
    });
  });

  test("without an HTTP address there is no HTTP port", async () => {
    await using open = await openTestService({ http: { address: "" } });
    expect(open.service.httpAddress).toBeUndefined();
  });

  test("closing frees the ports", async () => {
    const open = await openTestService();
    await open.service.close();
    const [host = "", port] = open.grpc.split(":");
    const socket = connect({ host, port: Number(port) });
    await expect(
      new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject)),
    ).rejects.toThrow(/ECONNREFUSED/);
  });
});
