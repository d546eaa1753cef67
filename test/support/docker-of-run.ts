import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { inject } from "vitest";
import { type DockerEngine, RunningEngine } from "./docker-engine.ts";
import type { EngineAnswer } from "./docker-setup.ts";

/**
 * The engine that the test files of a run share; it starts when the first of them asks. Each knows its own containers by
 * their names, and leaves none.
 */
export async function dockerOfRun(): Promise<DockerEngine> {
  const answer = JSON.parse(await text(connect(inject("dockerOfRun")))) as EngineAnswer;
  if ("failure" in answer) throw new Error(answer.failure);
  return new RunningEngine(answer.place);
}
