import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./client.ts";
import type { Seed } from "./seed.ts";
import { Engine } from "./targets/engine.ts";

/** Memory that a server process holds for its mounts, in bytes. */
export interface IdleMemory {
  readonly mounts: number;
  readonly processBytes: number;
  /** Per mount that nobody has looked at. */
  readonly idleBytes: number;
  /** Per mount in which one find has seen 500 files. */
  readonly usedBytes: number;
}

export async function measureIdleMemory(
  seed: Seed,
  directory: string,
  mounts: number,
  signal: AbortSignal,
): Promise<IdleMemory> {
  await using engine = new Engine({ pinned: false });
  const mountOne = async (name: string) => {
    const mountPoint = join(directory, name, "mount");
    await mkdir(mountPoint, { recursive: true });
    await engine.mount({
      mountPoint,
      lowers: [seed.directory],
      delta: join(directory, name, "delta"),
      rules: [{ pattern: "**/*", permission: "write" }],
    });
    return mountPoint;
  };
  const look = (mountPoint: string) => run(["find", join(mountPoint, "repo/src/mod00")], { pinned: false }, signal);

  // A few first, so that code and buffers common to all mounts are not counted for the mounts.
  for (let i = 0; i < 5; i += 1) await look(await mountOne(`first-${i}`));
  const processBytes = await engine.residentBytes();
  const mountPoints: string[] = [];
  for (let i = 0; i < mounts; i += 1) {
    signal.throwIfAborted();
    mountPoints.push(await mountOne(String(i)));
  }
  const idle = await engine.residentBytes();
  for (const mountPoint of mountPoints) await look(mountPoint);
  const used = await engine.residentBytes();
  return {
    mounts,
    processBytes,
    idleBytes: (idle - processBytes) / mounts,
    usedBytes: (used - processBytes) / mounts,
  };
}
