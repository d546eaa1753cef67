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
import { memoryForFiles } from "../limits/rlimits.ts";
import type { BootClock } from "./boot-clock.ts";
import { memoryFile } from "./descriptors.ts";
import { nameFiles } from "./etc.ts";
import { Job, type JobRequest } from "./job.ts";
import { JobDescriptor } from "./launcher.ts";
import type { Nest, NestNursery } from "./nest.ts";
import type { PrivateNetworks } from "./network.ts";
import { type BoxPlan, boxPlan, checkCommand, checkEnvironment, commandOptions } from "./plan.ts";
import type { ProcMasks } from "./proc-masks.ts";
import { boxProcess } from "./process.ts";
import { limitPrefix } from "./rlimit-prefix.ts";
import { BwrapShell } from "./shell.ts";
import type { Spare } from "./spare.ts";
import { SpareKeeper } from "./spare-keeper.ts";
import { canBeSpareEnvironment, spareArguments } from "./spare-order.ts";
import type { System } from "./system.ts";
import { BwrapTerminal, openPseudoTerminal, TERMINAL_PREFIX } from "./terminal.ts";

/** What all jobs of a running box share; `files` in the order of their descriptors. */
interface Prepared {
  readonly plan: BoxPlan;
  readonly files: readonly number[];
  /** Those of the files that are this box's own. */
  readonly ownFiles: readonly number[];
}

interface Launched {
  readonly job: Job;
  readonly exit: Promise<ProcessExit>;
}

/** After a cancelled command was told to end. */
const ABANDON_MS = 1_000;

type Cancellable = { readonly signal?: AbortSignal | undefined };

/** What a box shares with the others of its backend. */
export interface BoxSurroundings {
  readonly marker: string;
  readonly isRoot: boolean;
  readonly masks: ProcMasks;
  /** Descriptors with the contents of the system's files, in the order of its `files`. */
  readonly systemFiles: readonly number[];
  readonly seccomp: number;
  /** For a box whose memory limit is one of single processes. */
  readonly seccompOfCountedMemory: number;
  readonly clock: BootClock;
  readonly network: PrivateNetworks;
  readonly nests: NestNursery;
  /** Whether a box may keep one set up for its next command. */
  readonly keepsSpares: boolean;
}

/**
 * A box is a plan, a control group and, while it runs, a nest: each command gets a bwrap, and so namespaces, of its own.
 * Only the network namespace of a box without a network is the nest's, so that its commands reach one another's loopback.
 * One such bwrap waits set up for the next command; it is a job like the others, and ends with them.
 */
export class BwrapBox implements Box {
  readonly owner: Owner;
  readonly #spec: BoxSpec;
  readonly #system: System;
  readonly #group: LimitGroup;
  readonly #around: BoxSurroundings;
  readonly #onDestroyed: (box: BwrapBox) => Promise<void>;
  readonly #jobs = new Set<Job>();
  readonly #spares: SpareKeeper;
  /** Commands that do not run yet. */
  #launching = 0;
  #nest: Nest | undefined;
  /** With those whose launcher died and that have not ended yet. */
  readonly #nests = new Set<Nest>();
  #state: "stopped" | "running" | "destroyed" = "stopped";
  #prepared: Prepared | undefined;
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
    this.#spares = new SpareKeeper({
      makeJob: (file, startOf) => this.#makeSpareJob(file, startOf),
      // Not beside a command: its processes would count as the command's.
      isWanted: () => this.#jobs.size === 0 && this.#launching === 0,
    });
    this.#makeNest(); // it settles while the workspace is mounted
  }

  /** For tests: process 1 of the box that waits for the next command, as the host counts. */
  get sparePid(): number | undefined {
    return this.#spares.current?.job.initPid;
  }

  async start(options: Cancellable = {}): Promise<void> {
    await this.#stopping;
    if (this.#destroying !== undefined) throw destroyed();
    throwIfAborted(options.signal);
    if (this.#state === "running") return;
    const prepared = this.#prepare();
    this.#makeNest();
    this.#state = "running";
    if (this.#canHaveSpares(prepared)) this.#spares.start();
  }

  async run(command: BoxCommand, options: Cancellable = {}): Promise<BoxProcess> {
    const streams = { kind: "pipes", stdin: command.stdin, channel: false } as const;
    const { job, exit } = await this.#launch(command, streams, [], options.signal);
    return boxProcess(job, exit, { stdin: command.stdin });
  }

  async openShell(command: ShellCommand, options: Cancellable = {}): Promise<ShellProcess> {
    const { job, exit } = await this.#launch(
      command,
      { kind: "pipes", stdin: true, channel: true },
      [],
      options.signal,
    );
    const isLimited = this.#spec.limits.memoryBytes !== undefined;
    const oomKills = isLimited ? () => this.#group.oomKills() : undefined;
    return new BwrapShell(job, exit, { clock: this.#around.clock, oomKills });
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
    for (const nest of this.#nests) if (nest.generation === generation) nest.lost();
  }

  #makeNest(): void {
    // One whose launcher died is about to end, and whatever it is given is lost.
    if (this.#nest !== undefined && this.#around.nests.isAlive(this.#nest)) return;
    const nest = this.#around.nests.take({ ownNetwork: this.#hasNestNetwork });
    nest.enter(this.#group.entrances);
    this.#nest = nest;
    this.#nests.add(nest);
    void nest.ended.then(() => this.#nestLost(nest));
  }

  get #hasNestNetwork(): boolean {
    return this.#spec.network === "none" && this.#around.nests.hasNetwork;
  }

  /** By a control group, with all that processes share; or there is no limit. */
  get #isMemoryCounted(): boolean {
    return !this.#group.rlimits.some(({ resource }) => resource === "data");
  }

  #nestLost(nest: Nest): void {
    this.#nests.delete(nest);
    for (const job of this.#jobs) if (job.nest === nest) job.lost();
    if (this.#nest === nest) this.#nest = undefined;
  }

  async #stop(): Promise<void> {
    this.#spares.stop();
    for (const job of this.#jobs) job.kill();
    const gone = Promise.all([...this.#jobs].map((job) => job.gone));
    const nest = this.#nest;
    this.#nest = undefined;
    await this.#group.kill();
    await gone;
    nest?.close();
    await nest?.ended;
    for (const fd of this.#prepared?.ownFiles ?? []) syscalls.close(fd);
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

  #prepare(): Prepared {
    if (this.#prepared !== undefined) return this.#prepared;
    const { hostname, network } = this.#spec;
    const own = nameFiles(hostname, network, network === "none" ? "" : this.#around.network.resolver(network));
    const isOwnEtc = this.#spec.rootDirectory === undefined;
    const ownFiles = isOwnEtc ? Object.entries(own) : [];
    const ownDescriptors = ownFiles.map(([path, content]) => memoryFile(path, Buffer.from(content)));
    this.#prepared = {
      plan: boxPlan({
        spec: this.#spec,
        system: this.#system,
        masks: this.#around.masks,
        sharesNetwork: this.#spec.network === "host" || this.#hasNestNetwork,
        files: [...Object.keys(this.#system.files), ...ownFiles.map(([path]) => path)],
        memoryForFiles: this.#isMemoryCounted ? undefined : memoryForFiles(this.#spec.limits.memoryBytes ?? 0),
      }),
      files: [...this.#around.systemFiles, ...ownDescriptors],
      ownFiles: ownDescriptors,
    };
    return this.#prepared;
  }

  async #launch(
    command: Omit<BoxCommand, "stdin">,
    streams: JobRequest["streams"],
    prefix: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<Launched> {
    checkCommand(command);
    checkEnvironment(command.env);
    throwIfAborted(signal);
    this.#runningPlan();
    this.#launching += 1;
    try {
      return await this.#launchNow(command, streams, prefix, signal);
    } finally {
      this.#launching -= 1;
      this.#spares.refill();
    }
  }

  async #launchNow(
    command: Omit<BoxCommand, "stdin">,
    streams: JobRequest["streams"],
    prefix: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<Launched> {
    const spare = this.#giveToSpare(command, streams);
    try {
      if (spare !== undefined) return await this.#start(spare.job, signal);
    } catch (error) {
      // A spare that died before the command ran in it is no failure of the command; a box of its own shall tell.
      if (signal?.aborted || this.#state !== "running" || !spare?.job.neverRan) throw error;
    }
    this.#spares.discard();
    const { plan, files } = this.#runningPlan();
    const job = this.#makeJob({
      options: commandOptions(plan, command),
      prefix: [...prefix, ...limitPrefix(this.#group.rlimits)],
      argv: command.argv,
      streams,
      files,
    });
    return this.#start(job, signal);
  }

  #runningPlan(): Prepared {
    if (this.#state === "destroyed" || this.#destroying !== undefined) throw destroyed();
    if (this.#state !== "running" || this.#prepared === undefined) throw notRunning();
    return this.#prepared;
  }

  #makeJob(request: Pick<JobRequest, "options" | "prefix" | "argv" | "streams" | "files" | "startOf">): Job {
    this.#makeNest();
    const job = new Job(this.#nest!, {
      ...request,
      owner: this.owner,
      becomes: this.#around.isRoot ? "owner" : "same-user",
      seccomp: this.#isMemoryCounted ? this.#around.seccomp : this.#around.seccompOfCountedMemory,
      marker: this.#around.marker,
      attach: this.#spec.network === "private" ? (pid) => this.#around.network.attach(pid, this.owner) : undefined,
    });
    this.#jobs.add(job);
    void job.gone.then(() => {
      this.#jobs.delete(job);
      this.#spares.refill();
    });
    return job;
  }

  /** Waits until the command runs. */
  async #start(job: Job, signal: AbortSignal | undefined): Promise<Launched> {
    const countOomKills = this.#spec.limits.memoryBytes !== undefined;
    const oomKillsBefore = countOomKills ? this.#group.oomKills() : undefined;
    oomKillsBefore?.catch(() => {}); // asked again when the command ends
    // A nest that cannot fork, for its box has all the processes it may have, tries for half a minute. The job then stays
    // until the nest has read its line or is gone: the descriptors it names must not become somebody else's meanwhile.
    const abandoned = Promise.withResolvers<never>();
    abandoned.promise.catch(() => {});
    let patience: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      job.kill();
      patience = setTimeout(() => abandoned.reject(new Error("it did not start in time")), ABANDON_MS);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await Promise.race([job.started, abandoned.promise]);
    } catch (error) {
      throwIfAborted(signal);
      if (this.#state !== "running") throw notRunning();
      throw error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      clearTimeout(patience);
    }
    throwIfAborted(signal);
    const exit = this.#exitOf(job, oomKillsBefore);
    exit.catch(() => {}); // a caller that killed it may not look any more
    return { job, exit };
  }

  /** The script of a spare is bash's, and a command that is not the same shell might not be there: it gets its own box. */
  #giveToSpare(command: Omit<BoxCommand, "stdin">, streams: JobRequest["streams"]): Spare | undefined {
    if (streams.kind === "terminal" || command.argv[0] !== this.#system.shells[0]) return undefined;
    const argv = [...limitPrefix(this.#group.rlimits), ...command.argv];
    return this.#spares.give({ ...streams, argv, env: command.env, workdir: command.workdir });
  }

  #canHaveSpares({ plan }: Prepared): boolean {
    const isBash = this.#system.shells[0]?.endsWith("/bash") ?? false;
    return this.#around.keepsSpares && isBash && canBeSpareEnvironment(plan.env);
  }

  #makeSpareJob(order: number, startOf: JobRequest["startOf"]): Job {
    const { plan, files } = this.#runningPlan();
    return this.#makeJob({
      options: commandOptions(plan, { env: {}, workdir: "/" }),
      prefix: [],
      argv: spareArguments(this.#system.shells[0] ?? "", JobDescriptor.firstFile + files.length),
      streams: { kind: "pipes", stdin: true, channel: true },
      files: [...files, order],
      startOf,
    });
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
