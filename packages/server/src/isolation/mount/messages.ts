import type { Rule } from "@agentfense/permission";
import type { FileSystemEvent } from "../filesystem/denials.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { QuotaLimits } from "../filesystem/quota.ts";

// What the host thread and an engine thread say to each other. Descriptors are numbers: both are one process.

export interface EngineMountSpec {
  readonly lowers: readonly string[];
  readonly delta: string | undefined;
  readonly rules: readonly Rule[];
  readonly quota: QuotaLimits | undefined;
  readonly owner: Owner | undefined;
  readonly passthrough: boolean;
  readonly xattrs: boolean;
  readonly revocable: boolean;
  readonly privileged: boolean;
}

export type ToEngine =
  /** Open the layers and compile the rules; nothing is mounted yet. */
  | { readonly kind: "prepare"; readonly mount: number; readonly spec: EngineMountSpec }
  /** Serve the prepared workspace on this /dev/fuse descriptor. */
  | { readonly kind: "serve"; readonly mount: number; readonly fd: number }
  | { readonly kind: "rules"; readonly mount: number; readonly call: number; readonly rules: readonly Rule[] }
  /** Stop serving and close everything; the host closes the descriptor afterwards. */
  | { readonly kind: "drop"; readonly mount: number }
  | { readonly kind: "stop" };

export type FromEngine =
  | { readonly kind: "started"; readonly doorbell: number }
  /** `lock` is the descriptor that locks the delta, or -1; the host closes it should the engine die. */
  | { readonly kind: "prepared"; readonly mount: number; readonly lock: number }
  | { readonly kind: "failed"; readonly mount: number; readonly error: Error }
  | { readonly kind: "ready"; readonly mount: number; readonly passthrough: boolean }
  | { readonly kind: "closed"; readonly mount: number }
  | { readonly kind: "rules-set"; readonly mount: number; readonly call: number; readonly stale: StaleReport }
  | { readonly kind: "rules-refused"; readonly mount: number; readonly call: number; readonly error: Error }
  | { readonly kind: "stale"; readonly mount: number; readonly stale: StaleReport }
  | { readonly kind: "event"; readonly mount: number; readonly event: FileSystemEvent }
  | { readonly kind: "log"; readonly mount: number | undefined; readonly message: string };

/** What the kernel must be told to forget. */
export interface StaleReport {
  readonly inodes: readonly number[];
  readonly entries: readonly { readonly parent: number; readonly name: string }[];
}
