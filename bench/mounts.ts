import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "./client.ts";

export interface MountEntry {
  readonly mountPoint: string;
  /** For a FUSE mount, the number of its connection. */
  readonly minor: number;
  readonly type: string;
}

/** The mounts of this process, oldest first. */
export function mountTable(): MountEntry[] {
  // 36 35 98:0 /root /mount/point options [optional fields] - type source options, see proc_pid_mountinfo(5)
  return readFileSync("/proc/self/mountinfo", "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const [head = "", tail = ""] = line.split(" - ");
      const fields = head.split(" ");
      return {
        mountPoint: unescapeOctal(fields[4] ?? ""),
        minor: Number(fields[2]?.split(":")[1]),
        type: tail.split(" ")[0] ?? "",
      };
    });
}

export function mountAt(mountPoint: string): MountEntry | undefined {
  return mountTable().findLast((entry) => entry.mountPoint === mountPoint);
}

/** Waits until something is mounted there. `gone` tells that it never will be, and why. */
export async function mounted(mountPoint: string, gone: () => string | undefined): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (mountAt(mountPoint) === undefined) {
    const reason = gone();
    if (reason !== undefined) throw new Error(`the daemon ended before it mounted: ${reason}`);
    if (Date.now() > deadline) throw new Error("nothing was mounted within 10 s");
    await sleep(5);
  }
}

/** Unmounts, waiting a little for a client that is just leaving; then, as a last resort, detaches. */
export async function unmount(mountPoint: string): Promise<void> {
  for (let attempt = 0; mountAt(mountPoint) !== undefined; attempt += 1) {
    const command = process.getuid?.() === 0 ? ["umount"] : ["fusermount3", "-u"];
    const lazily = attempt < 20 ? [] : [command.length === 1 ? "--lazy" : "-z"];
    const error = await run([...command, ...lazily, mountPoint], { pinned: false }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) continue;
    if (attempt > 20) throw error;
    await sleep(50);
  }
}

/** Unmounts everything at or below a directory, the youngest first. */
export async function unmountBelow(directory: string): Promise<void> {
  const below = mountTable().filter(({ mountPoint }) => `${mountPoint}/`.startsWith(`${directory}/`));
  for (const { mountPoint } of below.reverse()) await unmount(mountPoint);
}

function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
