import { readdir, stat } from "node:fs/promises";

/**
 * Of the fresh /proc, what tells about the host rather than the box. Not more of it: every mask is a mount, which costs each
 * box a tenth of a millisecond. Left are numbers that a container shows as well (memory, load, kernel version), and
 * files that tell an ordinary user nothing (kallsyms without addresses).
 */
const FILES = [
  "cmdline",
  "diskstats",
  "interrupts",
  "kcore",
  "keys",
  "key-users",
  "kmsg",
  "latency_stats",
  "partitions",
  "sched_debug",
  "slabinfo",
  "sysrq-trigger",
  "timer_list",
  "timer_stats",
  "vmallocinfo",
];
/** A user id of its own has no keys but those the box made. */
const PER_USER = ["keys", "key-users"];
const DIRECTORIES = ["acpi", "asound", "bus", "driver", "fs", "ide", "irq", "scsi"];

export interface ProcMasks {
  readonly files: readonly string[];
  readonly directories: readonly string[];
}

/**
 * Those that exist here and that others than root may read: a box is never root, and every mask is a mount that each
 * box pays for. Empty directories hide nothing worth a mount.
 */
export async function findProcMasks(options: { ownUser: boolean; proc?: string }): Promise<ProcMasks> {
  const { ownUser, proc = "/proc" } = options;
  const files: string[] = [];
  for (const name of FILES.filter((file) => !(ownUser && PER_USER.includes(file)))) {
    const entry = await stat(`${proc}/${name}`).catch(() => undefined);
    if (entry?.isFile() && (entry.mode & 0o006) !== 0) files.push(`/proc/${name}`);
  }
  const directories: string[] = [];
  for (const name of DIRECTORIES) {
    const entries = await readdir(`${proc}/${name}`).catch(() => []);
    if (entries.length > 0) directories.push(`/proc/${name}`);
  }
  return { files, directories };
}
