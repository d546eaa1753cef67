import { cpus, loadavg, release, totalmem } from "node:os";
import { PYTHON, run } from "./client.ts";

/** What a reader must know to compare; nothing that names the machine or a place on it. */
export interface Machine {
  readonly kernel: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly fileSystem: string;
  readonly load: number;
  readonly versions: Readonly<Record<string, string>>;
}

export async function describeMachine(directory: string): Promise<Machine> {
  return {
    kernel: release(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    fileSystem: (await firstLine(["stat", "-f", "-c", "%T", directory])).replace("ext2/ext3", "ext4"),
    load: loadavg()[0] ?? 0,
    versions: {
      node: process.versions.node,
      "fuse-overlayfs": await version(["fuse-overlayfs", "--version"], /fuse-overlayfs: version (\S+)/),
      bindfs: await version(["bindfs", "--version"], /bindfs (\S+)/),
      git: await version(["git", "--version"], /git version (\S+)/),
      python: await version([PYTHON, "--version"], /Python (\S+)/),
    },
  };
}

async function firstLine(argv: readonly string[]): Promise<string> {
  return (await run(argv, { pinned: false })).split("\n")[0] ?? "";
}

async function version(argv: readonly string[], pattern: RegExp): Promise<string> {
  const text = await run(argv, { pinned: false }).catch(() => "");
  return pattern.exec(text)?.[1] ?? "absent";
}
