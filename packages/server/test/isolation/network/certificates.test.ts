import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  certificatesIn,
  JAVA_PASSWORD,
  javaTrustStore,
  SandboxAuthority,
} from "../../../src/isolation/network/certificates.ts";

const run = promisify(execFile);
const DAY_MS = 24 * 3_600_000;
let directory: string;
const servers: Server[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "agentfense-certificates-"));
});

afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await rm(directory, { recursive: true, force: true });
});

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
}

async function serve(authority: SandboxAuthority, host: string): Promise<number> {
  const { key, certificate } = authority.leafFor(host);
  const server = createServer({ key, cert: certificate }, (_request, response) => response.end("hello"));
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** What Node's client says to a server with this certificate, which has the name asked for. */
async function nodesVerdict(authority: SandboxAuthority, host: string): Promise<string> {
  const socket = connect({
    port: await serve(authority, host),
    host: "127.0.0.1",
    servername: host,
    ca: authority.pem,
  });
  try {
    await once(socket, "secureConnect");
    return "trusted";
  } catch (error) {
    return (error as Error).message;
  } finally {
    socket.destroy();
  }
}

async function curlsVerdict(authority: SandboxAuthority, host: string): Promise<string> {
  const port = await serve(authority, host);
  const ca = await file("ca.pem", authority.pem);
  const options = ["-sS", "--noproxy", "*", "--cacert", ca, "--resolve", `${host}:${port}:127.0.0.1`];
  return run("curl", [...options, `https://${host}:${port}/`]).then(
    ({ stdout }) => stdout,
    ({ code, stderr }: { code: number; stderr: string }) => `${code}: ${stderr}`,
  );
}

async function opensslsVerdict(authority: SandboxAuthority, host: string): Promise<string> {
  const ca = await file("ca.pem", authority.pem);
  const leaf = await file("leaf.pem", authority.leafFor(host).certificate);
  const options = ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", host, "-CAfile", ca, leaf];
  return run("openssl", options).then(
    () => "trusted",
    ({ stderr }: { stderr: string }) => stderr,
  );
}

test("openssl (strictly), curl and Node trust a certificate for each name that the authority was made for", async () => {
  const authority = new SandboxAuthority(["api.example.com", "*.npm.test"]);
  for (const host of ["api.example.com", "registry.npm.test", "a.b.npm.test", `${"l".repeat(60)}.npm.test`]) {
    expect(authority.covers(host)).toBe(true);
    expect(await opensslsVerdict(authority, host)).toBe("trusted");
    expect(await nodesVerdict(authority, host)).toBe("trusted");
  }
  expect(await curlsVerdict(authority, "api.example.com")).toBe("hello");
});

test("openssl, curl and Node refuse a certificate of the authority for any other name", async () => {
  const authority = new SandboxAuthority(["api.example.com"]);
  for (const host of ["example.com", "other.test", "notapi.example.com"]) {
    expect(authority.covers(host)).toBe(false);
    expect(await opensslsVerdict(authority, host)).toContain("permitted subtree violation");
    expect(await nodesVerdict(authority, host)).toContain("permitted subtree violation");
  }
  expect(await curlsVerdict(authority, "other.test")).toMatch(/^60: .*permitted subtree violation/s);
});

test("an authority for no name cannot be made: it could vouch for all", () => {
  expect(() => new SandboxAuthority([])).toThrow("without a permitted name");
});

test("an authority lasts 30 days, its certificates 7 and never longer than itself; both allow for a clock an hour behind", () => {
  const start = Date.UTC(2030, 0, 1);
  let now = start;
  const authority = new SandboxAuthority(["a.test"], () => now);
  const times = (pem: string | Buffer): [number, number] => {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    return [validFromDate.getTime() - start, validToDate.getTime() - start];
  };
  expect(times(authority.certificate)).toEqual([-3_600_000, 30 * DAY_MS]);
  expect(times(authority.leafFor("a.test").certificate)).toEqual([-3_600_000, 7 * DAY_MS]);
  now = start + 29 * DAY_MS;
  expect(times(authority.leafFor("a.test").certificate)[1]).toBe(30 * DAY_MS);
});

test("a certificate is made once, again before it expires, and the least used makes room", () => {
  let now = Date.UTC(2030, 0, 1);
  const authority = new SandboxAuthority(["*.a.test"], () => now);
  const first = authority.leafFor("one.a.test");
  expect(authority.leafFor("one.a.test")).toBe(first);
  expect(authority.contextFor("one.a.test")).toBe(authority.contextFor("one.a.test"));
  now += 6 * DAY_MS;
  const second = authority.leafFor("one.a.test");
  expect(second).not.toBe(first);
  for (let i = 0; i < 255; i++) authority.leafFor(`${i}.a.test`);
  expect(authority.leafFor("one.a.test")).toBe(second);
  for (let i = 0; i < 256; i++) authority.leafFor(`${i}.a.test`);
  expect(authority.leafFor("one.a.test")).not.toBe(second);
});

test("two authorities do not believe each other, nor does either show its key", async () => {
  const [one, other] = [new SandboxAuthority(["a.test"]), new SandboxAuthority(["a.test"])];
  const leaf = new X509Certificate(one.leafFor("a.test").certificate);
  expect(leaf.verify(new X509Certificate(one.certificate).publicKey)).toBe(true);
  expect(leaf.verify(new X509Certificate(other.certificate).publicKey)).toBe(false);
  expect(JSON.stringify(one)).not.toMatch(/PRIVATE|key/i);
});

test("a bundle is read as the certificates that are in it, whatever stands between", () => {
  const [one, other] = [new SandboxAuthority(["a.test"]), new SandboxAuthority(["b.test"])];
  const bundle = `# One\n${one.pem}\nOther = 1\r\n${other.pem.replaceAll("\n", "\r\n")}`;
  expect(certificatesIn(bundle)).toEqual([one.certificate, other.certificate]);
});

test("Java reads the store that is written for it", async () => {
  const authorities = [new SandboxAuthority(["a.test"]), new SandboxAuthority(["b.test"])];
  const store = await file("cacerts", javaTrustStore(authorities.map(({ certificate }) => certificate)));
  const { stdout } = await run("keytool", ["-list", "-rfc", "-keystore", store, "-storepass", JAVA_PASSWORD]);
  expect(certificatesIn(stdout)).toEqual(expect.arrayContaining(authorities.map(({ certificate }) => certificate)));
});
