import type { Jobs } from "../../isolation/jobs/thread.ts";
import type { AuditLog } from "../audit/api.ts";
import type { Log } from "../log.ts";
import type { CodebaseMetadata, Retention } from "../store/store.ts";
import type { CodebaseLimits } from "./quotas.ts";

export interface CodebasesOptions {
  readonly store: CodebaseMetadata;
  /** Made (0700) when it is not there. One server at a time. */
  readonly directory: string;
  readonly jobs: Jobs;
  /** Default: none. */
  readonly limits?: Partial<CodebaseLimits>;
  /** Of each codebase; default: DEFAULT_RETENTION. */
  readonly retention?: Partial<Retention>;
  readonly audit?: Pick<AuditLog, "record">;
  readonly clock?: { now(): number };
  readonly log?: Log;
}

export const DEFAULT_RETENTION: Retention = { versions: 1000, bytes: 10 * 1024 ** 3 };
