import { inject } from "vitest";
import { type DockerEngine, RunningEngine } from "./docker-engine.ts";
import { placeAt } from "./of-run.ts";

/**
 * The engine that the test files of a run share; it starts when the first of them asks. Each knows its own containers by
 * their names, and leaves none.
 */
export async function dockerOfRun(): Promise<DockerEngine> {
  return new RunningEngine(await placeAt(inject("dockerOfRun")));
}
