import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Placement, placed } from "../client.ts";
import { mountAt, mounted, unmount } from "../mounts.ts";
import { overlayDirectories } from "./overlayfs.ts";
import type { Ground, Target } from "./target.ts";

export async function fuseOverlayfs(ground: Ground): Promise<Target> {
  const { options, root } = await overlayDirectories(ground);
  return daemonTarget({
    name: "fuse-overlayfs",
    argv: ["fuse-overlayfs", "-f", "-o", options, root],
    root,
    placement: { pinned: ground.pinned },
  });
}

/** bindfs mirrors a directory and has no delta, so it mirrors a copy of the tree that it may change. */
export async function bindfs(ground: Ground): Promise<Target> {
  const root = join(ground.directory, "mount");
  await mkdir(root, { recursive: true });
  return daemonTarget({
    name: "bindfs",
    argv: ["bindfs", "-f", await ground.copyOfTree("bindfs"), root],
    root,
    placement: { pinned: ground.pinned },
  });
}

export interface DaemonPlan {
  readonly name: string;
  /** Stays in the foreground until it is unmounted. */
  readonly argv: readonly string[];
  readonly root: string;
  /** Of the daemon and of its clients: a mount of an ordinary user is closed to everybody else, root included. */
  readonly placement: Placement;
  /** A program that prints this when its mount is ready and unmounts when it gets SIGTERM. */
  readonly announcement?: string;
}

/** A file system served by a process that is started for each mount. */
export function daemonTarget(plan: DaemonPlan): Target {
  let daemon: Daemon | undefined;
  const start = async () => {
    const started = new Daemon(plan);
    daemon = started;
    await mounted(plan.root, () => started.obituary);
    // The mount is there before the daemon has answered INIT; the first sample is not to pay for that.
    if (plan.announcement === undefined) await stat(plan.root);
    else await started.said(plan.announcement);
  };
  const stop = async () => {
    if (plan.announcement !== undefined) daemon?.ask();
    else await unmount(plan.root);
    await daemon?.end();
    await unmount(plan.root);
    daemon = undefined;
  };
  return {
    name: plan.name,
    root: plan.root,
    client: plan.placement,
    writable: true,
    start,
    async remount() {
      await stop();
      await start();
    },
    stop,
    connection: () => mountAt(plan.root)?.minor,
  };
}

class Daemon {
  readonly #process: ChildProcess;
  readonly #gone: Promise<unknown>;
  #output = "";
  #errors = "";
  /** Why it is no more; undefined while it lives. */
  obituary: string | undefined;

  constructor({ argv, placement }: DaemonPlan) {
    const [file, ...args] = placed(argv, placement);
    this.#process = spawn(file, args, { ...placement.identity, stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#process.stdout?.on("data", (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString()).slice(-2_000);
    });
    this.#process.stderr?.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2_000);
    });
    this.#process.on("error", (error) => {
      this.obituary = error.message;
    });
    this.#process.on("exit", (status, signal) => {
      this.obituary = `${status ?? signal}: ${this.#errors.trim().split("\n").at(-1)}`;
    });
    this.#gone = once(this.#process, "exit").catch(() => undefined);
  }

  async said(announcement: string): Promise<void> {
    for (let waited = 0; !this.#output.includes(announcement); waited += 5) {
      if (this.obituary !== undefined) throw new Error(`the daemon ended: ${this.obituary}`);
      if (waited > 10_000) throw new Error("the daemon did not say that it is ready");
      await sleep(5);
    }
  }

  /** Asks it to end; end() waits for that. */
  ask(): void {
    this.#process.kill("SIGTERM");
  }

  /** Waits for it to leave by itself, then asks, then insists: what was unmounted ends of its own accord. */
  async end(): Promise<void> {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await Promise.race([this.#gone, sleep(3_000, undefined, { ref: false })]);
      if (this.obituary !== undefined) return;
      this.#process.kill(signal);
    }
    await this.#gone;
  }
}
