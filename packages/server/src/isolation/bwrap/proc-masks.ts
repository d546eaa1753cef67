import { readdir, stat } from "node:fs/promises";

/** Of the fresh /proc, what tells about the host rather than the box. */
const FILES = [
  "cmdline",
  "config.gz",
  "diskstats",
  "interrupts",
  "kallsyms",
  "kcore",
  "key-users",
  "keys",
  "kmsg",
  "latency_stats",
  "mdstat",
  "modules",
  "partitions",
  "sched_debug",
  "schedstat",
  "slabinfo",
  "swaps",
  "sysrq-trigger",
  "timer_list",
  "timer_stats",
  "vmallocinfo",
];
const DIRECTORIES = ["acpi", "asound", "bus", "driver", "fs", "ide", "irq", "scsi"];

export interface ProcMasks {
  readonly files: readonly string[];
  readonly directories: readonly string[];
}

/**
 * Those that exist here and that others than root may read: a box is never root, and every mask is a mount that each
 * command pays for. Empty directories hide nothing worth a mount.
 */
export async function findProcMasks(proc = "/proc"): Promise<ProcMasks> {
  const files: string[] = [];
  for (const name of FILES) {
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
