import type { Isolation } from "../../isolation/isolation.ts";
import type { SandboxSpec } from "../../isolation/sandbox/api.ts";
import type { AuditLog } from "../audit/api.ts";
import type { CodebaseLayers, Codebases } from "../codebases/api.ts";
import type { Log } from "../log.ts";
import type { NetworkName, ResourceRecord, RuntimeName, SandboxMetadata, SyncMode } from "../store/store.ts";
import type { DeltaWork } from "./delta-work.ts";

/** What a sandbox gets when its creator does not say, and what nobody gets. */
export interface SandboxDefaults {
  /** Until a sandbox expires; 0 or less: never. */
  readonly expirationMs: number;
  readonly maxExpirationMs: number;
  /** Until a sandbox of which nothing is asked pauses by itself; 0: never. */
  readonly idlePauseMs: number;
  /** 0: no limit. */
  readonly maxPerOwner: number;
  /** Homes that outlive their sandboxes; 0: no limit. */
  readonly maxHomesPerOwner: number;
  /** 0: no limit. */
  readonly maxSessionsPerSandbox: number;
  /** How often expired sandboxes are looked for, beside the timer for the next one. */
  readonly cleanupIntervalMs: number;
  readonly sync: SyncMode;
  /** Those that may be asked for. */
  readonly networks: readonly NetworkName[];
  /** The same for docker sandboxes, and what one gets that asks for none. */
  readonly docker: { readonly networks: readonly NetworkName[]; readonly network: NetworkName };
  readonly resources: ResourceRecord;
  /** A sandbox without a limit of its own, and without a default, gets this one. */
  readonly maxResources: ResourceRecord;
}

const DAY_MS = 24 * 3_600_000;

export const SANDBOX_DEFAULTS: SandboxDefaults = {
  expirationMs: DAY_MS,
  maxExpirationMs: 365 * DAY_MS,
  idlePauseMs: 0,
  maxPerOwner: 10,
  maxHomesPerOwner: 10,
  maxSessionsPerSandbox: 16,
  cleanupIntervalMs: 5 * 60_000,
  sync: "on-exec",
  networks: ["none"],
  docker: { networks: ["none"], network: "none" },
  resources: {},
  maxResources: {},
};

export type ExecOutcomeName = "exited" | "timed_out" | "cancelled" | "failed";
export type SyncResultName = "written" | "nothing" | "failed";

/** Told of what happens, for the metrics. */
export interface SandboxObserver {
  exec?(durationMs: number, outcome: ExecOutcomeName): void;
  sync?(result: SyncResultName, counts: { readonly conflicts: number; readonly refused: number }): void;
  start?(durationMs: number, ok: boolean): void;
}

/** Milliseconds since 1970. */
export type Clock = () => number;

export interface SandboxesOptions {
  readonly store: SandboxMetadata;
  readonly codebases: Pick<Codebases, "get" | "getVersion" | "delete"> & CodebaseLayers;
  readonly isolation: Isolation;
  readonly deltas: DeltaWork;
  readonly audit: AuditLog;
  /** One directory for each sandbox's changes is made in it. */
  readonly deltaDirectory: string;
  /** Where homes that owners name are kept; absent: the homes that sandboxes name are directories of the host. */
  readonly homeDirectory?: string | undefined;
  /** Those that this server can run; the first is the default. */
  readonly runtimes: readonly [RuntimeName, ...RuntimeName[]];
  /** Taken for a requested runtime that is not there; absent: such a request is refused. */
  readonly fallbackRuntime?: RuntimeName | undefined;
  /** Who said which runtimes and networks there may be, for hints; default: an operator, in the server's configuration. */
  readonly allowedBy?: "operator" | "program";
  /** Another runtime that the Docker engine knows, for every docker sandbox. */
  readonly ociRuntime?: string | undefined;
  /** What bwrap sandboxes of a codebase in this directory show beside it, and the variables that go with it; default: nothing. */
  readonly toolchains?: ((directory: string) => Promise<Required<Pick<SandboxSpec, "workspaces" | "env">>>) | undefined;
  readonly defaults?: Partial<SandboxDefaults>;
  readonly clock?: Clock;
  readonly observe?: SandboxObserver | undefined;
  readonly log?: Log;
}
