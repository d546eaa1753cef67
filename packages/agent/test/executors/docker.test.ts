import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { afterAll, expect, test } from "vitest";
import { reasonAgainstDocker } from "../../../../test/support/docker-engine.ts";
import { dockerOfRun } from "../../../../test/support/docker-of-run.ts";
import { DockerExecutor, type DockerExecutorOptions } from "../../src/executors/docker/docker-executor.ts";
import { AgentWorkspace } from "../../src/workspace/agent-workspace.ts";
import { describeExecutor } from "./contract.ts";

const reason = reasonAgainstDocker();
if (reason !== undefined) process.stdout.write(`skipped (DockerExecutor): ${reason}\n`);
const NO_NODE = "the image of the tests has no Node";

if (reason === undefined) describeDocker();
else test.skip("DockerExecutor", () => {});

function describeDocker(): void {
  const base = mkdtempSync(join(tmpdir(), "agentfense-docker-executor-"));
  let opened: Promise<EmbeddedEngine> | undefined;
  afterAll(async () => {
    await (await opened)?.close();
    rmSync(base, { recursive: true });
  });

  const start = async (): Promise<EmbeddedEngine> => {
    const { image, socketPath } = await dockerOfRun();
    return await EmbeddedEngine.open({ docker: { image, socketPath } });
  };
  const limits = { memoryBytes: 128 * 1024 ** 2, pids: 64 };
  const open = async (options: Partial<DockerExecutorOptions> = {}): Promise<DockerExecutor> => {
    opened ??= start();
    const directory = mkdtempSync(join(base, "workspace-"));
    return new DockerExecutor({
      workspace: new AgentWorkspace("session", { directory }),
      sandboxes: Sandbox,
      engine: await opened,
      resources: { memoryBytes: limits.memoryBytes, pidsLimit: limits.pids },
      ...options,
    });
  };

  describeExecutor("DockerExecutor", {
    type: "docker",
    languages: ["python", "javascript", "typescript", "bash", "command"],
    open,
    limits,
    skip: {
      "javascript prints": NO_NODE,
      "typescript prints": NO_NODE,
      "an uncaught exception of javascript has a stack": NO_NODE,
      "javascript may be a module or not": NO_NODE,
    },
  });

  test("an engine with nothing said has bwrap by default, and docker and the host's network for those that ask", async () => {
    await using _executor = await open();
    const engine = await opened!;
    const directory = mkdtempSync(join(base, "project-"));
    await using usual = await Sandbox.fromLocal(directory, { engine });
    await using docker = await Sandbox.fromLocal(directory, { engine, runtime: "docker", network: "host" });
    expect([usual.info.runtime, docker.info.runtime, docker.info.network]).toEqual(["bwrap", "docker", "host"]);
    expect((await docker.run("ls /sys/class/net")).stdout).toContain("docker0");
  });

  test("each execution has a container of its own, and only the workspace goes from one to the next", async () => {
    await using executor = await open();
    const task = { language: "bash", risk: { level: "HIGH", detected: [] }, securityMode: "STRICT" } as const;
    await executor.execute({ ...task, code: "echo x > /tmp/left; echo x > left; sleep 600 &" });
    const next = await executor.execute({ ...task, code: "ls /tmp/left left; ps -A -o args= | grep -c '[s]leep 600'" });
    expect(next.stdout).toBe("left\n0\n");
  });

  test("an interpreter that the image does not have is told", async () => {
    await using executor = await open();
    const task = { risk: { level: "HIGH", detected: [] }, securityMode: "STRICT" } as const;
    const attempt = executor.execute({ ...task, language: "javascript", code: "1" });
    await expect(attempt).rejects.toMatchObject({
      name: "ExecutorError",
      code: "UNAVAILABLE",
      message: "there is no node in the sandbox",
    });
    const own = await executor.execute({ ...task, language: "bash", code: "exit 127" });
    expect(own).toMatchObject({ exitCode: 127 });
  });

  test("an image that is not there is told", async () => {
    await using executor = await open({ image: "no-such-image:latest" });
    await expect(executor.check()).rejects.toMatchObject({ name: "ExecutorError", code: "UNAVAILABLE" });
  });
}
