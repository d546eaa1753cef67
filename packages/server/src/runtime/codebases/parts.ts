import type { CodebaseDisk } from "../../isolation/jobs/codebase-disk.ts";
import type { Jobs } from "../../isolation/jobs/thread.ts";
import type { AuditEntry, AuditLog } from "../audit/api.ts";
import { type Caller, maySee } from "../caller.ts";
import type { Log } from "../log.ts";
import { fromMachine, RuntimeError } from "../runtime-error.ts";
import type { CodebaseMetadata, CodebaseRecord, Retention } from "../store/store.ts";
import type { Changer } from "./changer.ts";
import type { Heads } from "./heads.ts";
import { checkCodebaseId } from "./paths.ts";
import type { CodebaseLimits, Quotas } from "./quotas.ts";
import type { Snapshots } from "./snapshots.ts";

/** What the parts of the codebase store share. */
export interface Parts {
  readonly store: CodebaseMetadata;
  readonly disk: CodebaseDisk;
  readonly heads: Heads;
  readonly changer: Changer;
  readonly snapshots: Snapshots;
  readonly quotas: Quotas;
  readonly clock: { now(): number };
  readonly log: Log;
  readonly record: (entry: AuditEntry) => void;
}

/** The codebase, if the caller may know of it. */
export async function visibleCodebase({ store }: Parts, caller: Caller, id: string): Promise<CodebaseRecord> {
  const record = await store.codebase(checkCodebaseId(id));
  if (record === undefined || !maySee(caller, record.ownerId)) throw codebaseNotFound();
  return record;
}

/** An entry of the audit log about a codebase. */
export function recordEvent(
  parts: Pick<Parts, "record">,
  type: string,
  caller: Caller,
  codebase: Pick<CodebaseRecord, "id" | "ownerId">,
  data: Readonly<Record<string, unknown>>,
): void {
  const { id: codebaseId, ownerId } = codebase;
  parts.record({ type, ownerId, codebaseId, keyId: caller.keyId, data });
}

export interface CodebasesOptions {
  readonly store: CodebaseMetadata;
  /** Made (0700) when it is not there. One server at a time. */
  readonly directory: string;
  readonly jobs: Jobs;
  /** Default: none. */
  readonly limits?: Partial<CodebaseLimits>;
  /** The retention of each codebase; default: DEFAULT_RETENTION. */
  readonly retention?: Partial<Retention>;
  readonly audit?: Pick<AuditLog, "record">;
  readonly clock?: { now(): number };
  readonly log?: Log;
}

export const DEFAULT_RETENTION: Retention = { versions: 1000, bytes: 10 * 1024 ** 3 };

/** Any failure as one that a caller may see. */
export function toRuntimeError(error: unknown): RuntimeError {
  if (error instanceof RuntimeError) return error;
  return fromMachine(error, { full: "the server's disk is full", otherwise: "the codebase store failed" });
}

export function codebaseNotFound(): RuntimeError {
  return new RuntimeError("CODEBASE_NOT_FOUND", "codebase not found");
}
