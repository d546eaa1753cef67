import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { SandboxClient } from "@agentfense/sdk";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { GuardedServer } from "../../support/owners.ts";
import { TestServer } from "../../support/server.ts";

const repository = join(import.meta.dirname, "../../..");

function connect(options: ConstructorParameters<typeof SandboxClient>[0]): SandboxClient {
  const client = new SandboxClient(options);
  onTestFinished(() => client.close());
  return client;
}

describe("API keys", () => {
  test("open what they are for, and nothing without one", async () => {
    await using guarded = await GuardedServer.start();
    const endpoint = guarded.server.grpc;
    const refused = { name: "AuthenticationError", code: "UNAUTHENTICATED", retryable: false };
    await expect(connect({ endpoint }).getServerInfo()).rejects.toMatchObject(refused);
    await expect(connect({ endpoint, apiKey: "af_wrong" }).getServerInfo()).rejects.toMatchObject(refused);
    const alice = connect({ endpoint, apiKey: guarded.alice.key });
    expect(await alice.getServerInfo()).toMatchObject({ keysRequired: true, ownerId: "alice", role: "user" });
    await expect(alice.listKeys()).rejects.toMatchObject({ name: "PermissionDeniedError", code: "ROLE_FORBIDS" });
    const { id } = await alice.createCodebase({ name: "hers" });
    const mallory = connect({ endpoint, apiKey: guarded.mallory.key });
    await expect(mallory.getCodebase(id)).rejects.toMatchObject({ name: "CodebaseNotFoundError" });
  });

  test("are made, listed and revoked by an administrator", async () => {
    await using guarded = await GuardedServer.start();
    const endpoint = guarded.server.grpc;
    const admin = connect({ endpoint, apiKey: guarded.admin.key });
    const { key, secret } = await admin.createKey({ ownerId: "bob", role: "read-only", name: "laptop" });
    const made = {
      id: expect.any(String),
      ownerId: "bob",
      role: "read-only",
      name: "laptop",
      createdAt: expect.any(Date),
    };
    expect(key).toEqual(made);
    const bob = connect({ endpoint, apiKey: secret });
    expect(await bob.getServerInfo()).toMatchObject({ ownerId: "bob", role: "read-only" });
    await admin.revokeKey(key.id);
    await expect(bob.getServerInfo()).rejects.toMatchObject({ name: "AuthenticationError" });
    const listed = (await admin.listKeys()).find(({ id }) => id === key.id);
    expect(listed).toMatchObject({ ...made, revokedAt: expect.any(Date) });
    await expect(admin.revokeKey("key_none")).rejects.toMatchObject({ name: "SandboxError", code: "KEY_NOT_FOUND" });
  });
});

describe("where the server is", () => {
  test("is what the environment says when the client is made", async () => {
    await using server = await TestServer.start();
    vi.stubEnv("AGENTFENSE_ENDPOINT", server.grpc);
    vi.stubEnv("AGENTFENSE_API_KEY", "af_some");
    const client = connect({});
    vi.unstubAllEnvs();
    expect(client.name).toBe(`http://${server.grpc}`);
    expect(await client.getServerInfo()).toMatchObject({ keysRequired: false });
  });

  test.each([{}, { AGENTFENSE_ENDPOINT: "" }, { AGENTFENSE_API_KEY: "af_some" }])(
    "is not guessed: with %j alone nothing is sent to whoever listens",
    (environment) => {
      for (const name of ["AGENTFENSE_ENDPOINT", "AGENTFENSE_API_KEY"]) vi.stubEnv(name, undefined);
      for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
      onTestFinished(() => void vi.unstubAllEnvs());
      expect(() => new SandboxClient()).toThrow(
        expect.objectContaining({ name: "InvalidConfigurationError", message: "no server is named" }),
      );
    },
  );

  test.each([
    [{ endpoint: "ftp://x" }, /^an endpoint is http:\/\/HOST:PORT, https:\/\/HOST:PORT or unix:\/PATH/],
    [{ endpoint: "unix:relative" }, "a socket is unix: and an absolute path"],
    [{ endpoint: "http://u:p@x:1" }, "an endpoint has no user and no password in it"],
    [{ endpoint: "http://x/path" }, /^an endpoint is/],
    [{ endpoint: "http://x", apiKey: "a b" }, "the API key has characters no key has"],
    [{ endpoint: "http://x", tls: { ca: "" } }, "tls goes with an https:// endpoint"],
  ])("%j is refused at once", (options, message) => {
    expect(() => new SandboxClient(options)).toThrow(message);
  });

  test("a key that would travel in the clear is warned about once", () => {
    const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warnings.mockRestore());
    const made = ["http://far.invalid:1", "http://far.invalid:1", "https://far.invalid", "http://localhost:1"].map(
      (endpoint) => connect({ endpoint, apiKey: "af_some" }),
    );
    expect(made).toHaveLength(4);
    expect(warnings.mock.calls).toEqual([
      [
        "the API key travels unencrypted to http://far.invalid:1; use https://",
        { type: "SecurityWarning", code: "AGENTFENSE_KEY_IN_THE_CLEAR" },
      ],
    ]);
  });

  test("a name that nobody has, and a port where nobody listens", async () => {
    const unknown = connect({ endpoint: "http://agentfense.invalid:9000", retries: 0 });
    await expect(unknown.getServerInfo()).rejects.toMatchObject({
      name: "ConnectionError",
      code: "CONNECTION_FAILED",
      message: "there is no machine of that name: http://agentfense.invalid:9000",
    });
    const endpoint = `http://127.0.0.1:${await freePort()}`;
    await expect(connect({ endpoint, retries: 1 }).getServerInfo()).rejects.toMatchObject({
      name: "ConnectionError",
      message: `nothing listens at ${endpoint}`,
      hint: "is the server running?",
      retryable: true,
    });
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("TLS: a certificate of one's own has to be vouched for", async () => {
  const directory = mkdtempSync(join(tmpdir(), "agentfense-sdk-tls-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  execFileSync(
    "openssl",
    // biome-ignore format: one option a word
    ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
      "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", keyFile, "-out", certFile],
    { stdio: "ignore" },
  );
  await using server = await TestServer.start({
    settings: { server: { tls: { cert_file: certFile, key_file: keyFile } } },
  });
  const endpoint = `https://${server.grpc}`;
  const trusting = connect({ endpoint, tls: { ca: readFileSync(certFile, "utf8") } });
  expect(await trusting.getServerInfo()).toMatchObject({ role: "admin" });
  await expect(connect({ endpoint }).getServerInfo()).rejects.toMatchObject({
    name: "ConnectionError",
    message: `the certificate of ${endpoint} is signed by nobody we know`,
    hint: "give the right ones as tls.ca",
    retryable: false,
  });
  await expect(connect({ endpoint: server.grpc, retries: 0 }).getServerInfo()).rejects.toMatchObject({
    name: "ConnectionError",
  });
});

describe("a server that goes away", () => {
  test("fails what runs, and the next call finds the one that took its place", async () => {
    await using first = await TestServer.start();
    const client = connect({ endpoint: first.grpc });
    const { id: codebaseId } = await client.createCodebase({ name: "project", ownerId: "tester" });
    const { id } = await client.createSandbox({ codebaseId, preset: "full-access" });
    await client.startSandbox(id);
    const stream = client.execStream(id, "echo started; sleep 1000");
    expect(await stream.next()).toMatchObject({ value: { kind: "stdout" } });
    const failureOf = (call: Promise<unknown>) => call.then(String, (error: unknown) => error);
    const failures = Promise.all([failureOf(client.exec(id, "touch begun; sleep 1000")), failureOf(stream.next())]);
    // The command has to be on its way before its server ends.
    await eventually(async () => (await client.listDirectory(id, "/")).some(({ name }) => name === "begun"));
    await first.stop("SIGKILL");
    const lost = { name: "ConnectionError", code: "CONNECTION_FAILED", retryable: true };
    expect(await failures).toMatchObject([lost, lost]);

    const settings = { server: { grpc_addr: first.grpc, http_addr: "127.0.0.1:0" } };
    await using _second = await TestServer.start({ directory: first.directory, settings });
    expect(await client.getCodebase(codebaseId)).toMatchObject({ id: codebaseId });
  });

  test("a client that does nothing does not keep its process alive", async () => {
    await using server = await TestServer.start();
    const program = `
      import { SandboxClient } from "@agentfense/sdk";
      const client = new SandboxClient({ endpoint: ${JSON.stringify(server.grpc)} });
      console.log((await client.getServerInfo()).role);
    `;
    const run = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: repository,
      timeout: 50_000,
    });
    expect((await run).stdout).toBe("admin\n");
  });
});
