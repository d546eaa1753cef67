import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { findProgram } from "../backend/find-program.ts";

const SCRIPT = fileURLToPath(new URL("watchdog.sh", import.meta.url));

/**
 * A small process beside the server that frees it, should it be killed at a moment at which it cannot die, and takes away
 * the mounts that a killed one leaves; see watchdog.sh.
 * Without bash there is none.
 */
export class Watchdog implements AsyncDisposable {
  readonly #process: ChildProcess | undefined;

  private constructor(process: ChildProcess | undefined) {
    this.#process = process;
  }

  /** `directory`: the instance's, below which the mounts are. */
  static async start(directory: string): Promise<Watchdog> {
    const [bash, umount, fusermount] = await Promise.all(["bash", "umount", "fusermount3"].map(findProgram));
    if (bash === undefined) return new Watchdog(undefined);
    // Only root may end a mount by force; others have the kernel's own control file, where it is mounted.
    const force = process.geteuid?.() === 0 && umount !== undefined ? umount : "-";
    const programs = [force, fusermount ?? "-"];
    const child = spawn(bash, ["--norc", "--noprofile", SCRIPT, String(process.pid), directory, ...programs], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
      detached: true, // no signal of the server's terminal reaches it
      stdio: ["pipe", "ignore", "ignore"],
    });
    child.on("error", () => {}); // the server does without
    child.stdin.on("error", () => {});
    child.unref();
    (child.stdin as unknown as { unref?(): void }).unref?.();
    return new Watchdog(child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#process;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.ref();
    child.stdin?.end();
    await gone;
  }
}
