import { fileURLToPath } from "node:url";
import type { Rule } from "@agentfense/permission";
import type { FreezeSpec, Frozen, WorkspaceEvent, WorkspaceMount, WorkspaceSpec } from "@agentfense/server/isolation";
import { type As, identityOf } from "./identity.ts";
import { Peer } from "./peer.ts";

export type DaemonRequest =
  | { readonly method: "mount"; readonly spec: WorkspaceSpec }
  | { readonly method: "updateRules"; readonly mountPoint: string; readonly rules: readonly Rule[] }
  | { readonly method: "unmount"; readonly mountPoint: string }
  | { readonly method: "freeze"; readonly mountPoint: string; readonly spec: FreezeSpec }
  | { readonly method: "cleanStaleMount"; readonly mountPoint: string };

const running = new Map<As, Daemon>();

/** The test's side of a daemon process; one daemon can serve many workspaces. */
export class Daemon implements AsyncDisposable {
  readonly as: As;
  readonly #peer: Peer;
  readonly #listeners = new Map<string, (event: WorkspaceEvent) => void>();

  private constructor(as: As) {
    this.as = as;
    const script = fileURLToPath(new URL("./daemon.ts", import.meta.url));
    this.#peer = new Peer(script, {
      identity: identityOf(as),
      onNotice: (notice) => {
        const { mountPoint, event } = notice as { mountPoint: string; event: WorkspaceEvent };
        this.#listeners.get(mountPoint)?.(event);
      },
    });
  }

  static start(as: As): Daemon {
    return new Daemon(as);
  }

  /** The one of all tests in this process, with which it ends; a new one when a test has brought it down. */
  static ofProcess(as: As): Daemon {
    const present = running.get(as);
    if (present?.alive) return present;
    const fresh = new Daemon(as);
    running.set(as, fresh);
    return fresh;
  }

  get pid(): number {
    return this.#peer.pid;
  }

  get alive(): boolean {
    return this.#peer.alive;
  }

  async mount(spec: WorkspaceSpec, onEvent: (event: WorkspaceEvent) => void): Promise<WorkspaceMount["features"]> {
    this.#listeners.set(spec.mountPoint, onEvent);
    return (await this.#peer.ask({ method: "mount", spec } satisfies DaemonRequest)) as WorkspaceMount["features"];
  }

  async updateRules(mountPoint: string, rules: readonly Rule[]): Promise<void> {
    await this.#peer.ask({ method: "updateRules", mountPoint, rules } satisfies DaemonRequest);
  }

  async unmount(mountPoint: string): Promise<void> {
    await this.#peer.ask({ method: "unmount", mountPoint } satisfies DaemonRequest);
  }

  async freeze(mountPoint: string, spec: FreezeSpec): Promise<Frozen> {
    return (await this.#peer.ask({ method: "freeze", mountPoint, spec } satisfies DaemonRequest)) as Frozen;
  }

  /** Asks this daemon to take away the dead mount of another; true when there was one. */
  async cleanStaleMount(mountPoint: string): Promise<boolean> {
    return (await this.#peer.ask({ method: "cleanStaleMount", mountPoint } satisfies DaemonRequest)) as boolean;
  }

  /** Ends the process as a crash would. */
  async kill(): Promise<void> {
    await this.#peer.kill("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
