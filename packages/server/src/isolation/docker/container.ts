import { once } from "node:events";
import type { Socket } from "node:net";
import type { ResourceUsage } from "../backend/limits.ts";
import type { Launcher } from "../bwrap/launcher.ts";
import { BoxSockets } from "../bwrap/sockets.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { LogLine } from "../mount/host.ts";
import { type EgressGuard, type NetworkedContainer, openNetwork } from "./egress.ts";
import { type Engine, isStatus } from "./engine.ts";
import { type Exec, exitCodeOf, notRunning, startExec } from "./exec.ts";
import { SUBREAPER_PROBE } from "./scripts.ts";
import { Warden } from "./warden.ts";

/** What a process in a container needs of it. */
export interface ProcessHome {
  readonly engine: Engine;
  readonly warden: Warden;
  /** Whether a process here can keep its descendants together. */
  readonly subreaper: boolean;
  startExec(
    request: {
      readonly commandLine: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly stdin: boolean;
      readonly terminal: boolean;
    },
    signal?: AbortSignal,
  ): Promise<Exec>;
  /** Ends everything in the container at once, for when the warden cannot. */
  restart(): Promise<void>;
  /** Whether the engine saw the container run out of memory. */
  ranOutOfMemory(): Promise<boolean>;
  log(line: LogLine): void;
}

interface ContainerState extends NetworkedContainer {
  readonly State: { readonly Running: boolean; readonly OOMKilled: boolean; readonly Pid: number };
}

interface ContainerStats {
  readonly memory_stats?: {
    readonly usage?: number;
    readonly stats?: { readonly inactive_file?: number; readonly total_inactive_file?: number };
  };
  readonly pids_stats?: { readonly current?: number };
  readonly cpu_stats?: { readonly cpu_usage?: { readonly total_usage?: number } };
}

/** A container that was started, until it is removed. */
export class Container implements ProcessHome {
  readonly engine: Engine;
  readonly #id: string;
  readonly #owner: Owner;
  readonly #log: (line: LogLine) => void;
  readonly #egress: EgressGuard | undefined;
  readonly #launcher: Launcher;
  #sockets: BoxSockets;
  #warden: Warden;
  #subreaper = true;
  /** It stopped without our doing. Whoever starts it again does so without the network's policy: it is not ours any more. */
  #lost = false;
  readonly #connections = new Set<Socket>();
  #restarting: Promise<void> | undefined;
  #restarts = 0;
  #removing: Promise<void> | undefined;

  private constructor(options: ContainerOptions, id: string) {
    this.engine = options.engine;
    this.#owner = options.owner;
    this.#log = options.log;
    this.#egress = options.egress;
    this.#launcher = options.launcher;
    this.#id = id;
    this.#sockets = this.#newSockets();
    this.#warden = this.#newWarden();
  }

  /** Creates and starts; leaves nothing when either fails. */
  static async start(options: ContainerOptions, signal?: AbortSignal): Promise<Container> {
    const { engine, plan } = options;
    const { Id: id } = await engine.json<{ Id: string }>({
      method: "POST",
      path: "/containers/create",
      query: { name: plan.name },
      body: plan.config,
      signal,
    });
    const container = new Container(options, id);
    try {
      await engine.json({ method: "POST", path: `/containers/${id}/start`, signal });
      void container.#watch();
      await container.#confine();
      if (options.unknownRuntime) await container.#examine();
      return container;
    } catch (error) {
      await container.remove();
      throw error;
    }
  }

  get warden(): Warden {
    return this.#warden;
  }

  get subreaper(): boolean {
    return this.#subreaper;
  }

  log(line: LogLine): void {
    this.#log(line);
  }

  async startExec(request: Parameters<ProcessHome["startExec"]>[0], signal?: AbortSignal): Promise<Exec> {
    await this.#restarting?.catch(() => {});
    if (this.#lost) throw notRunning();
    const restarts = this.#restarts;
    const exec = await startExec(this.engine, { container: this.#id, owner: this.#owner, ...request }, signal);
    if (restarts !== this.#restarts) {
      // It may be in the new container before its network is closed; it waits for its first line, and gets none.
      exec.connection.destroy();
      throw notRunning();
    }
    this.#connections.add(exec.connection);
    exec.connection.once("close", () => this.#connections.delete(exec.connection));
    return exec;
  }

  restart(): Promise<void> {
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  async connect(port: number, signal: AbortSignal | undefined): Promise<Socket> {
    await this.#restarting?.catch(() => {});
    if (this.#lost || this.#removing !== undefined) throw notRunning();
    return await this.#sockets.connect(port, signal);
  }

  async isRunning(): Promise<boolean> {
    return !this.#lost && ((await this.#inspect())?.State.Running ?? false);
  }

  async ranOutOfMemory(): Promise<boolean> {
    return (await this.#inspect())?.State.OOMKilled ?? false;
  }

  async usage(): Promise<ResourceUsage> {
    if (this.#lost) throw notRunning();
    const stats = await this.engine.json<ContainerStats>({
      method: "GET",
      path: `/containers/${this.#id}/stats`,
      query: { stream: "false", "one-shot": "true" },
    });
    const memory = stats.memory_stats;
    // The kernel gives file pages back when it needs them: they are not what the box uses.
    const cache = memory?.stats?.inactive_file ?? memory?.stats?.total_inactive_file ?? 0;
    const cpuNanos = stats.cpu_stats?.cpu_usage?.total_usage;
    return {
      ...(memory?.usage === undefined ? {} : { memoryBytes: Math.max(0, memory.usage - cache) }),
      ...(stats.pids_stats?.current === undefined ? {} : { pids: stats.pids_stats.current }),
      ...(cpuNanos === undefined ? {} : { cpuMicros: Math.floor(cpuNanos / 1000) }),
    };
  }

  /** Kills everything and removes the container with its anonymous volumes. Idempotent. */
  remove(): Promise<void> {
    this.#removing ??= this.#remove().catch((error: unknown) => {
      this.#removing = undefined;
      throw error;
    });
    return this.#removing;
  }

  async #remove(): Promise<void> {
    this.#warden.close();
    this.#sockets.close();
    await removeContainer(this.engine, this.#id);
  }

  async #restart(): Promise<void> {
    if (this.#removing !== undefined) return this.#removing;
    if (this.#lost) return;
    this.#restarts += 1;
    this.#log({ level: "error", message: "a sandbox could not end a command; its container was restarted" });
    this.#warden.close();
    this.#warden = this.#newWarden();
    this.#sockets.close();
    this.#sockets = this.#newSockets();
    try {
      await this.engine.json({ method: "POST", path: `/containers/${this.#id}/restart`, query: { t: "0" } });
      await this.#confine();
    } catch (error) {
      this.#lost = true;
      await this.remove();
      throw error;
    }
    void this.#watch();
  }

  /** Every start has a network namespace of its own, which is open at first. */
  async #confine(): Promise<void> {
    if (this.#egress === undefined) return;
    const state = await this.#inspect();
    if (!state?.State.Running) throw notRunning();
    await this.#egress.confine(state);
  }

  async #inspect(): Promise<ContainerState | undefined> {
    try {
      return await this.engine.json<ContainerState>({ method: "GET", path: `/containers/${this.#id}/json` });
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }

  /** Not every runtime tells the engine that the processes in a container died with it: then nobody closes their connections. */
  async #watch(): Promise<void> {
    try {
      await this.engine.json({ method: "POST", path: `/containers/${this.#id}/wait` });
    } catch {
      // The container or the engine is gone: as good as an answer.
    }
    const orphaned = [...this.#connections];
    if (this.#restarting === undefined) {
      this.#lost = true;
      this.#warden.close();
      this.#sockets.close();
    }
    setTimeout(() => orphaned.forEach((connection) => void connection.destroy()), LAST_WORDS_MS).unref();
  }

  async #examine(): Promise<void> {
    const exec = await this.startExec({ commandLine: SUBREAPER_PROBE, env: {}, stdin: false, terminal: false });
    exec.connection.resume();
    await once(exec.connection, "close");
    this.#subreaper = (await exitCodeOf(this.engine, exec.id)) === 0;
  }

  #newSockets(): BoxSockets {
    return new BoxSockets({
      launcher: this.#launcher,
      openNetwork: async () => {
        const state = await this.#inspect();
        if (!state?.State.Running) throw notRunning();
        const network = await openNetwork(state);
        return { namespaces: [network.fd], [Symbol.asyncDispose]: () => network.close() };
      },
    });
  }

  #newWarden(): Warden {
    return new Warden(async (commandLine): Promise<Socket> => {
      const exec = await this.startExec({ commandLine, env: {}, stdin: true, terminal: false });
      return exec.connection;
    });
  }
}

export interface ContainerOptions {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly plan: { readonly name: string; readonly config: object };
  /** Whether the OCI runtime is another than runc, so that it has to show what it can do. */
  readonly unknownRuntime: boolean;
  readonly launcher: Launcher;
  /** For a container with a private network. */
  readonly egress?: EgressGuard | undefined;
  readonly log: (line: LogLine) => void;
}

/** How long the engine may take to deliver what a container's processes said before they died. */
const LAST_WORDS_MS = 500;
const REMOVAL_ATTEMPTS = 5;

export async function removeContainer(engine: Engine, id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await engine.json({ method: "DELETE", path: `/containers/${id}`, query: { force: "true", v: "true" } });
      return;
    } catch (error) {
      if (isStatus(error, 404)) return;
      // 409: somebody else removes it, or it is just being started. 500: a process was on its way in when it was killed.
      if (!isStatus(error, 409, 500) || attempt === REMOVAL_ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
    }
  }
}
