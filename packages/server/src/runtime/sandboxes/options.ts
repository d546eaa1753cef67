import type { Isolation } from "../../isolation/isolation.ts";
import type { SandboxSpec } from "../../isolation/sandbox/api.ts";
import type { AuditLog } from "../audit/api.ts";
import type { CodebaseLayers, Codebases } from "../codebases/api.ts";
import type { Log } from "../log.ts";
import type { SandboxSecrets } from "../secrets/api.ts";
import type {
  NetworkName,
  ResourceRecord,
  RuntimeName,
  SandboxMetadata,
  SnapshotMetadata,
  SyncMode,
} from "../store/store.ts";
import type { DeltaWork } from "./delta-work.ts";
import type { NetworkCap } from "./network.ts";

const DAY_MS = 24 * 3_600_000;

/** What a sandbox gets when its creator does not say, and what nobody gets. */
export const SANDBOX_DEFAULTS = {
  /** Until a sandbox expires; 0 or less: never. */
  expirationMs: DAY_MS,
  maxExpirationMs: 365 * DAY_MS,
  /** Until a sandbox of which nothing is asked pauses by itself; 0: never. */
  idlePauseMs: 0,
  /** 0: no limit. */
  maxPerOwner: 10,
  /** Homes that outlive their sandboxes; 0: no limit. */
  maxHomesPerOwner: 10,
  /** 0: no limit. */
  maxSnapshotsPerOwner: 100,
  /** 0: no limit. */
  maxSessionsPerSandbox: 16,
  /** How often expired sandboxes are looked for, beside the timer for the next one. */
  cleanupIntervalMs: 5 * 60_000,
  sync: "on-exec" as SyncMode,
  /** Those that may be asked for. */
  networks: ["none"] as readonly NetworkName[],
  /** What filtered networks may reach at most; empty: whatever their lists say, at public addresses; absent: that, anywhere. */
  networkAllow: [] as NetworkCap,
  /** The same for docker sandboxes, and what one gets that asks for none. */
  docker: { networks: ["none"] as readonly NetworkName[], network: "none" as NetworkName },
  resources: {} as ResourceRecord,
  /** A sandbox without a limit of its own, and without a default, gets this one. */
  maxResources: {} as ResourceRecord,
};

export type SandboxDefaults = Readonly<typeof SANDBOX_DEFAULTS>;

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
  readonly store: SandboxMetadata & SnapshotMetadata;
  readonly codebases: Pick<Codebases, "get" | "getVersion" | "delete"> & CodebaseLayers;
  readonly isolation: Isolation;
  readonly deltas: DeltaWork;
  readonly secrets: SandboxSecrets;
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
  readonly allowedBy?: "operator" | "program" | "environment";
  /** Another runtime that the Docker engine knows, for every docker sandbox. */
  readonly ociRuntime?: string | undefined;
  /** What bwrap sandboxes of a codebase in this directory show beside it, and the variables that go with it; default: nothing. */
  readonly toolchains?: ((directory: string) => Promise<Required<Pick<SandboxSpec, "workspaces" | "env">>>) | undefined;
  readonly defaults?: Partial<SandboxDefaults>;
  readonly clock?: Clock;
  readonly observe?: SandboxObserver | undefined;
  readonly log?: Log;
}
