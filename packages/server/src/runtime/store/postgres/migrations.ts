import { GENESIS } from "../event-chain.ts";
import type { Database } from "./database.ts";

/**
 * The schema, as the steps that lead to it. Step n takes a database from version n to n + 1; a step that was released is never
 * changed again.
 *
 * The tables are those of SQLite, in a schema of their own. Texts are compared byte by byte, over UTF-8, as there, whatever the
 * database was made with; times are milliseconds since 1970.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE codebases (
    number          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              text COLLATE "C" NOT NULL UNIQUE,
    name            text COLLATE "C" NOT NULL,
    owner_id        text COLLATE "C" NOT NULL,
    size            bigint NOT NULL,
    file_count      bigint NOT NULL,
    directory_count bigint NOT NULL DEFAULT 0,
    kept_bytes      bigint NOT NULL DEFAULT 0,
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL,
    version         bigint NOT NULL
  );
  CREATE INDEX codebases_by_age ON codebases (created_at, id);
  CREATE INDEX codebases_by_owner ON codebases (owner_id, created_at, id);

  CREATE TABLE entries (
    codebase    bigint NOT NULL REFERENCES codebases (number) ON DELETE CASCADE,
    path        text COLLATE "C" NOT NULL,
    parent      text COLLATE "C" NOT NULL,
    kind        text NOT NULL,
    mode        bigint NOT NULL,
    size        bigint NOT NULL,
    sha256      text COLLATE "C" NOT NULL,
    target      text NOT NULL,
    modified_at bigint NOT NULL,
    version     bigint NOT NULL,
    PRIMARY KEY (codebase, path)
  );
  CREATE INDEX entries_by_parent ON entries (codebase, parent, path);
  CREATE INDEX entries_by_hash ON entries (codebase, sha256, path) WHERE sha256 <> '';

  CREATE TABLE versions (
    codebase      bigint NOT NULL REFERENCES codebases (number) ON DELETE CASCADE,
    version       bigint NOT NULL,
    origin        text NOT NULL,
    sandbox_id    text NOT NULL,
    message       text NOT NULL,
    created_at    bigint NOT NULL,
    files_changed bigint NOT NULL,
    size          bigint NOT NULL,
    file_count    bigint NOT NULL,
    conflicts     text NOT NULL,
    kept_bytes    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (codebase, version)
  );

  CREATE TABLE changes (
    codebase bigint NOT NULL REFERENCES codebases (number) ON DELETE CASCADE,
    version  bigint NOT NULL,
    path     text COLLATE "C" NOT NULL,
    before   text,
    after    text,
    kept_as  text NOT NULL,
    PRIMARY KEY (codebase, version, path)
  );
  CREATE INDEX changes_by_path ON changes (codebase, path, version);

  -- The change that is being carried out, as JSON, and the version that it makes.
  CREATE TABLE journals (
    codebase bigint PRIMARY KEY REFERENCES codebases (number) ON DELETE CASCADE,
    version  bigint NOT NULL,
    journal  text NOT NULL
  );

  -- The labels are there twice: as they are given back, and as JSON arrays [key, value], to be looked for.
  CREATE TABLE sandboxes (
    id               text COLLATE "C" PRIMARY KEY,
    owner_id         text COLLATE "C" NOT NULL,
    codebase_id      text COLLATE "C" NOT NULL,
    codebase_version bigint NOT NULL,
    rules            text NOT NULL,
    status           text NOT NULL,
    status_reason    text NOT NULL,
    labels           text NOT NULL,
    label_pairs      text[] NOT NULL,
    runtime          text NOT NULL,
    image            text NOT NULL,
    network          text NOT NULL,
    network_rules    text NOT NULL,
    secrets          text NOT NULL,
    sync             text NOT NULL,
    revocable        bigint NOT NULL,
    home             text NOT NULL,
    workspace_home   text NOT NULL,
    pause_at_expiry  bigint NOT NULL,
    resources        text NOT NULL,
    env              text NOT NULL,
    idle_pause_ms    bigint NOT NULL,
    last_process     bigint NOT NULL,
    created_at       bigint NOT NULL,
    started_at       bigint,
    stopped_at       bigint,
    expires_at       bigint
  );
  CREATE INDEX sandboxes_by_age ON sandboxes (created_at, id);
  CREATE INDEX sandboxes_by_owner ON sandboxes (owner_id, created_at, id);
  CREATE INDEX sandboxes_by_codebase ON sandboxes (codebase_id, created_at, id);
  CREATE INDEX sandboxes_by_status ON sandboxes (status, created_at, id);

  CREATE TABLE sessions (
    id           text COLLATE "C" PRIMARY KEY,
    sandbox_id   text COLLATE "C" NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    owner_id     text COLLATE "C" NOT NULL,
    status       text NOT NULL,
    shell        text NOT NULL,
    created_at   bigint NOT NULL,
    closed_at    bigint,
    close_reason text NOT NULL
  );
  CREATE INDEX sessions_by_sandbox ON sessions (sandbox_id, created_at, id);
  CREATE INDEX active_sessions ON sessions (id) WHERE status = 'ACTIVE';

  CREATE TABLE events (
    sequence    bigint PRIMARY KEY,
    time        bigint NOT NULL,
    type        text COLLATE "C" NOT NULL,
    level       text NOT NULL,
    owner_id    text COLLATE "C" NOT NULL,
    key_id      text NOT NULL,
    sandbox_id  text COLLATE "C" NOT NULL,
    codebase_id text COLLATE "C" NOT NULL,
    session_id  text NOT NULL,
    data        text NOT NULL,
    hash        text NOT NULL
  );
  CREATE INDEX events_by_owner ON events (owner_id, sequence);
  CREATE INDEX events_by_sandbox ON events (sandbox_id, sequence) WHERE sandbox_id <> '';
  CREATE INDEX events_by_codebase ON events (codebase_id, sequence) WHERE codebase_id <> '';
  CREATE INDEX events_by_type ON events (type, sequence);

  CREATE TABLE chain_ends (
    name     text PRIMARY KEY,
    sequence bigint NOT NULL,
    hash     text NOT NULL
  );
  INSERT INTO chain_ends VALUES
    ('anchor', ${GENESIS.sequence}, '${GENESIS.hash}'),
    ('head', ${GENESIS.sequence}, '${GENESIS.hash}');

  CREATE TABLE keys (
    id           text COLLATE "C" PRIMARY KEY,
    owner_id     text NOT NULL,
    role         text NOT NULL,
    name         text NOT NULL,
    secret_hash  text NOT NULL,
    created_at   bigint NOT NULL,
    revoked_at   bigint,
    last_used_at bigint
  );

  CREATE TABLE secrets (
    owner_id   text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    hosts      text NOT NULL,
    place      text NOT NULL,
    sealed     text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (owner_id, name)
  );

  -- Whose the database is (see lease.ts), in one row. The epoch is its key, so that who takes the lease over waits for all that
  -- hold the row FOR KEY SHARE, and who renews it does not.
  CREATE TABLE lease (
    epoch      bigint PRIMARY KEY,
    holder     text NOT NULL,
    place      text NOT NULL,
    expires_at timestamptz NOT NULL
  );
  INSERT INTO lease VALUES (0, '', '', '-infinity');

  -- A statement looks at the database as it was when it began, a function in it as it is then: so what is counted behind the
  -- lock is what others have inserted before.
  CREATE FUNCTION has_room(counted text, owner text, most bigint) RETURNS boolean
  LANGUAGE plpgsql VOLATILE SET search_path = agentfense AS $$
  DECLARE found bigint;
  BEGIN
    IF most = 0 THEN RETURN true; END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(counted || ' ' || owner, 4712));
    EXECUTE format('SELECT count(*) FROM %I WHERE owner_id = $1', counted) INTO found USING owner;
    RETURN found < most;
  END $$;

  CREATE FUNCTION refuse_the_fenced() RETURNS trigger
  LANGUAGE plpgsql SET search_path = agentfense AS $$
  DECLARE mine bigint := nullif(current_setting('agentfense.epoch', true), '')::bigint;
  BEGIN
    -- The command line makes and revokes keys beside a server.
    IF mine IS NULL AND TG_TABLE_NAME = 'keys' THEN RETURN NULL; END IF;
    PERFORM FROM lease WHERE epoch = mine FOR KEY SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the lease % on this database is not held any more', mine USING ERRCODE = 'AF001';
    END IF;
    RETURN NULL;
  END $$;
  ${fenced("codebases", "entries", "versions", "changes", "journals", "sandboxes", "sessions", "events", "chain_ends", "keys", "secrets")}
  `,
  // Their layers are on the disk (runtime/sandboxes/layers.ts).
  `
  CREATE TABLE snapshots (
    id               text COLLATE "C" PRIMARY KEY,
    owner_id         text COLLATE "C" NOT NULL,
    sandbox_id       text COLLATE "C" NOT NULL,
    codebase_id      text COLLATE "C" NOT NULL,
    codebase_version bigint NOT NULL,
    label            text NOT NULL,
    layer            text NOT NULL,
    settings         text NOT NULL,
    created_at       bigint NOT NULL
  );
  CREATE INDEX snapshots_by_owner ON snapshots (owner_id, created_at, id);
  ${fenced("snapshots")}
  `,
];

/** Nobody but the holder of the lease changes these. */
function fenced(...tables: readonly string[]): string {
  const triggers = tables.map(
    (table) =>
      `CREATE TRIGGER fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table}
         FOR EACH STATEMENT EXECUTE FUNCTION refuse_the_fenced();`,
  );
  return triggers.join("\n  ");
}

/** Two servers that start at once take the steps one after the other. */
const LOCK = 4_711_000_001;

/** Brings a database up to date, one transaction a step. It must have one connection, which holds the lock. */
export async function migrate(database: Database, steps: readonly string[] = MIGRATIONS): Promise<void> {
  await database.get("SELECT pg_advisory_lock($1::bigint)", [LOCK]);
  try {
    let at = await schemaVersion(database);
    if (at === undefined) {
      await refuseForeign(database);
      const exists = await database.get("SELECT FROM pg_namespace WHERE nspname = 'agentfense'");
      await database.script(`
        ${exists === undefined ? "CREATE SCHEMA agentfense;" : ""}
        CREATE TABLE agentfense.schema_version (version bigint NOT NULL);
        INSERT INTO agentfense.schema_version VALUES (0);
      `);
      at = 0;
    }
    if (at > steps.length) {
      throw new Error(
        `the database has schema ${at}, this version of AgentFense knows ${steps.length}: it was written by a newer one`,
      );
    }
    for (const [index, step] of steps.entries()) {
      if (index >= at) await database.script(`${step}; UPDATE schema_version SET version = ${index + 1}`);
    }
  } finally {
    await database.get("SELECT pg_advisory_unlock($1::bigint)", [LOCK]).catch(() => {}); // it ends with the connection
  }
}

/** Undefined: no AgentFense has used it. */
export async function schemaVersion(database: Database): Promise<number | undefined> {
  const found = await database.get<{ there: boolean }>(
    "SELECT to_regclass('agentfense.schema_version') IS NOT NULL AS there",
  );
  if (!found?.there) return undefined;
  return (await database.get<{ version: number }>("SELECT version FROM agentfense.schema_version"))?.version;
}

/** A schema of our name that has other tables is somebody else's, and stays as it is. */
async function refuseForeign(database: Database): Promise<void> {
  const foreign = await database.get(
    "SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = 'agentfense' LIMIT 1",
  );
  if (foreign !== undefined) throw new Error("the schema agentfense of the database is not one of AgentFense");
}
