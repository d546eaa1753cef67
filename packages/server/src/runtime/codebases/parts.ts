import type { CodebaseDisk } from "../../isolation/jobs/codebase-disk.ts";
import type { AuditEntry } from "../audit/api.ts";
import { type Caller, maySee } from "../caller.ts";
import type { Log } from "../log.ts";
import type { CodebaseMetadata, CodebaseRecord } from "../store/store.ts";
import type { Changer } from "./changer.ts";
import { codebaseNotFound } from "./errors.ts";
import type { Heads } from "./heads.ts";
import { checkCodebaseId } from "./paths.ts";
import type { Quotas } from "./quotas.ts";
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
export function witness(
  parts: Pick<Parts, "record">,
  type: string,
  caller: Caller,
  codebase: Pick<CodebaseRecord, "id" | "ownerId">,
  data: Readonly<Record<string, unknown>>,
): void {
  const { id: codebaseId, ownerId } = codebase;
  parts.record({ type, ownerId, codebaseId, keyId: caller.keyId, data });
}
