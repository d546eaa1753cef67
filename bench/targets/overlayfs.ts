import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../client.ts";
import { unmount } from "../mounts.ts";
import type { Ground, Target } from "./target.ts";

/** The overlay file system of the kernel. */
export async function overlayfs(ground: Ground): Promise<Target> {
  const { options, root } = await overlayDirectories(ground);
  const start = async () => {
    await run(["mount", "-t", "overlay", "overlay", "-o", options, root], { pinned: false });
  };
  const stop = () => unmount(root);
  return {
    name: "overlayfs",
    root,
    client: { pinned: ground.pinned },
    writable: true,
    start,
    async remount() {
      await stop();
      await start();
    },
    stop,
    connection: () => undefined,
  };
}

/** Upper, work and mount point directories; fuse-overlayfs takes the same options. */
export async function overlayDirectories(ground: Ground): Promise<{ options: string; root: string }> {
  const at = (name: string) => join(ground.directory, name);
  for (const name of ["upper", "work", "mount"]) await mkdir(at(name), { recursive: true });
  return { options: `lowerdir=${ground.tree},upperdir=${at("upper")},workdir=${at("work")}`, root: at("mount") };
}
