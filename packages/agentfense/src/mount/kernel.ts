import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";

/** Takes a mount out of the tree at once, whoever still uses it: for when a clean unmount does not come to an end. */
export async function detach(mountPoint: string): Promise<boolean> {
  for (const [command, ...args] of [
    ["fusermount3", "-u", "-z", "--", mountPoint],
    ["umount", "-l", "--", mountPoint],
  ] as const) {
    const child = spawn(command, args, { stdio: "ignore" });
    const exit = await Promise.race([once(child, "exit"), once(child, "error").then(() => [1])]);
    if (exit[0] === 0) return true;
  }
  return false;
}

/** Whether a FUSE file system is mounted exactly here (on top, as a lookup would meet it). */
export async function hasFuseMount(mountPoint: string): Promise<boolean> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const types = table
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      // proc(5): id parent major:minor root mount-point options optional-fields... "-" type source super-options
      const fields = line.split(" ");
      return { mountPoint: unescapeOctal(fields[4] ?? ""), type: fields[fields.indexOf("-", 6) + 1] ?? "" };
    })
    .filter((mount) => mount.mountPoint === mountPoint)
    .map(({ type }) => type);
  return types.at(-1)?.startsWith("fuse") ?? false;
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
