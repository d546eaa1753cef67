import { openIsolation } from "@agentfense/server/isolation";
import { afterAll, test } from "vitest";
import { type DockerEngine, reasonAgainstDocker, startDockerEngine } from "./docker-engine.ts";

/** Hands the suite an isolation on an engine of this file's own; where none can be had, a skip that says why. */
export function withDocker(name: string, describeSuite: (open: () => ReturnType<typeof openIsolation>) => void): void {
  const reason = reasonAgainstDocker();
  if (reason !== undefined) {
    process.stdout.write(`skipped (docker): ${name}: ${reason}\n`);
    test.skip(`${name} in docker`, () => {});
    return;
  }
  let engine: Promise<DockerEngine> | undefined;
  afterAll(async () => (await engine)?.stop());
  describeSuite(async () => {
    engine ??= startDockerEngine();
    const { socketPath, image } = await engine;
    return await openIsolation({ runtimes: ["docker"], docker: { socketPath, image } });
  });
}
