import type { MessagePort } from "node:worker_threads";
import type { Rule } from "@agentfense/permission";
import type { DiscardReport } from "../changes/discard.ts";
import type { FileSystemEvent } from "../filesystem/denials.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { QuotaLimits } from "../filesystem/quota.ts";
import type { StaleReport } from "../filesystem/refresh.ts";
import type { SettledEntry } from "../filesystem/settlement.ts";

// What the host thread and an engine thread say to each other. Descriptors are numbers: both are one process.

/** What an engine thread is born with. */
export interface EngineData {
  readonly port: MessagePort;
  /** Of its EngineCounters. */
  readonly counters: SharedArrayBuffer;
  /** Of the server's DescriptorBudget. */
  readonly budget: SharedArrayBuffer;
  /** Descriptors that this engine may keep for directories. */
  readonly openDirectories: number;
}

export interface EngineMountSpec {
  readonly lowers: readonly string[];
  readonly delta: string | undefined;
  readonly rules: readonly Rule[];
  readonly quota: QuotaLimits | undefined;
  /** Another mount of the same engine, asked for before, whose quota this one uses too. */
  readonly sharesQuotaOf: number | undefined;
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
  /** Answered by `answer` or `refusal` with the same number. */
  | { readonly kind: "call"; readonly mount: number; readonly call: number; readonly request: EngineRequest }
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
  | { readonly kind: "answer"; readonly mount: number; readonly call: number; readonly answer: EngineAnswer }
  | {
      readonly kind: "refusal";
      readonly mount: number;
      readonly call: number;
      readonly error: Error;
      readonly code?: string;
    }
  | { readonly kind: "stale"; readonly mount: number; readonly stale: StaleReport }
  | { readonly kind: "event"; readonly mount: number; readonly event: FileSystemEvent }
  | { readonly kind: "log"; readonly mount: number | undefined; readonly message: string };

/** What can be asked of a mounted workspace. */
export type EngineRequest =
  | { readonly kind: "rules"; readonly rules: readonly Rule[] }
  /** These paths of the codebase were changed. */
  | { readonly kind: "codebase"; readonly paths: readonly string[] }
  /** Others may have changed any. */
  | { readonly kind: "lookAgain" }
  | { readonly kind: "settle"; readonly entries: readonly SettledEntry[] }
  | { readonly kind: "discard"; readonly paths: readonly string[] | undefined };

export interface EngineAnswer {
  readonly stale: StaleReport;
  /** Changed paths of the codebase that the delta has versions of its own of. */
  readonly shadowed?: readonly string[];
  /** Paths that did not settle. */
  readonly stayed?: readonly string[];
  readonly discarded?: DiscardReport;
}
