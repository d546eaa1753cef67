import { once } from "node:events";
import { link, lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { grpcClient, openTestService, unary } from "./fixture.ts";

async function scratch(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "agentfense-socket-test-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** What a server leaves that was killed. */
async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.bound`);
  await once(server, "listening");
  await link(`${path}.bound`, path);
  server.close();
  await once(server, "close");
}

describe("a service at a Unix socket", () => {
  test("answers its user alone, without a key, and takes the socket along when it ends", async () => {
    const directory = await scratch();
    const address = `unix:${join(directory, "grpc.sock")}`;
    {
      await using open = await openTestService({ grpc: { address } });
      expect(open.grpc).toBe(address);
      using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", address);
      expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK", response: { version: "test" } });
      expect((await lstat(join(directory, "grpc.sock"))).mode & 0o777).toBe(0o600);
      expect(await readdir(directory)).toEqual(["grpc.sock"]);
      expect(open.log).toEqual([]);
    }
    expect(await readdir(directory)).toEqual([]);
  });

  test("has a path as long as a socket's can be", async () => {
    const directory = await scratch();
    const path = join(directory, "s".repeat(106 - directory.length));
    await using open = await openTestService({ grpc: { address: `unix:${path}` } });
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK" });
  });

  test("takes the path of the socket for its name, as gRPC's own library writes it", async () => {
    const path = join(await scratch(), "grpc.sock");
    await using open = await openTestService({ grpc: { address: `unix:${path}` } });
    const named = { "grpc.default_authority": encodeURIComponent(path) };
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc, undefined, named);
    expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK" });
  });

  test("serves REST and metrics there too", async () => {
    const socketPath = join(await scratch(), "http.sock");
    await using _open = await openTestService({ http: { address: `unix:${socketPath}` } });
    for (const path of ["/v1/server", "/metrics"]) {
      const asked = request({ socketPath, path, headers: { host: "localhost" } }).end();
      const [response] = await once(asked, "response");
      await text(response);
      expect(response.statusCode).toBe(200);
    }
  });

  test("replaces the socket of a server that was killed", async () => {
    const path = join(await scratch(), "grpc.sock");
    await leaveStaleSocket(path);
    await using open = await openTestService({ grpc: { address: `unix:${path}` } });
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", open.grpc);
    expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK" });
  });

  test("leaves the socket of a living one alone", async () => {
    const path = join(await scratch(), "grpc.sock");
    await using first = await openTestService({ grpc: { address: `unix:${path}` } });
    await expect(openTestService({ grpc: { address: first.grpc } })).rejects.toMatchObject({
      message: `cannot listen at unix:${path}: a server listens there`,
    });
    using client = grpcClient("sandbox/v1/system.proto", "sandbox.v1.SystemService", first.grpc);
    expect(await unary(client, "GetServerInfo")).toMatchObject({ code: "OK" });
  });

  test("replaces nothing that is no socket", async () => {
    const path = join(await scratch(), "notes.txt");
    await writeFile(path, "mine");
    await expect(openTestService({ grpc: { address: `unix:${path}` } })).rejects.toMatchObject({
      message: `cannot listen at unix:${path}: something that is no socket is there`,
    });
    expect(await readFile(path, "utf8")).toBe("mine");
  });

  test("does not remove what took its place", async () => {
    const path = join(await scratch(), "grpc.sock");
    const open = await openTestService({ grpc: { address: `unix:${path}` } });
    await rm(path);
    await mkdir(path);
    await open.service.close();
    expect((await lstat(path)).isDirectory()).toBe(true);
  });

  test("names a directory that is not there", async () => {
    const path = join(await scratch(), "nowhere", "grpc.sock");
    await expect(openTestService({ grpc: { address: `unix:${path}` } })).rejects.toMatchObject({
      message: `cannot listen at unix:${path}: ENOENT`,
    });
  });
});
