import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ErrorInfoSchema } from "@agentfense/protocol/error-details";
import { SandboxService } from "@agentfense/protocol/sandbox";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { SandboxClient } from "../../src/client/client.ts";
import { FileNotFoundError, RuntimeUnavailableError, SandboxNotRunningError } from "../../src/errors.ts";
import { Sandbox } from "../../src/sandbox/sandbox.ts";
import { MockEngine } from "../../src/testing/index.ts";
import { codeOf, openMock } from "./support.ts";

test("an agent's code runs against it as against the real thing", async () => {
  const engine = MockEngine.withFiles({ "src/a.ts": "// TODO\n", "secrets/key": "s3cret", "output/x": "" });
  engine.onCommand("npm test", { stdout: "1 failed\n", exitCode: 1 });
  await using sandbox = await Sandbox.fromLocal(".", { engine, preset: "agent-safe", policy: false });
  expect(await sandbox.files.readFile("src/a.ts", "utf8")).toBe("// TODO\n");
  await expect(sandbox.files.readFile("secrets/key")).rejects.toThrow(FileNotFoundError);
  expect(await sandbox.run("npm test")).toMatchObject({ stdout: "1 failed\n", exitCode: 1, success: false });
  await sandbox.files.writeFile("output/report.md", "done\n");
  expect(await sandbox.files.readFile("output/report.md", "utf8")).toBe("done\n");
  expect((await sandbox.changes().toArray()).map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "added /output/report.md",
  ]);
  await sandbox.apply();
  expect(engine.filesOf(sandbox.codebaseId)).toHaveProperty(["output/report.md"], "done\n");
  await using session = await sandbox.session();
  expect((await session.exec("npm test")).exitCode).toBe(1);
  expect(engine.calls.map(({ command }) => command)).toEqual(["npm test", "npm test"]);
});

test("a directory of the disk is read, links as links, and never written", async () => {
  const directory = await mkdtemp(join(tmpdir(), "mock-engine-"));
  try {
    await mkdir(join(directory, "src"));
    await writeFile(join(directory, "src/a.ts"), "a\n", { mode: 0o755 });
    await symlink("/etc/passwd", join(directory, "link"));
    const engine = new MockEngine();
    await using sandbox = await Sandbox.fromLocal(directory, { engine, preset: "full-access" });
    expect((await sandbox.files.stat("src/a.ts")).mode).toBe(0o755);
    expect((await sandbox.files.stat("link")).target).toBe("/etc/passwd");
    await sandbox.files.writeFile("src/a.ts", "b\n");
    await sandbox.apply();
    expect(engine.filesOf(sandbox.codebaseId)).toEqual({ "src/a.ts": "b\n" });
    expect(await readFile(join(directory, "src/a.ts"), "utf8")).toBe("a\n");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("errors carry their code, details and hint as the server's do", async () => {
  await using mock = await openMock();
  const { client, id, engine } = mock;
  await client.stopSandbox(id);
  const error = await createClient(SandboxService, engine.transport)
    .exec({ sandboxId: id, command: "true" })
    .catch((thrown: unknown) => ConnectError.from(thrown));
  expect(error).toMatchObject({ code: Code.FailedPrecondition, rawMessage: "sandbox is not running" });
  expect((error as ConnectError).findDetails(ErrorInfoSchema)).toMatchObject([
    { reason: "SANDBOX_NOT_RUNNING", domain: "agentfense", metadata: { hint: "start it first" } },
  ]);
  await expect(client.exec(id, "true")).rejects.toThrow(SandboxNotRunningError);
});

test("a sandbox keeps the hosts of a filtered network, and takes others", async () => {
  const engine = new MockEngine();
  const client = new SandboxClient({ engine });
  const codebaseId = engine.addCodebase({ a: "a" });
  const sandbox = await client.createSandbox({ codebaseId, network: { allow: ["github.com"] } });
  expect(sandbox).toMatchObject({ network: "filtered", networkRules: [{ host: "github.com" }] });
  const changed = await client.updateNetwork(sandbox.id, { allow: ["pypi.org"] });
  expect(changed.networkRules).toMatchObject([{ host: "pypi.org" }]);
  const own = { value: "a value of a secret", hosts: ["api.test"], in: "bearer" } as const;
  const keeping = await client.createSandbox({ codebaseId, secrets: { KEPT: "kept", OWN: own } });
  expect(keeping).toMatchObject({ network: "filtered", secrets: ["KEPT", "OWN"] });
  const closed = await client.createSandbox({ codebaseId, network: "none" });
  expect(await codeOf(client.updateNetwork(closed.id, { allow: ["pypi.org"] }))).toBe("INVALID_ARGUMENT");
});

test("another expiry takes the place of the one before, unless it is only to be later", async () => {
  await using mock = await openMock();
  await using sandbox = await Sandbox.connect(mock.id, { engine: mock.engine });
  const first = await sandbox.updateExpiry(3_600_000);
  expect(await sandbox.updateExpiry(60_000, { extendOnly: true })).toEqual(first);
  expect((await sandbox.updateExpiry(60_000)).getTime()).toBeLessThan(first.getTime());
  expect(sandbox.info.expiresAt!.getTime()).toBeLessThan(first.getTime());
});

test("what a mock has nothing to say to is refused with the way out", async () => {
  await using mock = await openMock();
  await using sandbox = await Sandbox.connect(mock.id, { engine: mock.engine });
  const refused = await sandbox.spawn("npm run dev").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(RuntimeUnavailableError);
  expect(refused).toMatchObject({
    message: "the mock engine has no startProcess",
    hint: "test this with a real sandbox: open it without the mock engine",
  });
  expect(await codeOf(mock.client.watchFiles(mock.id, "/"))).toBe("RUNTIME_UNAVAILABLE");
  expect(await codeOf(mock.client.listHomes().then((homes) => homes))).toBe("RUNTIME_UNAVAILABLE");
});

test("a sandbox goes through its states", async () => {
  const engine = new MockEngine();
  const client = new SandboxClient({ engine });
  const codebaseId = engine.addCodebase({ a: "a" }, { ownerId: "ann" });
  const options = { codebaseId, labels: { team: "x" }, resources: { memoryBytes: 1000 }, network: "private" } as const;
  const sandbox = await client.createSandbox({ ...options, preset: "read-only" });
  expect(sandbox).toMatchObject({
    status: "pending",
    runtime: "mock",
    ownerId: "ann",
    sync: "on-exec",
    network: "private",
    networkRules: [],
    secrets: [],
    labels: { team: "x" },
    resources: { memoryBytes: 1000 },
  });
  expect(await codeOf(client.stopSandbox(sandbox.id))).toBe("SANDBOX_NOT_RUNNING");
  expect((await client.startSandbox(sandbox.id)).status).toBe("running");
  expect(await codeOf(client.startSandbox(sandbox.id))).toBe("SANDBOX_ALREADY_RUNNING");
  expect((await client.stopSandbox(sandbox.id)).status).toBe("stopped");
  expect((await client.startSandbox(sandbox.id)).status).toBe("running");
  const listed = async (query: Parameters<SandboxClient["listSandboxes"]>[0]) =>
    (await client.listSandboxes(query).toArray()).length;
  expect(await listed({ labels: { team: "x" }, status: "running", codebaseId })).toBe(1);
  expect(await listed({ labels: { team: "y" } })).toBe(0);
  expect(await listed({ status: "stopped" })).toBe(0);
  await client.destroySandbox(sandbox.id);
  expect(await codeOf(client.destroySandbox(sandbox.id))).toBe("SANDBOX_NOT_FOUND");
});
