import { lstat, readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Account } from "../backend/backend.ts";
import { IsolationError } from "../backend/isolation-error.ts";
import { accountFiles, type EtcFiles, readHostEtc } from "./etc.ts";

/** The programs a box shows: the host's own, or those of a root directory. */
export interface System {
  /** Shown read-only. */
  readonly binds: readonly { readonly source: string; readonly target: string }[];
  readonly links: readonly { readonly target: string; readonly path: string }[];
  readonly files: EtcFiles;
  /** The shells by their absolute paths inside; bash first where there is one. */
  readonly shells: readonly string[];
  /** Directories of the box's root that come from elsewhere and cannot be added to. */
  readonly fixed: readonly string[];
}

const PROGRAM_DIRECTORIES = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const SHELLS = ["bash", "sh", "dash", "zsh"];

/** The host's /usr, its neighbours as the host has them (links into it, or directories), and a small /etc. */
export async function hostSystem(): Promise<System> {
  const etc = await readHostEtc();
  const binds = [{ source: "/usr", target: "/usr" }];
  const links: { target: string; path: string }[] = [];
  for (const path of PROGRAM_DIRECTORIES) {
    const entry = await lstat(path).catch(() => undefined);
    if (entry?.isSymbolicLink()) links.push({ target: await readlink(path), path });
    else if (entry?.isDirectory()) binds.push({ source: path, target: path });
  }
  const shells = await findShells("/");
  return {
    binds: [...binds, ...etc.directories.map((path) => ({ source: path, target: path }))],
    links: [...links, ...etc.links],
    files: { ...accountFiles(shells[0] ?? "/bin/sh"), ...etc.files },
    shells,
    fixed: ["/usr"],
  };
}

/** These are the box's own whatever the root directory has there. */
const OWN = new Set(["proc", "sys", "dev", "tmp", "run", "home", "root", "mnt", "media", "boot", "lost+found"]);

/**
 * The content of a root directory, entry by entry below a root of our own: mount points can then be made where the
 * directory has none. Its /etc is used as it is; accounts are added when it has none.
 */
export async function rootDirectorySystem(root: string): Promise<System> {
  const binds: { source: string; target: string }[] = [];
  const links: { target: string; path: string }[] = [];
  const show = async (path: string): Promise<void> => {
    const entry = await lstat(join(root, path));
    if (entry.isSymbolicLink()) links.push({ target: await readlink(join(root, path)), path });
    else if (entry.isDirectory() || entry.isFile()) binds.push({ source: join(root, path), target: path });
  };
  const top = await list(root);
  for (const name of top) if (!OWN.has(name) && name !== "etc") await show(`/${name}`);

  const etc = top.includes("etc") ? await list(join(root, "etc")) : [];
  const shells = await findShells(root);
  const accounts = Object.entries(accountFiles(shells[0] ?? "/bin/sh"));
  const missing = accounts.filter(([path]) => !etc.includes(path.slice("/etc/".length)));
  if (missing.length === 0) await show("/etc");
  else for (const name of etc) await show(`/etc/${name}`);
  return { binds, links, files: Object.fromEntries(missing), shells, fixed: binds.map((bind) => bind.target) };
}

/** The same with another name for the box's user; a root directory's own accounts stay as they are. */
export function withAccount(system: System, account: Account): System {
  const named = Object.entries(accountFiles(system.shells[0] ?? "/bin/sh", account));
  const ours = named.filter(([path]) => Object.hasOwn(system.files, path));
  return { ...system, files: { ...system.files, ...Object.fromEntries(ours) } };
}

async function list(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (cause) {
    throw new IsolationError("INVALID_ARGUMENT", "the root directory cannot be read", { cause });
  }
}

async function findShells(root: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of SHELLS) {
    if (await exists(join(root, "bin", name))) found.push(`/bin/${name}`);
    else if (await exists(join(root, "usr/bin", name))) found.push(`/usr/bin/${name}`);
  }
  return found;
}

// lstat follows directories on the way but not the last link, which may be absolute and mean the box's own root.
function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

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
