import { lstat, readlink } from "node:fs/promises";
import { findProgram, PROGRAM_PATH, type Program, SYSTEM_DIRECTORIES } from "./programs.ts";

/** Where the workspace is in the box, as in every sandbox. */
const INSIDE = "/workspace";

/** bwrap reads the system-call filter from one, and writes to the other how the program ended. */
export const BoxDescriptor = { filter: 3, status: 4 } as const;

const UID_INSIDE = "1000";

/** Descriptors that were left open in this process by whoever started it would be the code's as well. */
const CLOSE_INHERITED =
  "for fd in /proc/self/fd/*; do fd=$" + '{fd##*/}; ((fd > 4 && fd != 255)) && exec {fd}>&-; done; exec "$@"';

/**
 * The command line that runs a command in a box. It has the workspace, which is all that can be written to, the system's
 * programs and libraries, and a few devices: no network, no /proc, no /tmp, no other process, no capability. Its user
 * is the caller under another number, so that the caller owns what the code writes.
 */
export async function boxed(
  command: readonly string[],
  around: { readonly directory: string; readonly programs: readonly Program[] },
): Promise<readonly [string, ...string[]]> {
  const hint = "no code is run without a box; install one: apt install bubblewrap bash";
  const [bash, bwrap, system] = await Promise.all([
    findProgram("bash", hint),
    findProgram("bwrap", hint),
    systemMounts(),
  ]);
  const shown = around.programs.flatMap((program) => program.shown);
  return [
    ...([bash, "--norc", "--noprofile", "-c", CLOSE_INHERITED, "bash", bwrap] as const),
    ...["--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"],
    ...["--uid", UID_INSIDE, "--gid", UID_INSIDE, "--hostname", "sandbox"],
    ...["--seccomp", String(BoxDescriptor.filter), "--json-status-fd", String(BoxDescriptor.status)],
    ...["--clearenv", ...Object.entries(environment(INSIDE)).flatMap(([name, value]) => ["--setenv", name, value])],
    ...system,
    ...["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"],
    ...shown.flatMap(({ source, target }) => ["--ro-bind", source, target]),
    ...["--dev", "/dev", "--remount-ro", "/dev"],
    ...["--bind", around.directory, INSIDE],
    ...["--remount-ro", "/", "--chdir", INSIDE, "--"],
    ...command,
  ];
}

/** What code finds in its environment: nothing of ours. */
export function environment(home: string): Readonly<Record<string, string>> {
  return { PATH: PROGRAM_PATH, HOME: home, LANG: "C.UTF-8" };
}

/** Links as the machine has them, directories read-only. */
async function systemMounts(): Promise<string[]> {
  const mounts = await Promise.all(
    SYSTEM_DIRECTORIES.map(async (path) => {
      const entry = await lstat(path).catch(() => undefined);
      if (entry?.isSymbolicLink()) return ["--symlink", await readlink(path), path];
      return entry?.isDirectory() ? ["--ro-bind", path, path] : [];
    }),
  );
  return mounts.flat();
}
