import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectionError, closeEngine, EmbeddedEngine, Sandbox, SandboxClient } from "agentfense";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { defaultEngine } from "../../src/embedded/default-engine.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "agentfense-default-"));
  writeFileSync(join(directory, "a"), "1\n");
  vi.stubEnv("AGENTFENSE_ENDPOINT", "");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await closeEngine();
  rmSync(directory, { recursive: true, force: true });
});

test.each([
  [{ endpoint: "http://127.0.0.1:1" }, {}, undefined],
  [{}, { AGENTFENSE_ENDPOINT: "http://127.0.0.1:1" }, undefined],
  [{}, { AGENTFENSE_ENDPOINT: "" }, "embedded"],
  [{}, {}, "embedded"],
])("options %j and environment %j lead to the engine %s", (options, environment, name) => {
  expect(defaultEngine(options, environment)?.name).toBe(name);
});

test("a client goes where the endpoint is, in the options or in the environment, else into this process", () => {
  expect(new SandboxClient({ endpoint: "http://127.0.0.1:1" }).name).toBe("http://127.0.0.1:1");
  expect(new SandboxClient().name).toBe("embedded");
  vi.stubEnv("AGENTFENSE_ENDPOINT", "http://127.0.0.1:2");
  expect(new SandboxClient().name).toBe("http://127.0.0.1:2");
});

test("sandboxes without an engine share one, which outlives each of them and every client", async () => {
  {
    await using first = await Sandbox.fromLocal(directory, { preset: "full-access" });
    expect(first).toBeInstanceOf(Sandbox);
    await using client = new SandboxClient();
    expect((await client.getSandbox(first.id)).id).toBe(first.id);
    await using again = await Sandbox.connect(first.id);
    expect(await again.run("cat a")).toMatchObject({ exitCode: 0, stdout: "1\n" });
  }
  expect(await Sandbox.list().toArray()).toEqual([]);
  await using second = await Sandbox.fromLocal(directory, { preset: "full-access" });
  await second.run("echo 2 > b");
  expect(readdirSync(directory)).toEqual(["a"]);
  await second.apply();
  expect(readdirSync(directory)).toEqual(["a", "b"]);
});

test("the shared engine can be ended early, with what is in it, and begins anew", async () => {
  const lost = await Sandbox.fromLocal(directory);
  await closeEngine();
  await expect(lost.run("true")).rejects.toThrow(ConnectionError);
  expect(await Sandbox.list().toArray()).toEqual([]);
});

test("what an engine cannot open is told in the SDK's words", async () => {
  await using engine = await EmbeddedEngine.open();
  await expect(engine.openDirectory(join(directory, "nothing"))).rejects.toMatchObject({
    name: "FileNotFoundError",
    code: "FILE_NOT_FOUND",
  });
  await engine.close();
  await expect(engine.openDirectory(directory)).rejects.toMatchObject({ code: "CONNECTION_FAILED" });
});
