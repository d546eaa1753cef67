import type { ResourceLimits, ResourceUsage } from "../backend/backend.ts";
import { invalid } from "../backend/isolation-error.ts";
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

interface Range {
  readonly least: number;
  readonly most: number;
  readonly unit: string;
}

// The kernel's own bounds where it has some; below 4 MiB of memory no program starts, it only dies.
const RANGES = {
  memoryBytes: { least: 4 * 1024 * 1024, most: Number.MAX_SAFE_INTEGER, unit: "bytes" },
  cpuQuota: { least: 1000, most: 1_000_000_000, unit: "microseconds in each 100 ms" },
  cpuShares: { least: 2, most: 262_144, unit: "shares" },
  pids: { least: 1, most: 4_194_304, unit: "processes" },
} satisfies Record<keyof ResourceLimits, Range>;

/** Refuses limits that no kernel could mean: fractions, negatives, NaN, out of range. Absent is: not limited. */
export function validateLimits(limits: ResourceLimits): void {
  for (const name of Object.keys(RANGES) as (keyof ResourceLimits)[]) {
    const value = limits[name];
    if (value === undefined) continue;
    const { least, most, unit } = RANGES[name];
    if (Number.isInteger(value) && value >= least && value <= most) continue;
    throw invalid(`${name} cannot be ${value}`, `a whole number of ${unit} from ${least} to ${most}`);
  }
}

// One path component that is neither hidden nor an option, and no name the kernel keeps for its own files (those have a dot).
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$/;

/** Names become directories: anything that could be another path is refused here, whoever checked it before. */
export function validateName(kind: "instance" | "group", name: string): void {
  if (NAME.test(name)) return;
  const hint = "letters, digits, _ and -, at most 128";
  throw invalid(`not a name for a control group (${kind}): ${JSON.stringify(name)}`, hint);
}
