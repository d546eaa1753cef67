import { constants } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { findProgram } from "../../backend/find-program.ts";
import type { HostFacts } from "./facts.ts";

export async function readFuseDevice(): Promise<HostFacts["fuseDevice"]> {
  try {
    const device = await open("/dev/fuse", constants.O_RDWR);
    await device.close();
    return "usable";
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown";
    return code === "ENOENT" ? "absent" : { error: code };
  }
}

const SETUID = 0o4000;

export async function readFusermount(): Promise<HostFacts["fusermount"]> {
  const path = await findProgram("fusermount3");
  if (path === undefined) return undefined;
  const entry = await stat(path);
  return { path, setuid: entry.uid === 0 && (entry.mode & SETUID) !== 0 };
}

/** From the kernel's configuration, where the distribution leaves it to be read. */
export async function readPassthroughBuilt(kernelRelease: string): Promise<boolean | undefined> {
  const text =
    (await readText(`/boot/config-${kernelRelease}`)) ??
    (await readFile("/proc/config.gz").then(
      async (packed) => (await promisify(gunzip)(packed)).toString("latin1"),
      () => undefined,
    ));
  return text === undefined ? undefined : /^CONFIG_FUSE_PASSTHROUGH=y$/m.test(text);
}

export async function readSeccompActions(): Promise<readonly string[]> {
  return ((await readText("/proc/sys/kernel/seccomp/actions_avail")) ?? "").trim().split(" ").filter(Boolean);
}

/** A number the kernel shows in a file; undefined where it does not. */
export async function readNumber(path: string): Promise<number | undefined> {
  const text = await readText(path);
  return text === undefined ? undefined : Number(text);
}

async function readText(path: string): Promise<string | undefined> {
  return await readFile(path, "latin1").catch(() => undefined);
}
