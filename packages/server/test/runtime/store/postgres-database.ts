import { randomUUID } from "node:crypto";
import { beforeAll } from "vitest";
import type { RunningPostgres } from "../../../../../test/support/postgres.ts";
import { postgresOfRun } from "../../../../../test/support/postgres-of-run.ts";
import type { LeaseOptions } from "../../../src/runtime/store/postgres/lease.ts";
import { openLeasedStore } from "../../../src/runtime/store/postgres/open-postgres-store.ts";
import { parsePostgresUrl } from "../../../src/runtime/store/postgres/place.ts";

/** Long enough that no test meets its end by being slow. */
export const LONG_LEASE_MS = 600_000;

type Opening = Partial<Pick<LeaseOptions, "leaseMs" | "place" | "here" | "log">>;

/** A database for the tests of a file, in the PostgreSQL of the run. */
export class TestDatabase {
  readonly postgres: RunningPostgres;
  readonly name: string;
  /** Of the directories that belong to it. */
  readonly directories = randomUUID();

  constructor(postgres: RunningPostgres, name: string) {
    this.postgres = postgres;
    this.name = name;
  }

  get place() {
    return parsePostgresUrl(this.postgres.url(this.name));
  }

  /** `here`: another for each machine. */
  async open({ leaseMs = LONG_LEASE_MS, place = this.directories, here = "here", log = () => {} }: Opening = {}) {
    return await openLeasedStore({ place: this.place, leaseMs, log, claim: async () => ({ place, here }) });
  }

  /** As the superuser, past every trigger. */
  async sql(text: string): Promise<string> {
    return await this.postgres.sql(`SET session_replication_role = replica; ${text}`, this.name);
  }

  /** As it was when it was made, without its lease. */
  async empty(): Promise<void> {
    const kept = ["schema_version", "lease", "chain_ends"].map((table) => `'${table}'`);
    await this.sql(`DO $$ DECLARE one text; BEGIN
      FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'agentfense' AND tablename NOT IN (${kept}) LOOP
        EXECUTE format('TRUNCATE agentfense.%I CASCADE', one);
      END LOOP;
      UPDATE agentfense.chain_ends SET sequence = 0, hash = repeat('0', 64);
    END $$`);
  }
}

/** The same for all tests of the file. */
export function databaseOfFile(): () => TestDatabase {
  let database: TestDatabase;
  beforeAll(async () => {
    const postgres = await postgresOfRun();
    database = new TestDatabase(postgres, await postgres.createDatabase());
    await (await database.open()).store[Symbol.asyncDispose]();
  });
  return () => database;
}
