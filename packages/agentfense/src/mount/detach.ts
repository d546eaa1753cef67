import { spawn } from "node:child_process";
import { once } from "node:events";

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
