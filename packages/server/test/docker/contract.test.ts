import { afterAll, test } from "vitest";
import { describeBackend } from "../../../../test/conformance/runtime/contract.suite.ts";
import { type DockerEngine, reasonAgainstDocker, startDockerEngine } from "../../../../test/support/docker-engine.ts";
import { openIsolation } from "../../src/index.ts";

let engine: Promise<DockerEngine> | undefined;

afterAll(async () => (await engine)?.stop(), 60_000);

const reason = reasonAgainstDocker();

if (reason === undefined) {
  describeBackend("docker", {
    open: async () => {
      engine ??= startDockerEngine();
      const { socketPath, image } = await engine;
      return await openIsolation({ runtimes: ["docker"], docker: { socketPath, image } });
    },
    spec: { runtime: "docker" },
  });
} else {
  test.skip(`the contract of backends, docker (skipped: ${reason})`, () => {});
}
