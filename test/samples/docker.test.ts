// The sample "resource limits" of the owner's document, as it stands there: in Docker, with that image.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { beforeAll, describe, expect, test } from "vitest";
import { type DockerEngine, reasonAgainstDocker } from "../support/docker-engine.ts";
import { dockerOfRun } from "../support/docker-of-run.ts";
import { type Place, setStage } from "../support/scenes.ts";
import { TestServer } from "../support/server.ts";

/** There is no registry: the test's own image has this name here. */
const IMAGE = "python:3.11-slim";
const REPOSITORY = join(import.meta.dirname, "../..");
const reason = reasonAgainstDocker();
if (reason !== undefined) process.stdout.write(`skipped (docker sample): ${reason}\n`);

describe.skipIf(reason !== undefined)("core concepts in Docker", () => {
  const stage = setStage("mock");
  let engine: DockerEngine;
  beforeAll(async () => {
    engine = await dockerOfRun();
    // The image that has this name elsewhere calls its Python by both names.
    const link = ["ln", "-s", "python3", "/usr/bin/python"];
    await engine.docker("run", "--network", "none", "--name", "with-python", engine.image, ...link);
    await engine.docker("commit", "with-python", IMAGE);
    await engine.docker("rm", "with-python");
  });

  async function startServer(): Promise<TestServer> {
    const docker = { host: `unix://${engine.socketPath}` };
    return await TestServer.start({ settings: { runtime: { type: "bwrap", types: ["bwrap", "docker"], docker } } });
  }

  async function limited(place: Place): Promise<void> {
    await using sandbox = await Sandbox.fromLocal(stage.project({ "heavy_task.py": "print(sum(range(10)))\n" }), {
      ...place,
      runtime: "docker",
      image: IMAGE,
      resources: { memoryBytes: 512 * 1024 * 1024, cpuQuota: 50_000, pidsLimit: 100 },
    });
    expect(sandbox.info).toMatchObject({ runtime: "docker", image: IMAGE });
    expect(await sandbox.run("python heavy_task.py")).toMatchObject({ exitCode: 0, stdout: "45\n" });
  }

  test("resources are limited, embedded", async () => {
    await using embedded = await EmbeddedEngine.open({
      runtimes: ["bwrap", "docker"],
      docker: { socketPath: engine.socketPath },
    });
    await limited({ engine: embedded });
  });

  test("resources are limited, remote", async () => {
    await using server = await startServer();
    await limited({ endpoint: server.grpc });
  });

  test("resources are limited, in Python: the block itself", async () => {
    await using server = await startServer();
    const { stdout } = await promisify(execFile)(
      join(REPOSITORY, ".cache/python-sdk/bin/python"),
      ["-m", "pytest", "tests/samples/test_documents.py::test_sample[001-3]"],
      { cwd: join(REPOSITORY, "python"), env: { ...process.env, AGENTFENSE_SAMPLES_ENDPOINT: server.grpc } },
    );
    expect(stdout).toMatch(/^=+ 1 passed in .* =+$/m);
  });
});
