import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { BoxSpec, NetworkAnswer, ResourceUsage } from "../backend/backend.ts";
import type { DescriptorRoom } from "../backend/descriptor-room.ts";
import { IsolationError, notRunning } from "../backend/isolation-error.ts";
import { MOST_LEFT, readSlowly, tooManyLeft } from "../backend/leftovers.ts";
import { FREEZING_PATIENCE_MS, tooBusyToFreeze } from "../backend/pause-switch.ts";
import type { Launcher } from "../bwrap/launcher.ts";
import { BoxSockets } from "../bwrap/sockets.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { LogLine } from "../log.ts";
import { settledWithin } from "../waiting.ts";
import { ContainerHelper, type Root } from "./container-helper.ts";
import {
  type DockerDaemon,
  type Exec,
  type ExecRequest,
  exitCodeOf,
  isStatus,
  startExec,
  whatFailed,
} from "./daemon.ts";
import { type EgressGuard, type NetworkedContainer, openNetwork } from "./egress.ts";
import { type ContainerPlan, PIDS_PER_COMMAND } from "./plan.ts";
import { SUBREAPER_PROBE } from "./scripts.ts";

/** What a process in a container needs of it. */
export interface ProcessHome {
  readonly daemon: DockerDaemon;
  readonly helper: ContainerHelper;
  startCommand(request: ContainerExec, signal?: AbortSignal): Promise<Exec>;
  /** Takes over what is left of a command that has ended: its root, and the connection that is open as long as that lives. */
  leave(root: Root, connection: Socket, helper: ContainerHelper): void;
  /** The container runs, also when it is paused, as long as the work takes. */
  readonly awake: <T>(work: () => Promise<T>) => Promise<T>;
  /** Ends everything in the container at once, for when its helper cannot; nothing, if that is another by now. */
  restart(helper: ContainerHelper): Promise<void>;
  /** Whether the daemon saw the container run out of memory. */
  ranOutOfMemory(): Promise<boolean>;
  log(line: LogLine): void;
}

type ContainerExec = Omit<ExecRequest, "container" | "owner">;

interface ContainerState extends NetworkedContainer {
  readonly State: {
    readonly Running: boolean;
    readonly Paused: boolean;
    readonly OOMKilled: boolean;
    readonly Pid: number;
  };
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
  readonly daemon: DockerDaemon;
  readonly awake: ContainerOptions["awake"];
  readonly log: ContainerOptions["log"];
  readonly #id: string;
  readonly #path: string;
  readonly #options: ContainerOptions;
  #sockets: BoxSockets;
  #answer: NetworkAnswer | undefined;
  #helper: ContainerHelper;
  /** It stopped without our doing. Whoever starts it again does so without the network's policy: it is not ours any more. */
  #lost = false;
  /** Since it was last started. */
  #connections = new Set<Socket>();
  /** Those of commands that have ended, with their roots. */
  readonly #ended = new Map<Socket, Root>();
  /** Those of them that had left processes behind when the helper last looked. */
  #left: ReadonlySet<Socket> = new Set();
  #settling: Promise<void> = Promise.resolve();
  #willSettle = false;
  #allowedFor = 0;
  #restarting: Promise<void> | undefined;
  #removing: Promise<void> | undefined;

  private constructor(options: ContainerOptions, id: string) {
    this.daemon = options.daemon;
    this.awake = options.awake;
    this.log = options.log;
    this.#options = options;
    this.#id = id;
    this.#path = `/containers/${id}`;
    this.#sockets = this.#newSockets();
    this.#helper = this.#newHelper();
  }

  /** Creates and starts; leaves nothing when either fails. */
  static async start(options: ContainerOptions, signal?: AbortSignal): Promise<Container> {
    const { daemon, plan } = options;
    const request = { query: { name: plan.name }, body: plan.config, signal };
    const { Id: id } = await daemon.post<{ Id: string }>("/containers/create", request);
    const container = new Container(options, id);
    try {
      await daemon.post(`${container.#path}/start`, { signal });
      void container.#watch();
      await container.#setUpNetwork();
      if (options.unknownRuntime) await container.#examine();
      return container;
    } catch (error) {
      await container.remove();
      throw error;
    }
  }

  get helper(): ContainerHelper {
    return this.#helper;
  }

  /** Starts a command, once what is ours of commands that have ended and left nothing is out of its way. */
  async startCommand(request: ContainerExec, signal?: AbortSignal): Promise<Exec> {
    await this.#settling;
    if (this.#isFull) await this.#settle();
    if (this.#isFull) throw tooManyLeft();
    return await this.#startExec(request, signal);
  }

  leave(root: Root, connection: Socket, helper: ContainerHelper): void {
    if (helper !== this.#helper) return void connection.destroy();
    this.#ended.set(connection, root);
    connection.once("close", () => {
      this.#ended.delete(connection);
      if (this.#left.has(connection)) void this.#settle();
    });
    connection.end(); // to background processes that read it, the command's stdin has ended
    // If the connection were closed, the daemon would fetch and drop what they print, as fast as they can.
    readSlowly(connection, () => this.#ended.size * PAUSE_MS);
    void this.#settle();
  }

  async restart(helper: ContainerHelper): Promise<void> {
    if (helper !== this.#helper) return await this.#restarting;
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = undefined;
    });
    await this.#restarting;
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
    const query = { stream: "false", "one-shot": "true" };
    const stats = await this.daemon.get<ContainerStats>(`${this.#path}/stats`, { query });
    const memory = stats.memory_stats;
    // The kernel gives file pages back when it needs them: they are not what the box uses.
    const cache = memory?.stats?.inactive_file ?? memory?.stats?.total_inactive_file ?? 0;
    const cpuNanos = stats.cpu_stats?.cpu_usage?.total_usage;
    return {
      memoryBytes: memory?.usage && Math.max(0, memory.usage - cache),
      pids: stats.pids_stats?.current,
      cpuMicros: cpuNanos && Math.floor(cpuNanos / 1000),
    };
  }

  /** The daemon gives up soon on a process that is in the kernel. */
  async pause(): Promise<void> {
    const deadline = performance.now() + FREEZING_PATIENCE_MS;
    for (let refusal = await this.#turnTo("pause"); refusal !== undefined; refusal = await this.#turnTo("pause")) {
      if (performance.now() > deadline || !(await this.isRunning())) throw tooBusyToFreeze(refusal);
      await sleep(20);
    }
  }

  async unpause(): Promise<void> {
    const refusal = await this.#turnTo("unpause");
    if (refusal !== undefined && (await this.isRunning())) throw refusal;
  }

  /** Kills everything and removes the container with its anonymous volumes. Idempotent. */
  remove(): Promise<void> {
    this.#removing ??= this.#remove().catch((error: unknown) => {
      this.#removing = undefined;
      throw error;
    });
    return this.#removing;
  }

  /** Returns why it could not be done; what is so already is no failure. */
  async #turnTo(state: "pause" | "unpause"): Promise<unknown> {
    try {
      await this.daemon.post(`${this.#path}/${state}`);
    } catch (error) {
      const isPaused = (await this.#inspect())?.State.Paused;
      if (isPaused !== (state === "pause")) return error;
    }
    return undefined;
  }

  async #remove(): Promise<void> {
    this.#helper.close();
    this.#sockets.close();
    await this.#answer?.close();
    await removeContainer(this.daemon, this.#id);
  }

  async #restart(): Promise<void> {
    if (this.#removing !== undefined) return this.#removing;
    if (!(await this.isRunning())) return;
    this.log({ level: "error", message: "a sandbox could not end a command; its container was restarted" });
    this.#helper.close();
    this.#helper = this.#newHelper();
    this.#sockets.close();
    this.#sockets = this.#newSockets();
    await this.#answer?.close();
    this.#ended.clear();
    this.#connections = new Set();
    try {
      await this.daemon.post(`${this.#path}/restart`, { query: { t: "0" } });
      await this.#setUpNetwork();
    } catch (error) {
      this.#lost = true;
      await this.remove();
      throw error;
    }
    void this.#watch();
    void this.#settle();
  }

  async #startExec(request: ContainerExec, signal?: AbortSignal): Promise<Exec> {
    await this.#restarting?.catch(() => {});
    if (this.#lost) throw notRunning();
    const helper = this.#helper;
    const exec = await startExec(this.daemon, { container: this.#id, owner: this.#options.owner, ...request }, signal);
    if (helper !== this.#helper) {
      // It may be in the new container before its network is closed; it waits for its first line, and gets none.
      exec.connection.destroy();
      throw notRunning();
    }
    const connections = this.#connections.add(exec.connection);
    exec.connection.once("close", () => connections.delete(exec.connection));
    return exec;
  }

  get #isFull(): boolean {
    return this.#ended.size >= MOST_LEFT || (this.#left.size > 0 && this.#options.leftoverRoom.isFull);
  }

  /** Has the helper end what is ours of commands that have ended, and have left nothing. */
  #settle(): Promise<void> {
    if (this.#willSettle) return this.#settling;
    this.#willSettle = true;
    this.#settling = this.#settling.then(async () => {
      this.#willSettle = false;
      await this.#settleOnce();
    });
    return this.#settling;
  }

  async #settleOnce(): Promise<void> {
    const asked = [...this.#ended];
    const roots = asked.map(([, root]) => root);
    // Of those that nobody can be asked about the worst is assumed.
    const remaining = asked.length === 0 ? [] : await this.#helper.settle(roots).catch(() => undefined);
    if (this.#removing !== undefined || this.#lost) return;
    const isLeft = ({ root }: Root) => remaining?.includes(root) ?? true;
    const before = this.#left;
    const left = asked.filter(([connection, root]) => this.#ended.has(connection) && isLeft(root));
    this.#left = new Set(left.map(([connection]) => connection));
    for (const connection of this.#left.difference(before)) {
      this.#options.leftoverRoom.hold();
      connection.once("close", () => this.#options.leftoverRoom.giveBack());
      // Most of what a command leaves ends a moment after it.
      setTimeout(() => void this.#settle(), LEFT_AFTER_MS).unref();
    }
    await this.#allowFor(this.#left.size);
    if (this.#ended.size < MOST_LEFT) return;
    // What the helper says it has ended the daemon has to confirm.
    const closing = asked.filter(([connection, root]) => !isLeft(root) && !connection.closed);
    await settledWithin(CLOSING_MS, Promise.all(closing.map(([connection]) => once(connection, "close"))));
  }

  /** Keeps the limit on processes exact: what is ours of commands that left something comes on top of it. */
  async #allowFor(left: number): Promise<void> {
    const { pidsLimit } = this.#options.plan;
    if (pidsLimit === undefined || left === this.#allowedFor) return;
    this.#allowedFor = left;
    const body = { PidsLimit: pidsLimit + left * PIDS_PER_COMMAND };
    try {
      await this.daemon.post(`${this.#path}/update`, { body });
    } catch (error) {
      this.log({ level: "error", message: `a limit on processes could not be changed: ${whatFailed(error)}` });
    }
  }

  /** Every start has a network namespace of its own: a private one is open at first, in a filtered one nobody answers. */
  async #setUpNetwork(): Promise<void> {
    const { egress, answerIn } = this.#options;
    if (egress !== undefined) await egress.confine(await this.#inspectRunning());
    if (answerIn === undefined) return;
    const sockets = this.#sockets;
    this.#answer = await answerIn((places) => sockets.listen(places));
    if (this.#removing !== undefined) await this.#answer.close();
  }

  async #inspect(): Promise<ContainerState | undefined> {
    try {
      return await this.daemon.get<ContainerState>(`${this.#path}/json`);
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async #inspectRunning(): Promise<ContainerState> {
    const state = await this.#inspect();
    if (!state?.State.Running) throw notRunning();
    return state;
  }

  /** Not every runtime tells the daemon that the processes in a container died with it: then nobody closes their connections. */
  async #watch(): Promise<void> {
    const [helper, connections] = [this.#helper, this.#connections];
    try {
      await this.daemon.post(`${this.#path}/wait`);
    } catch {
      // The container or the daemon is gone: as good as an answer.
    }
    const orphaned = [...connections];
    // The daemon may tell of the end that a restart made when the container has long been started again, with another helper.
    if (helper === this.#helper) {
      this.#lost = true;
      this.#helper.close();
      this.#sockets.close();
      void this.#answer?.close();
    }
    setTimeout(() => orphaned.forEach((connection) => void connection.destroy()), LAST_WORDS_MS).unref();
  }

  /** Without subreapers (old versions of gVisor have none) nobody could tell which command a process belongs to. */
  async #examine(): Promise<void> {
    const exec = await this.#startExec({ commandLine: SUBREAPER_PROBE, env: {}, stdin: false, terminal: false });
    exec.connection.resume();
    await once(exec.connection, "close");
    if ((await exitCodeOf(this.daemon, exec.id)) === 0) return;
    throw new IsolationError("RUNTIME_UNAVAILABLE", "the OCI runtime cannot keep the processes of a command together", {
      hint: "use a newer version of it, or runc",
    });
  }

  #newSockets(): BoxSockets {
    return new BoxSockets({
      launcher: this.#options.launcher,
      openNetwork: async () => {
        const network = await openNetwork(await this.#inspectRunning());
        return { namespaces: [network.fd], [Symbol.asyncDispose]: () => network.close() };
      },
      listens: this.#options.answerIn !== undefined,
    });
  }

  #newHelper(): ContainerHelper {
    return new ContainerHelper(async (commandLine): Promise<Socket> => {
      const exec = await this.#startExec({ commandLine, env: {}, stdin: true, terminal: false });
      return exec.connection;
    }, this.awake);
  }
}

export interface ContainerOptions {
  readonly daemon: DockerDaemon;
  readonly owner: Owner;
  readonly plan: ContainerPlan;
  /** Whether the OCI runtime is another than runc, so that it has to show what it can do. */
  readonly unknownRuntime: boolean;
  readonly launcher: Launcher;
  /** For a container with a private network. */
  readonly egress?: EgressGuard | undefined;
  /** For one with a filtered network; see BoxSpec. */
  readonly answerIn?: BoxSpec["answerIn"];
  readonly leftoverRoom: DescriptorRoom;
  readonly awake: ProcessHome["awake"];
  readonly log: (line: LogLine) => void;
}

/** How long the daemon may take to deliver what a container's processes said before they died. */
const LAST_WORDS_MS = 500;
/** How long the daemon may take to close the connections of processes that were killed. */
const CLOSING_MS = 2_500;
const LEFT_AFTER_MS = 1_000;
/** Between two readings of what background processes of one box print. */
const PAUSE_MS = 25;
const REMOVAL_ATTEMPTS = 5;

export async function removeContainer(daemon: DockerDaemon, id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await daemon.delete(`/containers/${id}`, { query: { force: "true", v: "true" } });
      return;
    } catch (error) {
      if (isStatus(error, 404)) return;
      // 409: somebody else removes it, or it is just being started. 500: a process was on its way in when it was killed.
      if (!isStatus(error, 409, 500) || attempt === REMOVAL_ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100 * attempt));
    }
  }
}
