import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type OwnDockerEngine, startDockerEngine } from "./docker-engine.ts";

// Runs in vitest's own process, which lives as long as the run.

/** What the socket says to a test file that connects. */
export type EngineAnswer = { readonly place: string } | { readonly failure: string };

declare module "vitest" {
  interface ProvidedContext {
    /** The socket at which the run says where its Docker engine is. */
    dockerOfRun: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let engine: Promise<OwnDockerEngine> | undefined;
  const answer = async (): Promise<EngineAnswer> => {
    try {
      engine ??= startDockerEngine();
      return { place: (await engine).place };
    } catch (error) {
      return { failure: String(error) };
    }
  };
  const directory = await mkdtemp(join(tmpdir(), "agentfense-run-"));
  const socketPath = join(directory, "socket");
  const server = createServer(async (connection) => {
    // A test file that ends before its answer comes is no failure of the run.
    connection.on("error", () => {});
    connection.end(JSON.stringify(await answer()));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  project.provide("dockerOfRun", socketPath);
  return async () => {
    server.close();
    await rm(directory, { recursive: true });
    await (await engine?.catch(() => undefined))?.stop();
  };
}
