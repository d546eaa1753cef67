import type { TestProject } from "vitest/node";
import { startDockerEngine } from "./docker-engine.ts";
import { offer } from "./of-run.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The socket at which the run says where its Docker engine is. */
    dockerOfRun: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { socketPath, end } = await offer(startDockerEngine);
  project.provide("dockerOfRun", socketPath);
  return end;
}
