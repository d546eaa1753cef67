import type { ResourceLimits } from "../backend/backend.ts";
import type { LimitGroup } from "./limits.ts";
import type { Controller } from "./settings.ts";

/**
 * Limits of single processes in place of controllers that are missing. RLIMIT_DATA counts private writable memory, so
 * that, unlike RLIMIT_AS, it leaves room for what is reserved and never touched (node, Go, Java reserve gigabytes).
 * RLIMIT_NPROC, set inside the box's own user namespace, counts the processes of that namespace only.
 */
export function standIns(missing: readonly Controller[], limits: ResourceLimits): LimitGroup["rlimits"] {
  return [
    ...(missing.includes("memory") && limits.memoryBytes !== undefined
      ? [{ resource: "data" as const, value: limits.memoryBytes - memoryForFiles(limits.memoryBytes) }]
      : []),
    ...(missing.includes("pids") && limits.pids !== undefined
      ? [{ resource: "nproc" as const, value: limits.pids }]
      : []),
  ];
}

/** The part of a memory limit that files in memory may fill, where nobody counts them together with the processes. */
export function memoryForFiles(memoryBytes: number): number {
  return Math.floor(memoryBytes / 4);
}

const LOSSES: Partial<Record<Controller, string>> = {
  memory:
    "Memory is limited for each process by itself, not for a sandbox as a whole, and running out of it is not recognised as such. " +
    "A quarter of the limit is for files in /tmp and /dev/shm of a sandbox, the rest for each of its processes; memory " +
    "that processes share without a file is refused. Programs that reserve memory ahead need a larger limit: node about 900 MiB, Java 700.",
  pids: "Processes are limited by RLIMIT_NPROC, which kernels before 5.14 count for the whole user.",
  cpu: "CPU quota and CPU shares are not enforced.",
};

const SIGNALLED_PAUSE =
  "A sandbox is paused by SIGSTOP, not by the kernel's freezer: its programs can notice, and one that was made for it can go on.";

/** What is not enforced without these controllers, or without any control group, and what the operator can do about it. */
export function degradationsWithout(
  missing: readonly Controller[],
  { hasGroups, remedy }: { readonly hasGroups: boolean; readonly remedy: string },
): string[] {
  const losses = [
    ...missing.flatMap((controller) => LOSSES[controller] ?? []),
    ...(hasGroups ? [] : [SIGNALLED_PAUSE]),
  ];
  return losses.length === 0 ? [] : [...losses, remedy];
}
