import type {
  CodebaseRecord,
  EntryRecord,
  EventRecord,
  KeyRecord,
  SandboxRecord,
  SecretRecord,
  SessionRecord,
  SnapshotRecord,
  VersionRecord,
} from "./store.ts";

// Which column has which member of a record. The tables are the same in every database: what a database has no type for is
// text or a number in all of them.

export type Cell = string | number | null;
export type Row = Readonly<Record<string, Cell>>;

/** A column whose value is another in the record: what the database has of it, and back. */
interface Column {
  readonly name: string;
  write(value: unknown): Cell;
  read(value: unknown): unknown;
}

export type Columns<R> = { readonly [Member in keyof R]-?: string | Column };

function json(name: string): Column {
  return { name, write: (value) => JSON.stringify(value), read: (value) => JSON.parse(value as string) };
}

function flag(name: string): Column {
  return { name, write: (value) => (value ? 1 : 0), read: (value) => value === 1 };
}

/** May be absent from the record, and is NULL then. */
function optional(name: string): Column {
  return { name, write: (value) => (value ?? null) as Cell, read: (value) => value ?? undefined };
}

/** Rows of one table as records. */
export class Records<R extends object> {
  /** "id AS \"id\", owner_id AS \"ownerId\"": for a SELECT, or what a statement returns. */
  readonly selected: string;
  readonly #columns: readonly (readonly [member: string, column: string | Column])[];
  readonly #translated: readonly (readonly [member: string, column: Column])[];

  constructor(columns: Columns<R>) {
    this.#columns = Object.entries<string | Column>(columns);
    this.#translated = this.#columns.flatMap(([member, column]) =>
      typeof column === "string" ? [] : [[member, column]],
    );
    this.selected = this.#columns.map(([member, column]) => `${nameOf(column)} AS "${member}"`).join(", ");
  }

  /** The columns of the members that are there. */
  row(record: Partial<R>): Row {
    const known = this.#columns.filter(([member]) => member in record);
    const written = known.map(([member, column]) => {
      const value = record[member as keyof R];
      return [nameOf(column), typeof column === "string" ? value : column.write(value)];
    });
    return Object.fromEntries(written) as Row;
  }

  /** Of what was `selected`, in place. */
  read(rows: Record<string, unknown>[]): R[] {
    for (const row of rows) {
      for (const [member, { read }] of this.#translated) {
        const value = read(row[member]);
        if (value === undefined) delete row[member];
        else row[member] = value;
      }
    }
    return rows as R[];
  }
}

function nameOf(column: string | Column): string {
  return typeof column === "string" ? column : column.name;
}

export const CODEBASE_COLUMNS: Columns<CodebaseRecord> = {
  id: "id",
  name: "name",
  ownerId: "owner_id",
  size: "size",
  fileCount: "file_count",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
  version: "version",
};

export const ENTRY_COLUMNS: Columns<EntryRecord> = {
  path: "path",
  kind: "kind",
  mode: "mode",
  size: "size",
  sha256: "sha256",
  target: "target",
  modifiedAtMs: "modified_at",
  version: "version",
};

export const VERSION_COLUMNS: Columns<Omit<VersionRecord, "codebaseId">> = {
  version: "version",
  origin: "origin",
  sandboxId: "sandbox_id",
  message: "message",
  createdAtMs: "created_at",
  filesChanged: "files_changed",
  size: "size",
  fileCount: "file_count",
  conflicts: json("conflicts"),
};

export const SANDBOX_COLUMNS: Columns<SandboxRecord> = {
  id: "id",
  ownerId: "owner_id",
  codebaseId: "codebase_id",
  codebaseVersion: "codebase_version",
  rules: json("rules"),
  status: "status",
  statusReason: "status_reason",
  labels: json("labels"),
  runtime: "runtime",
  image: "image",
  network: "network",
  networkRules: json("network_rules"),
  secrets: json("secrets"),
  sync: "sync",
  revocable: flag("revocable"),
  home: "home",
  workspaceHome: "workspace_home",
  pauseAtExpiry: flag("pause_at_expiry"),
  resources: json("resources"),
  env: json("env"),
  idlePauseMs: "idle_pause_ms",
  lastProcessNumber: "last_process",
  createdAtMs: "created_at",
  startedAtMs: optional("started_at"),
  stoppedAtMs: optional("stopped_at"),
  expiresAtMs: optional("expires_at"),
};

export const SESSION_COLUMNS: Columns<SessionRecord> = {
  id: "id",
  sandboxId: "sandbox_id",
  ownerId: "owner_id",
  status: "status",
  shell: "shell",
  createdAtMs: "created_at",
  closedAtMs: optional("closed_at"),
  closeReason: "close_reason",
};

export const EVENT_COLUMNS: Columns<EventRecord> = {
  sequence: "sequence",
  timeMs: "time",
  type: "type",
  level: "level",
  ownerId: "owner_id",
  keyId: "key_id",
  sandboxId: "sandbox_id",
  codebaseId: "codebase_id",
  sessionId: "session_id",
  data: json("data"),
  hash: "hash",
};

export const KEY_COLUMNS: Columns<KeyRecord> = {
  id: "id",
  ownerId: "owner_id",
  role: "role",
  name: "name",
  secretHash: "secret_hash",
  createdAtMs: "created_at",
  revokedAtMs: optional("revoked_at"),
  lastUsedAtMs: optional("last_used_at"),
};

export const SNAPSHOT_COLUMNS: Columns<SnapshotRecord> = {
  id: "id",
  ownerId: "owner_id",
  sandboxId: "sandbox_id",
  codebaseId: "codebase_id",
  codebaseVersion: "codebase_version",
  label: "label",
  layer: "layer",
  settings: json("settings"),
  createdAtMs: "created_at",
};

export const SECRET_COLUMNS: Columns<SecretRecord> = {
  ownerId: "owner_id",
  name: "name",
  hosts: json("hosts"),
  place: "place",
  sealed: "sealed",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
};
