import type { Identity, Placement } from "../client.ts";

/** A file system under measurement. */
export interface Target {
  readonly name: string;
  /** The directory that shows the tree, for clients. */
  readonly root: string;
  /** As whom and where the clients of this target run. */
  readonly client: Placement;
  /** False: only the workloads that read are for this target. */
  readonly writable: boolean;
  start(): Promise<void>;
  /** Afterwards the kernel holds no entry, attribute or page of the mount; what lies beneath stays in memory. */
  remount(): Promise<void>;
  /** Ends what start() began; does nothing when there is nothing to end. */
  stop(): Promise<void>;
  /** Number of the FUSE connection; undefined when there is none. */
  connection(): number | undefined;
}

/** Where a target stands. */
export interface Ground {
  /** The tree to show; never written to. */
  readonly tree: string;
  /** The same tree again, for a target that has no delta. The targets that give the same name share one copy. */
  copyOfTree(name: string): Promise<string>;
  /** A directory for the target's own use: delta, mount point. */
  readonly directory: string;
  readonly pinned: boolean;
  readonly user: Identity | undefined;
  /** A new process for each mount of ours, instead of a warm engine that mounts again. */
  readonly freshProcess: boolean;
}
