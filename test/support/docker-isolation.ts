import { openIsolation } from "@agentfense/server/isolation";
import { test } from "vitest";
import { reasonAgainstDocker } from "./docker-engine.ts";
import { dockerOfRun } from "./docker-of-run.ts";

/** Hands the suite an isolation on the run's engine; where none can be had, a skip that says why. */
export function withDocker(name: string, describeSuite: (open: () => ReturnType<typeof openIsolation>) => void): void {
  const reason = reasonAgainstDocker();
  if (reason !== undefined) {
    process.stdout.write(`skipped (docker): ${name}: ${reason}\n`);
    test.skip(`${name} in docker`, () => {});
    return;
  }
  describeSuite(async () => {
    const { socketPath, image } = await dockerOfRun();
    return await openIsolation({ runtimes: ["docker"], docker: { socketPath, image } });
  });
}
