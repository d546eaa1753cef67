import type { SQLInputValue } from "node:sqlite";
import type { SandboxMetadata, SandboxRecord, SandboxRecordStatus } from "../store.ts";
import { where } from "./codebases.ts";
import type { Database, Row } from "./database.ts";
import type { Immediate } from "./protocol.ts";

interface SandboxRow {
  readonly id: string;
  readonly owner_id: string;
  readonly codebase_id: string;
  readonly codebase_version: number;
  readonly rules: string;
  readonly status: SandboxRecordStatus;
  readonly status_reason: string;
  readonly labels: string;
  readonly runtime: SandboxRecord["runtime"];
  readonly image: string;
  readonly network: SandboxRecord["network"];
  readonly sync: SandboxRecord["sync"];
  readonly revocable: number;
  readonly home: string;
  readonly resources: string;
  readonly env: string;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly stopped_at: number | null;
  readonly expires_at: number | null;
  readonly idle_pause_ms: number;
  readonly last_process: number;
}

type Methods = "insertSandbox" | "sandbox" | "updateSandbox" | "deleteSandbox" | "listSandboxes" | "countSandboxes";

export function sandboxMethods(database: Database): Immediate<Pick<SandboxMetadata, Methods>> {
  const find = (id: string): SandboxRecord | undefined => {
    const row = database.get<SandboxRow>("SELECT * FROM sandboxes WHERE id = ?", id);
    return row && toRecord(row);
  };
  return {
    insertSandbox: (record, maxPerOwner) =>
      database.write(() => {
        const has = database.get<{ count: number }>(
          "SELECT count(*) AS count FROM sandboxes WHERE owner_id = ?",
          record.ownerId,
        );
        if (maxPerOwner > 0 && (has?.count ?? 0) >= maxPerOwner) return false;
        database.insert("sandboxes", { ...toRow(record) });
        return true;
      }),
    sandbox: find,
    updateSandbox: (id, changes) =>
      database.write(() => {
        const before = find(id);
        if (before === undefined) return undefined;
        const after = { ...before, ...changes };
        const row = toRow(after);
        database.run(
          `UPDATE sandboxes SET status = ?, status_reason = ?, rules = ?, started_at = ?, stopped_at = ?, expires_at = ?,
           last_process = ? WHERE id = ?`,
          row.status,
          row.status_reason,
          row.rules,
          row.started_at,
          row.stopped_at,
          row.expires_at,
          row.last_process,
          id,
        );
        return find(id);
      }),
    deleteSandbox(id) {
      database.run("DELETE FROM sandboxes WHERE id = ?", id);
    },
    listSandboxes(query) {
      const filters = listFilters(query);
      const values: Row = Object.assign({ limit: query.limit ?? -1 }, ...filters.map(([, value]) => value));
      const conditions = filters.map(([condition]) => condition);
      return database
        .select<SandboxRow>(`SELECT * FROM sandboxes ${where(conditions)} ORDER BY created_at, id LIMIT :limit`, values)
        .map(toRecord);
    },
    countSandboxes() {
      const counts: Record<SandboxRecordStatus, number> = { PENDING: 0, RUNNING: 0, PAUSED: 0, STOPPED: 0, ERROR: 0 };
      const rows = database.all<{ status: SandboxRecordStatus; count: number }>(
        "SELECT status, count(*) AS count FROM sandboxes GROUP BY status",
      );
      for (const { status, count } of rows) counts[status] = count;
      return counts;
    },
  };
}

type Filter = readonly [condition: string, values: Readonly<Record<string, SQLInputValue>>];

/** Every label that is asked for must be there; one parameter holds them all, whatever their number. */
const HAS_LABELS = `NOT EXISTS (
  SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS (
    SELECT 1 FROM json_each(sandboxes.labels) AS has WHERE has.key = wanted.key AND has.value = wanted.value))`;

function listFilters(query: Parameters<SandboxMetadata["listSandboxes"]>[0]): readonly Filter[] {
  const { ownerId, codebaseId, status, labels, expiredAtMs, after } = query;
  return [
    ...(ownerId === undefined ? [] : [["owner_id = :owner", { owner: ownerId }] as const]),
    ...(codebaseId === undefined ? [] : [["codebase_id = :codebase", { codebase: codebaseId }] as const]),
    ...(status === undefined ? [] : [["status = :status", { status }] as const]),
    ...(labels === undefined || Object.keys(labels).length === 0
      ? []
      : [[HAS_LABELS, { labels: JSON.stringify(labels) }] as const]),
    ...(expiredAtMs === undefined ? [] : [["expires_at <= :expired", { expired: expiredAtMs }] as const]),
    ...(after === undefined
      ? []
      : [["(created_at, id) > (:after_time, :after_id)", { after_time: after[0], after_id: after[1] }] as const]),
  ];
}

function toRow(record: SandboxRecord): SandboxRow {
  return {
    id: record.id,
    owner_id: record.ownerId,
    codebase_id: record.codebaseId,
    codebase_version: record.codebaseVersion,
    rules: JSON.stringify(record.rules),
    status: record.status,
    status_reason: record.statusReason,
    labels: JSON.stringify(record.labels),
    runtime: record.runtime,
    image: record.image,
    network: record.network,
    sync: record.sync,
    revocable: record.revocable ? 1 : 0,
    home: record.home,
    resources: JSON.stringify(record.resources),
    env: JSON.stringify(record.env),
    created_at: record.createdAtMs,
    started_at: record.startedAtMs ?? null,
    stopped_at: record.stoppedAtMs ?? null,
    expires_at: record.expiresAtMs ?? null,
    idle_pause_ms: record.idlePauseMs,
    last_process: record.lastProcessNumber,
  };
}

function toRecord(row: SandboxRow): SandboxRecord {
  return {
    id: row.id,
    ownerId: row.owner_id,
    codebaseId: row.codebase_id,
    codebaseVersion: row.codebase_version,
    rules: JSON.parse(row.rules) as SandboxRecord["rules"],
    status: row.status,
    statusReason: row.status_reason,
    labels: JSON.parse(row.labels) as SandboxRecord["labels"],
    runtime: row.runtime,
    image: row.image,
    network: row.network,
    sync: row.sync,
    revocable: row.revocable === 1,
    home: row.home,
    resources: JSON.parse(row.resources) as SandboxRecord["resources"],
    env: JSON.parse(row.env) as SandboxRecord["env"],
    idlePauseMs: row.idle_pause_ms,
    lastProcessNumber: row.last_process,
    createdAtMs: row.created_at,
    ...(row.started_at === null ? {} : { startedAtMs: row.started_at }),
    ...(row.stopped_at === null ? {} : { stoppedAtMs: row.stopped_at }),
    ...(row.expires_at === null ? {} : { expiresAtMs: row.expires_at }),
  };
}
