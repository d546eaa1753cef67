import type { TestProject } from "vitest/node";
import { offer } from "./of-run.ts";
import { startPostgres } from "./postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The socket at which the run says where its PostgreSQL is. */
    postgresOfRun: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { socketPath, end } = await offer(async () => {
    const postgres = await startPostgres();
    return { place: postgres.place, stop: () => postgres[Symbol.asyncDispose]() };
  });
  project.provide("postgresOfRun", socketPath);
  return end;
}
