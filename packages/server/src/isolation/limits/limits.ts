import type { ResourceLimits, ResourceUsage } from "../backend/limits.ts";
import type { Freezer } from "../backend/pause-switch.ts";

/** How this host enforces limits on bwrap boxes. */
export interface LimitHost {
  readonly kind: "cgroup-v2" | "cgroup-v1" | "rlimits";
  /** What cannot be enforced here, each as a sentence for the operator. */
  readonly degradations: readonly string[];
  /** A group for one box; nobody is in it yet. */
  createGroup(id: string, limits: ResourceLimits): Promise<LimitGroup>;
  /** Kills what still lives in groups of dead instances and removes the groups. */
  removeOrphans(deadInstances: readonly string[]): Promise<void>;
  /** Removes the instance's own parent group. */
  close(): Promise<void>;
}

/** The control group of one box, or the rlimits that stand in for it. */
export interface LimitGroup {
  /**
   * Files in which a process of one thread writes `0` to enter the group, in this order; empty without control groups. It does so
   * before it makes a control group namespace, whose root is then the group: the box sees no other.
   */
  readonly entrances: readonly string[];
  /** Limits each process takes on inside the box before it runs the command; empty with control groups. */
  readonly rlimits: readonly { readonly resource: "data" | "nproc"; readonly value: number }[];
  /**
   * What was asked for is meant for the commands alone: lets processes of ours, so many besides bwrap and the keeper, be in the
   * group with them.
   */
  makeRoom(ownProcesses: number): void;
  /** Holds all members still; absent without control groups. Of version 1 a frozen process dies only when it is thawed. */
  readonly freezer?: (Freezer & { readonly frozenCanDie: boolean }) | undefined;
  /** How often the kernel killed for memory so far. */
  oomKills(): Promise<number>;
  usage(): Promise<ResourceUsage>;
  /** Kills everything in the group until nothing is left; a no-op without control groups. */
  kill(): Promise<void>;
  /** Kills and removes the group. Idempotent. */
  remove(): Promise<void>;
}
