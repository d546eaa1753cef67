import { syscalls } from "@agentfense/fuse";
import type {
  Box,
  BoxCommand,
  BoxProcess,
  BoxSpec,
  ProcessExit,
  ShellCommand,
  ShellProcess,
  TerminalCommand,
  TerminalProcess,
} from "../backend/backend.ts";
import { SandboxError } from "../backend/errors.ts";
import type { ResourceUsage } from "../backend/limits.ts";
import type { Owner } from "../filesystem/presentation.ts";
import type { LimitGroup } from "../limits/limits.ts";
import type { BootClock } from "./boot-clock.ts";
import { memoryFile } from "./descriptors.ts";
import { nameFiles } from "./etc.ts";
import { Job, type JobRequest } from "./job.ts";
import type { Launcher, NestLine } from "./launcher.ts";
import { Nest } from "./nest.ts";
import type { PrivateNetworks } from "./network.ts";
import { type BoxPlan, boxPlan, checkCommand, checkEnvironment, commandOptions } from "./plan.ts";
import type { ProcMasks } from "./proc-masks.ts";
import { boxProcess } from "./process.ts";
import { limitPrefix } from "./rlimit-prefix.ts";
import { BwrapShell } from "./shell.ts";
import type { System } from "./system.ts";
import { BwrapTerminal, openPseudoTerminal, TERMINAL_PREFIX } from "./terminal.ts";

type Cancellable = { readonly signal?: AbortSignal | undefined };

/** What a box shares with the others of its backend. */
export interface BoxSurroundings {
  readonly launcher: Launcher;
  readonly marker: string;
  readonly isRoot: boolean;
  readonly masks: ProcMasks;
  /** Descriptors with the contents of the system's files, in the order of its `files`. */
  readonly systemFiles: readonly number[];
  readonly seccomp: number;
  readonly clock: BootClock;
  readonly network: PrivateNetworks;
  /** What a nest needs to have a network namespace of its own, where that can be had. */
  readonly nestNetwork: NestLine["network"];
}

/**
 * A box is a plan, a control group and, while it runs, a nest: each command gets a bwrap, and so namespaces, of its own.
 * Only the network namespace of a box without a network is the nest's, so that its commands reach one another's loopback.
 */
export class BwrapBox implements Box {
  readonly owner: Owner;
  readonly #spec: BoxSpec;
  readonly #system: System;
  readonly #group: LimitGroup;
  readonly #around: BoxSurroundings;
  readonly #onDestroyed: (box: BwrapBox) => Promise<void>;
  readonly #jobs = new Set<Job>();
  #nest: Nest | undefined;
  #state: "stopped" | "running" | "destroyed" = "stopped";
  #prepared: { plan: BoxPlan; files: number[] } | undefined;
  #stopping: Promise<void> | undefined;
  #destroying: Promise<void> | undefined;

  constructor(options: {
    spec: BoxSpec;
    owner: Owner;
    system: System;
    group: LimitGroup;
    surroundings: BoxSurroundings;
    onDestroyed: (box: BwrapBox) => Promise<void>;
  }) {
    this.owner = options.owner;
    this.#spec = options.spec;
    this.#system = options.system;
    this.#group = options.group;
    this.#around = options.surroundings;
    this.#onDestroyed = options.onDestroyed;
    this.#makeNest(); // it settles while the workspace is mounted
  }

  async start(options: Cancellable = {}): Promise<void> {
    if (this.#destroying !== undefined) throw destroyed();
    await this.#stopping;
    throwIfAborted(options.signal);
    if (this.#state === "running") return;
    this.#prepare();
    this.#makeNest();
    this.#state = "running";
  }

  async run(command: BoxCommand, options: Cancellable = {}): Promise<BoxProcess> {
    const job = await this.#launch(
      command,
      { kind: "pipes", stdin: command.stdin, channel: false },
      [],
      options.signal,
    );
    return boxProcess(job.job, job.exit);
  }

  async openShell(command: ShellCommand, options: Cancellable = {}): Promise<ShellProcess> {
    const { job, exit } = await this.#launch(
      command,
      { kind: "pipes", stdin: true, channel: true },
      [],
      options.signal,
    );
    return new BwrapShell(job, exit, this.#around.clock);
  }

  async openTerminal(command: TerminalCommand, options: Cancellable = {}): Promise<TerminalProcess> {
    const terminal = openPseudoTerminal(command.size);
    try {
      const streams = { kind: "terminal", terminal: terminal.name, output: terminal.stream } as const;
      const { job, exit } = await this.#launch(command, streams, TERMINAL_PREFIX, options.signal);
      return new BwrapTerminal(job, exit, terminal);
    } catch (error) {
      terminal.stream.destroy();
      throw error;
    }
  }

  async shells(): Promise<readonly string[]> {
    return this.#system.shells;
  }

  usage(): Promise<ResourceUsage> {
    return this.#group.usage();
  }

  stop(): Promise<void> {
    if (this.#state === "running") this.#state = "stopped";
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined;
    });
    return this.#stopping;
  }

  destroy(): Promise<void> {
    this.#destroying ??= this.#destroy();
    return this.#destroying;
  }

  /** The launcher of this generation died with all it had started. */
  launcherLost(generation: number): void {
    if (this.#nest?.generation === generation) this.#nest.lost();
  }

  #makeNest(): void {
    if (this.#nest !== undefined) return;
    const nest = new Nest(this.#around.launcher, {
      network: this.#hasNestNetwork ? this.#around.nestNetwork : undefined,
      entrances: this.#group.entrances,
    });
    this.#nest = nest;
    void nest.ended.then(() => this.#nestLost(nest));
  }

  get #hasNestNetwork(): boolean {
    return this.#spec.network === "none" && this.#around.nestNetwork !== undefined;
  }

  #nestLost(nest: Nest): void {
    for (const job of this.#jobs) if (job.nest === nest) job.lost();
    if (this.#nest === nest) this.#nest = undefined;
  }

  async #stop(): Promise<void> {
    for (const job of this.#jobs) job.kill();
    const gone = Promise.all([...this.#jobs].map((job) => job.gone));
    const nest = this.#nest;
    this.#nest = undefined;
    await this.#group.kill();
    await gone;
    nest?.close();
    await nest?.ended;
    for (const fd of this.#prepared?.files ?? []) syscalls.close(fd);
    this.#prepared = undefined;
  }

  async #destroy(): Promise<void> {
    try {
      await this.stop();
    } finally {
      this.#state = "destroyed";
      await this.#group.remove();
      await this.#onDestroyed(this);
    }
  }

  #prepare(): void {
    if (this.#prepared !== undefined) return;
    const { hostname, network } = this.#spec;
    const own = nameFiles(hostname, network, network === "none" ? "" : this.#around.network.resolver(network));
    const isOwnEtc = this.#spec.rootDirectory === undefined;
    const ownFiles = isOwnEtc ? Object.entries(own) : [];
    this.#prepared = {
      plan: boxPlan({
        spec: this.#spec,
        system: this.#system,
        masks: this.#around.masks,
        sharesNetwork: this.#spec.network === "host" || this.#hasNestNetwork,
        files: [...Object.keys(this.#system.files), ...ownFiles.map(([path]) => path)],
      }),
      files: ownFiles.map(([path, content]) => memoryFile(path, Buffer.from(content))),
    };
  }

  async #launch(
    command: Omit<BoxCommand, "stdin">,
    streams: JobRequest["streams"],
    prefix: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<{ job: Job; exit: Promise<ProcessExit> }> {
    checkCommand(command);
    checkEnvironment(command.env);
    throwIfAborted(signal);
    if (this.#state === "destroyed" || this.#destroying !== undefined) throw destroyed();
    const prepared = this.#prepared;
    if (this.#state !== "running" || prepared === undefined) throw notRunning();
    const countOomKills = this.#spec.limits.memoryBytes !== undefined;
    const oomKillsBefore = countOomKills ? this.#group.oomKills() : Promise.resolve(0);
    oomKillsBefore.catch(() => {}); // asked again when the command ends

    this.#makeNest();
    const job = new Job(this.#nest!, {
      options: commandOptions(prepared.plan, command),
      prefix: [...prefix, ...limitPrefix(this.#group.rlimits)],
      argv: command.argv,
      owner: this.owner,
      becomes: this.#around.isRoot ? "owner" : "same-user",
      streams,
      seccomp: this.#around.seccomp,
      files: [...this.#around.systemFiles, ...prepared.files],
      marker: this.#around.marker,
      attach: this.#spec.network === "private" ? (pid) => this.#around.network.attach(pid, this.owner) : undefined,
    });
    this.#jobs.add(job);
    void job.gone.then(() => this.#jobs.delete(job));
    const onAbort = (): void => job.kill();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await job.started;
    } catch (error) {
      throwIfAborted(signal);
      if (this.#state !== "running") throw notRunning();
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
    throwIfAborted(signal);
    const exit = this.#exitOf(job, countOomKills ? oomKillsBefore : undefined);
    exit.catch(() => {}); // a caller that killed it may not look any more
    return { job, exit };
  }

  async #exitOf(job: Job, oomKillsBefore: Promise<number> | undefined): Promise<ProcessExit> {
    const end = await job.ended;
    const outOfMemory = oomKillsBefore !== undefined && (await this.#group.oomKills()) > (await oomKillsBefore);
    if ("exitCode" in end) return { exitCode: end.exitCode, outOfMemory };
    if (outOfMemory) return { exitCode: 137, outOfMemory }; // the limit hit bwrap itself
    throw end.failure;
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new SandboxError("CANCELLED", "the call was cancelled", { cause: signal.reason });
}

function notRunning(): SandboxError {
  return new SandboxError("SANDBOX_NOT_RUNNING", "the sandbox is not running");
}

function destroyed(): SandboxError {
  return new SandboxError("SANDBOX_DESTROYED", "the sandbox was destroyed");
}
