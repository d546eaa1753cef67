import type { ResourceLimits } from "../backend/limits.ts";
import type { LimitHost } from "../limits/limits.ts";

/** A bwrap's two, and the shell that waits for its command. */
export const SPARE_PROCESSES = 3;

/**
 * What counts besides the commands. In a control group: the nest, the two processes of a bwrap around a command, and a
 * spare. An rlimit counts the processes of one bwrap's user namespace, and of ours only its process 1 is there.
 */
const OWN_PROCESSES = {
  "cgroup-v1": 3 + SPARE_PROCESSES,
  "cgroup-v2": 3 + SPARE_PROCESSES,
  rlimits: 1,
} satisfies Record<LimitHost["kind"], number>;

/** What was asked for is meant for the commands. */
export function withOwnProcesses(limits: ResourceLimits, kind: LimitHost["kind"]): ResourceLimits {
  return limits.pids === undefined ? limits : { ...limits, pids: limits.pids + OWN_PROCESSES[kind] };
}
