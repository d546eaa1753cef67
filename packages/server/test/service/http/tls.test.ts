import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HANG_MS, withoutHanging } from "../../../../../test/support/eventually.ts";
import { grpcClient, openTestService, rawHttp, unary } from "./fixture.ts";

let directory: string;
let cert: string;
let key: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "agentfense-tls-"));
  const at = (name: string): string => join(directory, name);
  execFileSync(
    "openssl",
    // biome-ignore format: one option a word
    ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
      "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", at("key.pem"), "-out", at("cert.pem")],
    { stdio: "ignore" },
  );
  cert = readFileSync(at("cert.pem"), "utf8");
  key = readFileSync(at("key.pem"), "utf8");
});
afterAll(() => rmSync(directory, { recursive: true }));

/** This client refuses addresses where a certificate could have a name. */
function named(address: string): string {
  return address.replace("127.0.0.1", "localhost");
}

async function get(
  address: string,
  path: string,
  headers: Record<string, string> = {},
  identity: { cert?: string; key?: string } = {},
): Promise<{ status: number; body: string }> {
  const [host, port] = address.split(":");
  return await new Promise((resolve, reject) => {
    const call = request(
      { host, port, path, headers, ca: cert, servername: "localhost", agent: false, ...identity },
      (response) => {
        let body = "";
        response.on("data", (chunk) => {
          body += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        response.on("error", reject);
      },
    );
    call.on("error", reject);
    call.end();
  });
}

test("gRPC and HTTP/1.1 share a port under TLS, whatever the Host", async () => {
  await using open = await openTestService({ tls: { cert, key } });
  const credentials = grpc.credentials.createSsl(Buffer.from(cert));
  using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", named(open.grpc), credentials);
  expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK", response: { version: "test" } });
  expect(await get(open.http, "/v1/server")).toMatchObject({ status: 200 });
  expect(await get(open.http, "/v1/server", { host: "other.example" })).toMatchObject({ status: 200 });
  expect(await get(open.http, "/v1/server", { origin: "https://evil.example" })).toMatchObject({ status: 403 });
});

test("cleartext gets nothing from a TLS port", async () => {
  await using open = await openTestService({ tls: { cert, key } });
  expect(await rawHttp(open.http, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 500)).not.toContain("ok");
  expect(await get(open.http, "/healthz")).toMatchObject({ status: 200 });
});

test("old versions of TLS are not spoken", async () => {
  await using open = await openTestService({ tls: { cert, key } });
  const [host = "", port] = open.http.split(":");
  const socket = connectTls({ host, port: Number(port), ca: cert, minVersion: "TLSv1", maxVersion: "TLSv1.1" });
  await expect(
    new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject)),
  ).rejects.toThrow();
});

test("a client authority shuts out everybody without its certificate", async () => {
  await using open = await openTestService({ tls: { cert, key, clientCa: cert } });
  await expect(get(open.http, "/healthz")).rejects.toThrow();
  expect(await get(open.http, "/healthz", {}, { cert, key })).toMatchObject({ status: 200 });
});

test("draining ends TLS connections too", async () => {
  const open = await openTestService({ tls: { cert, key } });
  const credentials = grpc.credentials.createSsl(Buffer.from(cert));
  using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", named(open.grpc), credentials);
  expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK" });
  await withoutHanging(() => open.service.drain(10 * HANG_MS));
});
