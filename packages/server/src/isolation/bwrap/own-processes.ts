import type { ResourceLimits } from "../backend/limits.ts";
import type { LimitHost } from "../limits/limits.ts";

/**
 * What counts besides a command. In a control group: the nest, and the two processes of the bwrap around it. (A spare waits
 * only while no command runs, and becomes the next one with its bwrap.) An rlimit counts the processes of one bwrap's user
 * namespace, and of ours only its process 1 is there.
 */
const OWN_PROCESSES = { "cgroup-v1": 3, "cgroup-v2": 3, rlimits: 1 } satisfies Record<LimitHost["kind"], number>;

/** What was asked for is meant for the commands. Each further one at the same time has its bwrap's two processes in it. */
export function withOwnProcesses(limits: ResourceLimits, kind: LimitHost["kind"]): ResourceLimits {
  return limits.pids === undefined ? limits : { ...limits, pids: limits.pids + OWN_PROCESSES[kind] };
}
