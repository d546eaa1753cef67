import { inject } from "vitest";
import { placeAt } from "./of-run.ts";
import { RunningPostgres } from "./postgres.ts";

/** The PostgreSQL that the test files of a run share; it starts when the first of them asks. Each makes databases of its own. */
export async function postgresOfRun(): Promise<RunningPostgres> {
  return new RunningPostgres(await placeAt(inject("postgresOfRun")));
}
