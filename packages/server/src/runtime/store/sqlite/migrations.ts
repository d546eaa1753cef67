import type { DatabaseSync } from "node:sqlite";
import { GENESIS } from "../event-chain.ts";

/**
 * The schema, as the steps that lead to it. Step n takes a database from `user_version` n to n + 1; a step that was released
 * is never changed again.
 *
 * Times are milliseconds since 1970. Text is compared byte by byte (BINARY, over UTF-8). Codebases have a number of their
 * own because every entry and every change repeats it.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE codebases (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    owner_id   TEXT NOT NULL,
    size       INTEGER NOT NULL,
    file_count INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX codebases_by_age ON codebases (created_at, id);
  CREATE INDEX codebases_by_owner ON codebases (owner_id, created_at, id);

  -- The manifest of each codebase's head. \`parent\` is the directory of \`path\`, "" at the root.
  CREATE TABLE entries (
    codebase    INTEGER NOT NULL REFERENCES codebases (number) ON DELETE CASCADE,
    path        TEXT NOT NULL,
    parent      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    mode        INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    sha256      TEXT NOT NULL,
    target      TEXT NOT NULL,
    modified_at INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    PRIMARY KEY (codebase, path)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX entries_by_parent ON entries (codebase, parent, path);
  CREATE INDEX entries_by_hash ON entries (codebase, sha256, path) WHERE sha256 <> '';

  CREATE TABLE versions (
    codebase      INTEGER NOT NULL REFERENCES codebases (number) ON DELETE CASCADE,
    version       INTEGER NOT NULL,
    origin        TEXT NOT NULL,
    sandbox_id    TEXT NOT NULL,
    message       TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    files_changed INTEGER NOT NULL,
    size          INTEGER NOT NULL,
    file_count    INTEGER NOT NULL,
    conflicts     TEXT NOT NULL,
    PRIMARY KEY (codebase, version)
  ) STRICT, WITHOUT ROWID;

  -- \`before\` and \`after\` are JSON arrays: kind, mode, size, sha256, target, modified_at, version.
  CREATE TABLE changes (
    codebase INTEGER NOT NULL REFERENCES codebases (number) ON DELETE CASCADE,
    version  INTEGER NOT NULL,
    path     TEXT NOT NULL,
    before   TEXT,
    after    TEXT,
    kept_as  TEXT NOT NULL,
    PRIMARY KEY (codebase, version, path)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX changes_by_path ON changes (codebase, path, version);

  -- The change that is being carried out, as JSON.
  CREATE TABLE journals (
    codebase INTEGER PRIMARY KEY REFERENCES codebases (number) ON DELETE CASCADE,
    journal  TEXT NOT NULL
  ) STRICT;

  CREATE TABLE sandboxes (
    id               TEXT PRIMARY KEY,
    owner_id         TEXT NOT NULL,
    codebase_id      TEXT NOT NULL,
    codebase_version INTEGER NOT NULL,
    rules            TEXT NOT NULL,
    status           TEXT NOT NULL,
    status_reason    TEXT NOT NULL,
    labels           TEXT NOT NULL,
    runtime          TEXT NOT NULL,
    image            TEXT NOT NULL,
    network          TEXT NOT NULL,
    sync             TEXT NOT NULL,
    revocable        INTEGER NOT NULL,
    resources        TEXT NOT NULL,
    env              TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    stopped_at       INTEGER,
    expires_at       INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sandboxes_by_age ON sandboxes (created_at, id);
  CREATE INDEX sandboxes_by_owner ON sandboxes (owner_id, created_at, id);
  CREATE INDEX sandboxes_by_codebase ON sandboxes (codebase_id, created_at, id);
  CREATE INDEX sandboxes_by_status ON sandboxes (status, created_at, id);
  CREATE INDEX sandboxes_by_expiry ON sandboxes (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    sandbox_id   TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    owner_id     TEXT NOT NULL,
    status       TEXT NOT NULL,
    shell        TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    closed_at    INTEGER,
    close_reason TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_sandbox ON sessions (sandbox_id, created_at, id);
  CREATE INDEX active_sessions ON sessions (id) WHERE status = 'ACTIVE';

  CREATE TABLE events (
    sequence    INTEGER PRIMARY KEY,
    time        INTEGER NOT NULL,
    type        TEXT NOT NULL,
    level       TEXT NOT NULL,
    owner_id    TEXT NOT NULL,
    key_id      TEXT NOT NULL,
    sandbox_id  TEXT NOT NULL,
    codebase_id TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    data        TEXT NOT NULL,
    hash        TEXT NOT NULL
  ) STRICT;
  -- With the time, so that one that is asked for is looked for in the index alone.
  CREATE INDEX events_by_owner ON events (owner_id, sequence, time);
  CREATE INDEX events_by_sandbox ON events (sandbox_id, sequence, time) WHERE sandbox_id <> '';
  CREATE INDEX events_by_codebase ON events (codebase_id, sequence, time) WHERE codebase_id <> '';
  CREATE INDEX events_by_type ON events (type, sequence, time);

  -- The two ends of the chain of events: 'anchor' and 'head'.
  CREATE TABLE chain_ends (
    name     TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    hash     TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO chain_ends VALUES
    ('anchor', ${GENESIS.sequence}, '${GENESIS.hash}'),
    ('head', ${GENESIS.sequence}, '${GENESIS.hash}');

  CREATE TABLE keys (
    id           TEXT PRIMARY KEY,
    owner_id     TEXT NOT NULL,
    role         TEXT NOT NULL,
    name         TEXT NOT NULL,
    secret_hash  TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    revoked_at   INTEGER,
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  // `versions.kept_bytes` is what a version keeps of what it replaced (see retention.ts), `codebases.kept_bytes` the sum
  // of these.
  `
  ALTER TABLE codebases ADD COLUMN directory_count INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE codebases ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE versions ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE versions SET kept_bytes = (
    SELECT coalesce(sum(512 + iif(
      changes.kept_as = '' OR versions.origin = 'rename', 0, (json_extract(changes.before, '$[2]') + 4095) / 4096 * 4096
    )), 0)
    FROM changes
    WHERE changes.codebase = versions.codebase AND changes.version = versions.version AND changes.before IS NOT NULL
  );
  UPDATE codebases SET
    kept_bytes = (SELECT coalesce(sum(kept_bytes), 0) FROM versions WHERE codebase = codebases.number),
    directory_count = (SELECT count(*) FROM entries WHERE codebase = codebases.number AND kind = 'directory');
  `,
  "ALTER TABLE sandboxes ADD COLUMN idle_pause_ms INTEGER NOT NULL DEFAULT 0",
  "ALTER TABLE sandboxes ADD COLUMN home TEXT NOT NULL DEFAULT ''",
  "ALTER TABLE sandboxes ADD COLUMN last_process INTEGER NOT NULL DEFAULT 0",
  "ALTER TABLE sandboxes ADD COLUMN network_rules TEXT NOT NULL DEFAULT '[]'",
  // Values are sealed before they come here (secrets/sealing.ts).
  `
  ALTER TABLE sandboxes ADD COLUMN secrets TEXT NOT NULL DEFAULT '[]';
  CREATE TABLE secrets (
    owner_id   TEXT NOT NULL,
    name       TEXT NOT NULL,
    hosts      TEXT NOT NULL,
    place      TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (owner_id, name)
  ) STRICT, WITHOUT ROWID;
  `,
  "ALTER TABLE sandboxes ADD COLUMN workspace_home TEXT NOT NULL DEFAULT ''",
  "ALTER TABLE sandboxes ADD COLUMN pause_at_expiry INTEGER NOT NULL DEFAULT 0",
  // Their layers are on the disk (runtime/sandboxes/layers.ts).
  `
  CREATE TABLE snapshots (
    id               TEXT PRIMARY KEY,
    owner_id         TEXT NOT NULL,
    sandbox_id       TEXT NOT NULL,
    codebase_id      TEXT NOT NULL,
    codebase_version INTEGER NOT NULL,
    label            TEXT NOT NULL,
    layer            TEXT NOT NULL,
    settings         TEXT NOT NULL,
    created_at       INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX snapshots_by_owner ON snapshots (owner_id, created_at, id);
  `,
];

/** Some that every version of the schema has. */
const FIRST_TABLES = ["codebases", "entries", "journals", "sandboxes", "chain_ends", "keys"];

/** Brings a database up to date, one transaction a step. Two processes may do this at the same time. */
export function migrate(connection: DatabaseSync, steps: readonly string[] = MIGRATIONS): void {
  while (takeStep(connection, steps));
}

function takeStep(connection: DatabaseSync, steps: readonly string[]): boolean {
  connection.exec("BEGIN IMMEDIATE");
  try {
    const at = schemaVersion(connection);
    if (at > steps.length) {
      throw new Error(
        `the database has schema ${at}, this version of AgentFense knows ${steps.length}: it was written by a newer one`,
      );
    }
    const step = steps[at];
    if (step !== undefined) connection.exec(`${step}; PRAGMA user_version = ${at + 1}`);
    connection.exec("COMMIT");
    return step !== undefined;
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** Whatever has tables and not these is somebody else's, and stays as it is. */
export function refuseForeign(connection: DatabaseSync): void {
  const tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const names = new Set(tables.map(({ name }) => name));
  if (names.size === 0 || FIRST_TABLES.every((name) => names.has(name))) return;
  throw new Error("the file is not a database of AgentFense");
}

function schemaVersion(connection: DatabaseSync): number {
  return Number(connection.prepare("PRAGMA user_version").get()?.user_version ?? 0);
}
