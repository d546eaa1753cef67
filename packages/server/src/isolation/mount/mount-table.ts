import { readFile, realpath, statfs, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { syscalls, unmountFuse } from "@agentfense/fuse";

export const MOUNT_NAME = "agentfense";
const MOUNT_TYPE = `fuse.${MOUNT_NAME}`;

interface MountEntry {
  readonly mountPoint: string;
  readonly type: string;
}

/** The mounts of this process' namespace, in mount order; read without touching any of them. */
async function readMountTable(): Promise<MountEntry[]> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  return table
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [fields = "", rest = ""] = line.split(" - ");
      return { mountPoint: unescapeOctal(fields.split(" ")[4] ?? ""), type: rest.split(" ")[0] ?? "" };
    });
}

// The kernel writes blanks, tabs, line feeds and backslashes as octal.
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

async function isOurMount(mountPoint: string): Promise<boolean> {
  return (await readMountTable()).some((entry) => entry.mountPoint === mountPoint && entry.type === MOUNT_TYPE);
}

/** An absolute path without symlinks whose last component may be a dead mount, which realpath cannot look at. */
export async function mountPointPath(path: string): Promise<string> {
  const absolute = resolve(path);
  if (absolute === "/") return absolute;
  return join(await realpath(dirname(absolute)), absolute.slice(dirname(absolute).length).replace(/^\//, ""));
}

/**
 * Detaches mounts that a killed process left behind; nothing else is ever unmounted. True if there was one.
 */
export async function cleanStaleMount(mountPoint: string): Promise<boolean> {
  const path = await mountPointPath(mountPoint);
  let cleaned = false;
  for (let i = 0; i < 16 && (await isDeadMount(path)); i++) {
    await unmountFuse(path, { privileged: process.geteuid?.() === 0 });
    cleaned = true;
  }
  return cleaned;
}

async function isDeadMount(path: string): Promise<boolean> {
  if (!(await isOurMount(path))) return false;
  try {
    // Attributes of a dead mount's root may still be in the kernel's cache; this is asked of the server every time.
    await statfs(path);
    return false;
  } catch (error) {
    // A server that is just dying takes questions and answers none: they end with ECONNABORTED when its last descriptor goes.
    return ["ENOTCONN", "ECONNABORTED"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

/**
 * Lets the kernel read ahead a megabyte at a time, eight times its default; needs root and is only a matter of speed. The mount is
 * not asked: a server that waits for an answer of its own when it is killed never ends.
 */
export async function raiseReadahead(mountPoint: string): Promise<void> {
  const [mount, around] = [new syscalls.Stat(), new syscalls.Stat()];
  if (syscalls.statKnown(mountPoint, mount) < 0 || syscalls.statKnown(dirname(mountPoint), around) < 0) return;
  const { devMajor, devMinor } = mount;
  if (devMajor === around.devMajor && devMinor === around.devMinor) return; // unmounted meanwhile: this would be the host's disk
  try {
    await writeFile(`/sys/class/bdi/${devMajor}:${devMinor}/read_ahead_kb`, "1024");
  } catch {
    // /sys may be read-only, as in containers: reads are then split smaller.
  }
}
