// The sample "resource limits" of the owner's document, as it stands there: in Docker, with that image.

import { EmbeddedEngine, Sandbox } from "agentfense";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DockerEngine, reasonAgainstDocker, startDockerEngine } from "../support/docker-engine.ts";
import { type Place, setStage } from "../support/scenes.ts";
import { TestServer } from "../support/server.ts";

/** There is no registry: the test's own image has this name here. */
const IMAGE = "python:3.11-slim";
const reason = reasonAgainstDocker();
if (reason !== undefined) process.stdout.write(`skipped (docker sample): ${reason}\n`);

describe.skipIf(reason !== undefined)("core concepts in Docker", () => {
  const stage = setStage("mock");
  let engine: DockerEngine;
  beforeAll(async () => {
    engine = await startDockerEngine();
    await engine.docker("tag", engine.image, IMAGE);
  });
  afterAll(async () => await engine?.[Symbol.asyncDispose]());

  async function limited(place: Place): Promise<void> {
    await using sandbox = await Sandbox.fromLocal(stage.project({ "heavy_task.py": "print(sum(range(10)))\n" }), {
      ...place,
      runtime: "docker",
      image: IMAGE,
      resources: { memoryBytes: 512 * 1024 * 1024, cpuQuota: 50_000, pidsLimit: 100 },
    });
    expect(sandbox.info).toMatchObject({ runtime: "docker", image: IMAGE });
    expect(await sandbox.run("python3 heavy_task.py")).toMatchObject({ exitCode: 0, stdout: "45\n" });
  }

  test("resources are limited, embedded", async () => {
    await using embedded = await EmbeddedEngine.open({
      runtimes: ["bwrap", "docker"],
      docker: { socketPath: engine.socketPath },
    });
    await limited({ engine: embedded });
  });

  test("resources are limited, remote", async () => {
    const docker = { host: `unix://${engine.socketPath}` };
    await using server = await TestServer.start({
      settings: { runtime: { type: "bwrap", types: ["bwrap", "docker"], docker } },
    });
    await limited({ endpoint: server.grpc });
  });
});
